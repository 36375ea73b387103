"""Nodes by how much of them is free: so the freest is found without a look at the others."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import compress
from operator import is_, is_not
from typing import Final

from webhook.core.model import NodeRoom
from webhook.core.node_index import NodeIndex
from webhook.core.objects import NO_QUANTITIES, Node

SHARED_RESOURCES: Final = ("cpu", "memory")
NONE: Final = Decimal(0)
EMPTY: Final = NodeRoom()

Shape = tuple[Decimal, ...]
"""For each of the shared resources how much a node offers, and how much is asked of it."""


def free_share(node: Node, asked: Mapping[str, Decimal], wanted: Mapping[str, Decimal]) -> float:
    """What stays free of the scarcer of CPU and memory, as a share of the node; 0 where the node does not say."""
    return _share(_shape(node, asked), wanted)


@lru_cache(maxsize=2**15)
def digest(name: str) -> int:
    """A number for a name. The exclusive or of those of a member and of a node ranks nodes for it, and like no other's.

    (Rendezvous hashing: the same everywhere, and a node that goes changes nothing for whom it was not the first.)
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "big")


class Ladder:
    """Nodes of one shape stand on one rung. It never changes: `after` makes another, and shares what is the same."""

    def __init__(self) -> None:
        self._nodes: Mapping[str, Node] = {}
        self._rooms: Mapping[str, NodeRoom] = {}
        self._shapes: dict[str, Shape] = {}
        self._rungs: dict[Shape, dict[int, str]] = {}
        self._order: list[tuple[float, Shape]] = []

    def after(self, nodes: Mapping[str, Node], rooms: Mapping[str, NodeRoom]) -> Ladder:
        """The ladder of these nodes, with what is asked of each. Only those that have changed are looked at."""
        if nodes is self._nodes and rooms is self._rooms:
            return self
        other = Ladder()
        other._nodes, other._rooms = nodes, rooms
        other._shapes, other._rungs, other._order = dict(self._shapes), dict(self._rungs), list(self._order)
        for name in {*_changed(self._nodes, nodes), *_changed(self._rooms, rooms)}:
            other._move(name)
        return other

    def down(self, wanted: Mapping[str, Decimal], member: int) -> Iterator[tuple[float, int, str]]:
        """The nodes in the order in which a member that asks for this likes them: rank, number, name.

        The rank is less the more is free once it is there; of equal ranks the less number is first.
        """
        waiting: list[tuple[float, Shape]] = []
        for before, shape in self._order:
            # Nothing that comes can be freer than it is without the member.
            while waiting and waiting[0][0] < before:
                yield from self._tied(waiting, member)
            heappush(waiting, (-_share(shape, wanted), shape))
        while waiting:
            yield from self._tied(waiting, member)

    def _tied(self, waiting: list[tuple[float, Shape]], member: int) -> Iterator[tuple[float, int, str]]:
        """Take those away that wait at the front with one rank, and give their nodes."""
        rank = waiting[0][0]
        alike: dict[int, str] = {}
        while waiting and waiting[0][0] == rank:
            alike.update(self._rungs[heappop(waiting)[1]])
        # Mostly nobody asks for a second one.
        first = min(alike, key=member.__xor__)
        yield rank, member ^ first, alike[first]
        for number in sorted(alike, key=member.__xor__)[1:]:
            yield rank, member ^ number, alike[number]

    def _move(self, name: str) -> None:
        node, old = self._nodes.get(name), self._shapes.pop(name, None)
        new = _shape(node, self._rooms.get(name, EMPTY).requested) if node is not None else None
        if old is not None:
            self._leave(old, name)
        if new is not None:
            self._shapes[name] = new
            if new not in self._rungs:
                insort(self._order, (-_share(new, NO_QUANTITIES), new))
            self._rungs[new] = {**self._rungs.get(new, {}), digest(name): name}

    def _leave(self, shape: Shape, name: str) -> None:
        rung = self._rungs[shape] = dict(self._rungs[shape])
        del rung[digest(name)]
        if not rung:
            del self._rungs[shape]
            del self._order[bisect_left(self._order, (-_share(shape, NO_QUANTITIES), shape))]


class Ladders:
    """Remembers the last ladder, from which the next one is made; safe to use from many threads."""

    def __init__(self) -> None:
        self._last = Ladder()

    def __call__(self, index: NodeIndex, rooms: Mapping[str, NodeRoom]) -> Ladder:
        """The ladder of these nodes, with what is asked of each."""
        self._last = found = self._last.after(index.by_name, rooms)
        return found


ladder_of: Final = Ladders()
"""The ladder of these nodes and rooms; little is done where little has changed."""


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> Iterable[str]:
    """The names under which there is not the same any more. Values that did not change are the same objects."""
    if before is after:
        return ()
    if len(before) == len(after) and all(map(is_, before, after)):
        return compress(after, map(is_not, before.values(), after.values()))
    return {
        *(name for name in before if name not in after),
        *(name for name, value in after.items() if before.get(name) is not value),
    }


def _shape(node: Node, asked: Mapping[str, Decimal]) -> Shape:
    return tuple(
        amount for name in SHARED_RESOURCES for amount in (node.allocatable.get(name, NONE), asked.get(name, NONE))
    )


def _share(shape: Shape, wanted: Mapping[str, Decimal]) -> float:
    amounts = iter(shape)
    shares = [
        (offered - asked - wanted.get(name, NONE)) / offered
        for name, offered, asked in zip(SHARED_RESOURCES, amounts, amounts, strict=True)
        if offered > 0
    ]
    return float(min(shares, default=NONE))
