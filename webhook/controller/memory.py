"""What the controller remembers from turn to turn; lost with the process, without harm."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from webhook.core.model import Group
from webhook.core.objects import Pod

# A pod of one name is freed again after so long (s), twice as long each time.
FIRST_PAUSE: Final = 30.0
LONGEST_PAUSE: Final = 960.0
# For so long (s) a group waits for the replacement of its last freed pod.
REPLACEMENT_TIME: Final = 30.0
# What keeps a pod waiting is said again when it has changed, and so long (s) after the last time.
SAYING_PAUSE: Final = 60.0

LONG_AGO: Final = float("-inf")

Name = tuple[str, str]
"""Namespace and name: what stays of a pod from one life to the next."""


@dataclass(frozen=True, slots=True)
class Freed:
    """A pod that was deleted, at a time of this process's clock."""

    namespace: str
    name: str
    uid: str
    at: float


@dataclass(slots=True)
class _Waiting:
    """One life of a waiting pod: since when freeing it is due, what was said and when, when it was looked at."""

    due_since: float | None = None
    stuck: bool = False
    unfreed: bool = False
    said: str = ""
    said_at: float = 0.0
    looked_at: float = LONG_AGO


class RescueMemory:
    """What was seen of each waiting pod by its uid, and what was freed. `clock` is monotonic (s)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self._awaited: dict[Group, Freed] = {}
        self._pauses: dict[Name, tuple[float, float]] = {}

    def forget_others(self, uids: Collection[str]) -> None:
        """Only these pods wait still."""
        self._waiting = {uid: self._waiting.get(uid, _Waiting()) for uid in uids}
        now = self._clock()
        self._pauses = {name: (at, pause) for name, (at, pause) in self._pauses.items() if now - at <= 2 * pause}

    def looked_at(self, uid: str) -> float:
        """When the pod was looked at last, long ago if never."""
        return self._waiting[uid].looked_at

    def look_at(self, uid: str) -> None:
        """The pod is looked at now."""
        self._waiting[uid].looked_at = self._clock()

    def due_for(self, uid: str, *, due: bool) -> float:
        """For how long (s) freeing the pod has been due without a break, given whether it is now."""
        waiting, now = self._waiting[uid], self._clock()
        if not due:
            waiting.due_since = None
            return 0.0
        if waiting.due_since is None:
            waiting.due_since = now
        return now - waiting.due_since

    def mark_stuck(self, uid: str, *, stuck: bool) -> None:
        """Whether nothing better is there for the pod."""
        self._waiting[uid].stuck = stuck

    def stuck(self) -> int:
        """How many pods nothing better was there for when they were looked at last."""
        return sum(waiting.stuck for waiting in self._waiting.values())

    def mark_unfreed(self, uid: str, *, unfreed: bool) -> None:
        """Whether the pod is not freed though that would help."""
        self._waiting[uid].unfreed = unfreed

    def unfreed(self) -> int:
        """How many pods were not freed, though that would help, when they were looked at last."""
        return sum(waiting.unfreed for waiting in self._waiting.values())

    def is_news(self, uid: str, said: str) -> bool:
        """Whether this should be said of the pod now; then it has been."""
        waiting, now = self._waiting[uid], self._clock()
        if said == waiting.said or (waiting.said and now - waiting.said_at < SAYING_PAUSE):
            return False
        waiting.said, waiting.said_at = said, now
        return True

    def may_free(self, pod: Pod) -> bool:
        """Whether the last freeing of a pod of this name is long enough ago."""
        at, pause = self._pauses.get((pod.namespace, pod.name), (0.0, 0.0))
        return not pause or self._clock() - at >= pause

    def tried(self, pod: Pod) -> None:
        """The pod was freed, or that was refused: the next time is twice as far away as it was this time."""
        _, pause = self._pauses.get((pod.namespace, pod.name), (0.0, 0.0))
        self._pauses[pod.namespace, pod.name] = self._clock(), min(2 * pause or FIRST_PAUSE, LONGEST_PAUSE)

    def await_replacement(self, group: Group, pod: Pod) -> None:
        """The group's other pods wait until this one's replacement is seen."""
        self._awaited[group] = Freed(pod.namespace, pod.name, pod.uid, self._clock())

    def awaited(self) -> dict[Group, Freed]:
        """The freed pods whose replacements have not been seen."""
        return dict(self._awaited)

    def is_overdue(self, freed: Freed) -> bool:
        """Whether the replacement has been waited for long enough."""
        return self._clock() - freed.at >= REPLACEMENT_TIME

    def replaced(self, group: Group) -> None:
        """The group waits no more."""
        self._awaited.pop(group, None)
