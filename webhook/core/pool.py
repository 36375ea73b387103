"""The persistent volumes of a class, by where they can be used: no claim looks at all of them on every node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from webhook.core.memo import Memo
from webhook.core.objects import Node
from webhook.core.selectors import matches_node, size_of
from webhook.core.shared import Shelves
from webhook.core.storage import PersistentVolume

_Place = tuple[str, str]
"""A label's key and value that a node must have; `_ANYWHERE`: none in particular."""

_ANYWHERE: Final = ("", "")

ENOUGH_TERMS: Final = 16


class Pool(Collection[PersistentVolume]):
    """Volumes of one class. It never changes: `changed` makes another one, and shares what is the same."""

    __slots__ = ("_by_name", "_by_place", "_kept", "_tied", "terms")

    def __init__(self, volumes: Iterable[PersistentVolume] = ()) -> None:
        self._by_name: dict[str, PersistentVolume] = {}
        self._by_place = Shelves[_Place, str, PersistentVolume]()
        self._kept = Shelves[tuple[str, str], str, PersistentVolume]()
        self._tied = 0
        self.terms = 0
        """Of the volumes' node affinities, as far as one has more than anybody needs."""
        for volume in volumes:
            self._put(volume)

    def __contains__(self, volume: object) -> bool:
        return isinstance(volume, PersistentVolume) and self._by_name.get(volume.name) == volume

    def __iter__(self) -> Iterator[PersistentVolume]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, name: str) -> PersistentVolume | None:
        """The volume of a name, None if there is none."""
        return self._by_name.get(name)

    @property
    def tied(self) -> bool:
        """Whether there are any that not every node can use."""
        return self._tied > 0

    def on(self, node: Node) -> Iterator[PersistentVolume]:
        """The volumes that the node can use."""
        found = dict(self._by_place.at(_ANYWHERE))
        for place in node.labels.items():
            found.update(self._by_place.at(place))
        return (volume for volume in found.values() if matches_node(volume.node_affinity, node))

    def kept_for(self, namespace: str, name: str) -> Iterable[PersistentVolume]:
        """The volumes that name this claim."""
        return self._kept.at((namespace, name)).values()

    def changed(self, volumes: Mapping[str, PersistentVolume | None]) -> Pool:
        """The pool with these volumes as they are now (None: gone), and the same ones besides."""
        other = Pool()
        other._by_name = dict(self._by_name)
        other._by_place, other._kept = self._by_place.copy(), self._kept.copy()
        other._tied, other.terms = self._tied, self.terms
        for name, volume in volumes.items():
            other._take(name)
            if volume is not None:
                other._put(volume)
        return other

    def _put(self, volume: PersistentVolume) -> None:
        self._by_name[volume.name] = volume
        self._tied += volume.node_affinity is not None
        self.terms += _more_terms(volume)
        for place in _places_of(volume):
            self._by_place.own(place)[volume.name] = volume
        if volume.claim is not None:
            self._kept.own((volume.claim.namespace, volume.claim.name))[volume.name] = volume

    def _take(self, name: str) -> None:
        volume = self._by_name.pop(name, None)
        if volume is None:
            return
        self._tied -= volume.node_affinity is not None
        self.terms -= _more_terms(volume)
        for place in _places_of(volume):
            self._by_place.drop(place, name)
        if volume.claim is not None:
            self._kept.drop((volume.claim.namespace, volume.claim.name), name)


def _more_terms(volume: PersistentVolume) -> int:
    """How many terms its node affinity has beyond those that one may need."""
    terms = volume.node_affinity.terms if volume.node_affinity is not None else ()
    return max(sum(map(size_of, terms)) - ENOUGH_TERMS, 0)


def _places_of(volume: PersistentVolume) -> set[_Place]:
    """Places at one of which every node is that can use the volume."""
    terms = volume.node_affinity.terms if volume.node_affinity is not None else ()
    wanted = [next((each for each in term.match_expressions if each.operator == "In"), None) for term in terms]
    places = {(each.key, value) for each in wanted if each is not None for value in each.values}
    return places if places and None not in wanted else {_ANYWHERE}


def _pool(volumes: Iterable[PersistentVolume]) -> Pool:
    return volumes if isinstance(volumes, Pool) else Pool(volumes)


pool_of: Final = Memo(_pool)
"""The pool of these volumes: themselves, if they are one."""
