"""What surrounds a group: nodes, the pods on them, volumes. Proposed by the inventory, or else read directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from threading import Lock
from time import monotonic
from typing import Final, Protocol, TypeVar

from webhook.cluster import trimming
from webhook.cluster.inventory import Inventory
from webhook.cluster.reader import Reader, time_left
from webhook.cluster.shelves import Attached, Placed, Pools, in_order, placed
from webhook.cluster.trimming import Key, Kind
from webhook.cluster.usage import DirectStock, UsageReader
from webhook.core.objects import Node, Pod
from webhook.errors import OutOfTime

Value = TypeVar("Value")

SHARED_FOR: Final = 2.0
"""Seconds for which one direct reading serves all groups, where an inventory should have: 20,000 pods take seconds
to read, and many groups may ask at once just when the API server has trouble."""


class Stock(Protocol):
    """Kinds of which a round may need all: volumes, classes, namespaces."""

    @property
    def at_hand(self) -> bool:
        """Whether nothing has to be listed for them."""
        ...

    def of(self, kind: Kind[Value]) -> Mapping[Key, Value]:
        """What is kept of a kind, by namespace and name."""
        ...

    def volumes(self) -> Pools:
        """Persistent volumes by class."""
        ...

    def attached(self) -> Attached:
        """Attached volumes by node."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`proposed`: not read in this very round, so a node that is chosen has to be confirmed."""

    nodes: tuple[Node, ...]
    placed: Placed
    stock: Stock
    proposed: bool = False


def namespaces_for(placing: Sequence[Pod], surroundings: Surroundings) -> Mapping[str, Mapping[str, str]]:
    """The labels of namespaces by name; they are listed only for a pod, to be placed or there, that selects by them."""
    if not surroundings.stock.at_hand and not _select_by_namespace(placing, surroundings.placed):
        return {}
    return {name: labels for (_, name), labels in surroundings.stock.of(trimming.NAMESPACE).items()}


def _select_by_namespace(placing: Sequence[Pod], placed: Placed) -> bool:
    pods = chain.from_iterable(placed.pods.values())
    terms = chain(*((*pod.affinity, *pod.anti_affinity) for pod in placing), *(pod.anti_affinity for pod in pods))
    return any(term.namespace_selector is not None for term in terms)


class SurroundingsReader:
    """Reads the surroundings for each round; safe to use from many threads."""

    def __init__(self, inventory: Inventory | None = None, clock: Callable[[], float] = monotonic) -> None:
        """Without an inventory every round reads for itself."""
        self._inventory = inventory
        self._clock = clock
        self._usage = UsageReader()
        self._lock = Lock()
        self._shared: tuple[float, Surroundings] | None = None

    def read(self, reader: Reader) -> Surroundings:
        """Raises `errors.ApiError` and OutOfTime as the reader does."""
        if self._inventory is None:
            return self._read(reader)
        view = self._inventory.view()
        if view is not None:
            return Surroundings(view.nodes, view.placed, view, proposed=not self._inventory.prompt)
        return self._read_together(reader)

    def _read(self, reader: Reader) -> Surroundings:
        nodes = in_order(self._usage.read(reader, trimming.NODE).values())
        pods = placed(self._usage.read(reader, trimming.POD).values())
        return Surroundings(nodes, pods, DirectStock(self._usage, reader))

    def _read_together(self, reader: Reader) -> Surroundings:
        """One reads, the others wait for what it finds."""
        if not self._lock.acquire(timeout=time_left(reader.deadline)):
            raise OutOfTime("the budget was used up while another round listed nodes and pods")
        try:
            if self._shared is not None and self._clock() - self._shared[0] <= SHARED_FOR:
                stock = DirectStock(self._usage, reader)
                return replace(self._shared[1], stock=stock, proposed=True)
            found = self._read(reader)
            self._shared = self._clock(), found
            return found
        finally:
            self._lock.release()
