"""The cluster as its watches tell it: nodes, the pods on them, volumes. For feasibility and ranking only.

It proposes: members and claims of a group are never read from it, and a node that was chosen by it is read once
more before anything is promised (`store.py`; docs/design.md, invariant 4). What it holds is trimmed (`trimming.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, ClassVar, Final, TypeVar, cast

from webhook.cluster import trimming
from webhook.cluster.door import Door
from webhook.cluster.shelves import (
    Attached,
    AttachmentShelf,
    Catalogue,
    NodeShelf,
    Placed,
    PodShelf,
    Pools,
    Shelf,
    VolumeShelf,
)
from webhook.cluster.trimming import Key, Kind
from webhook.cluster.watching import Follower, Pace, Pulse
from webhook.core.objects import Node

Value = TypeVar("Value")

QUICK: Final = Pace(watch=3.0)
"""Of what room depends on: with it nothing older than 5 s is proposed (invariant 4)."""

SLOW: Final = Pace(watch=30.0)
"""Of what seldom changes. Its watches break with the others where they break with an error."""

AT_ONCE: Final = Pace(watch=1e-6)
"""Of a cluster in this process: there is nothing to wait for."""

_CATALOGUED: Final[tuple[Kind[Any], ...]] = (
    trimming.NAMESPACE,
    trimming.CLASS,
    trimming.CLAIMED,
    trimming.PUBLISHER,
    trimming.CAPACITY,
    trimming.ATTACH_LIMITS,
)


@dataclass(frozen=True, slots=True)
class InventoryView:
    """What the inventory says now: nodes by name in order, pods by node, and the rest as a `Stock` has it."""

    at_hand: ClassVar[bool] = True
    nodes: tuple[Node, ...]
    placed: Placed
    volumes: Callable[[], Pools]
    attached: Callable[[], Attached]
    catalogue: Callable[[Kind[Any]], Mapping[Key, Any]]

    def of(self, kind: Kind[Value]) -> Mapping[Key, Value]:
        """What is kept of a kind that has no field of its own."""
        return cast("Mapping[Key, Value]", self.catalogue(kind))


class Inventory:
    """Follows the cluster in threads of its own once it is started; safe to use from many threads.

    Threads do not survive a fork: start it in the process that uses it.
    """

    prompt = False
    """Whether what it says is how the cluster is at this moment, so that it only proposes no more."""

    def __init__(
        self,
        door: Door,
        *,
        quick: Pace = QUICK,
        slow: Pace = SLOW,
        clock: Callable[[], float] = monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._nodes = NodeShelf()
        self._pods = PodShelf()
        self._volumes = VolumeShelf()
        self._attachments = AttachmentShelf()
        self._catalogues = {kind.resource: Catalogue[Any]() for kind in _CATALOGUED}
        self._stopping = Event()
        self._lock = Lock()
        self._threads: tuple[Thread, ...] = ()

        def follower(kind: Kind[Any], shelf: Shelf[Any, Any], pace: Pace) -> Follower:
            return Follower(door, kind, shelf, Pulse(pace, clock), self._stopping, chance)

        self.followers: Final = (
            follower(trimming.NODE, self._nodes, quick),
            follower(trimming.POD, self._pods, quick),
            follower(trimming.VOLUME, self._volumes, slow),
            follower(trimming.ATTACHMENT, self._attachments, slow),
            *(follower(kind, self._catalogues[kind.resource], slow) for kind in _CATALOGUED),
        )

    def tell_of_pods(self, seen: Callable[[Key, str], None]) -> None:
        """Have `seen` called, at once and in the follower's thread, for each pod that comes to a node."""
        self._pods.seen = seen

    def start(self) -> None:
        """Begin to follow; does nothing when it has begun already."""
        with self._lock:
            if self._threads:
                return
            self._threads = tuple(
                Thread(target=each.run, name=f"watch {each.kind.resource.plural}", daemon=True)
                for each in self.followers
            )
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 0.0) -> None:
        """Follow no longer; wait for the threads so long (s) in all. Each ends with what its watch tells next."""
        self._stopping.set()
        end = monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))

    @contextmanager
    def following(self) -> Iterator[Inventory]:
        """Follow as long as the context lasts."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def synced(self) -> bool:
        """Whether every kind has been listed."""
        return all(age != float("inf") for age in self.ages().values())

    def ages(self) -> Mapping[str, float]:
        """For how long (s) the server has not been heard of each kind, by plural; infinite before its first list."""
        return {each.kind.resource.plural: each.pulse.age() for each in self.followers}

    def age(self) -> float:
        """The greatest of the ages (s)."""
        return max(self.ages().values())

    def view(self) -> InventoryView | None:
        """What can be proposed from; None while a kind has not been listed, or its watch is broken."""
        if not all(each.pulse.sound() for each in self.followers):
            return None
        return InventoryView(
            self._nodes.view(), self._pods.view(), self._volumes.view, self._attachments.view, self._of
        )

    def _of(self, kind: Kind[Any]) -> Mapping[Key, Any]:
        return self._catalogues[kind.resource].view()


class PromptInventory(Inventory):
    """Follows a cluster that is in this process: it catches up each time that it is asked, and needs no thread."""

    prompt = True

    def __init__(self, door: Door) -> None:
        super().__init__(door, quick=AT_ONCE, slow=AT_ONCE)
        self._catching_up = Lock()
        # All is listed now, not in the first decision's time.
        self.view()

    def view(self) -> InventoryView | None:
        """What there is now."""
        with self._catching_up:
            for each in self.followers:
                each.follow_once()
                if not each.up_to_date:
                    # Too much has happened since the last time: all is listed.
                    each.follow_once()
        return super().view()
