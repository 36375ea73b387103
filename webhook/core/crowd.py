"""The pods on all nodes, by what the filters look for among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.core.objects import PodAffinityTerm, PodOnNode
from webhook.core.shared import Shelves

NOBODY: Final[tuple[PodOnNode, ...]] = ()

_Wish = tuple[str, str, str]
"""Whom a term may be against: those of a namespace ("": of any) with a label's key and value ("": with any labels)."""


class Crowd(Mapping[str, tuple[PodOnNode, ...]]):
    """Pods by their node's name. It never changes: `moved` makes another one, and shares what is the same."""

    __slots__ = ("_arriving", "_by_namespace", "_by_node", "_repelling", "size")

    def __init__(self, pods: Mapping[str, Sequence[PodOnNode]] | None = None) -> None:
        self._by_node: dict[str, tuple[PodOnNode, ...]] = {}
        self._by_namespace = Shelves[str, str, tuple[PodOnNode, ...]]()
        self._repelling = Shelves[_Wish, int, PodOnNode]()
        self._arriving: dict[int, PodOnNode] = {}
        self.size = 0
        self._move(pods or {})

    @classmethod
    def of(cls, pods: Mapping[str, Sequence[PodOnNode]]) -> Crowd:
        """The crowd of these pods: themselves, if they are one."""
        return pods if isinstance(pods, Crowd) else cls(pods)

    def __getitem__(self, node_name: str) -> tuple[PodOnNode, ...]:
        return self._by_node[node_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def __len__(self) -> int:
        return len(self._by_node)

    def on(self, node_name: str) -> tuple[PodOnNode, ...]:
        """The pods on a node."""
        return self._by_node.get(node_name, NOBODY)

    def everybody(self) -> Iterator[PodOnNode]:
        """The pods on all nodes."""
        for pods in self._by_node.values():
            yield from pods

    def named(self, namespace: str, name: str) -> tuple[PodOnNode, ...]:
        """The pods of a name; several only where the same one was seen on several nodes."""
        return self._by_namespace.at(namespace).get(name, NOBODY)

    def in_namespace(self, namespace: str) -> Iterator[PodOnNode]:
        """The pods of a namespace."""
        for pods in self._by_namespace.at(namespace).values():
            yield from pods

    def arriving(self) -> Iterable[PodOnNode]:
        """The pods that are not bound yet: only pinned or nominated to their node."""
        return self._arriving.values()

    def repelling(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PodOnNode]:
        """The pods whose anti-affinity may be against such a pod, each once."""
        places, features = ("", namespace), (("", ""), *labels.items())
        found: dict[int, PodOnNode] = {}
        for place in places:
            for feature in features:
                found.update(self._repelling.at((place, *feature)))
        return iter(found.values())

    def moved(self, changed: Mapping[str, Sequence[PodOnNode]]) -> Crowd:
        """The crowd with just these pods on these nodes, and the same ones on all others."""
        other = Crowd()
        other._by_node = dict(self._by_node)
        other._by_namespace = self._by_namespace.copy()
        other._repelling = self._repelling.copy()
        other._arriving = dict(self._arriving)
        other.size = self.size
        other._move(changed)
        return other

    def _move(self, changed: Mapping[str, Sequence[PodOnNode]]) -> None:
        for node_name, pods in changed.items():
            before, there = self._by_node.pop(node_name, NOBODY), tuple(pods)
            if there:
                self._by_node[node_name] = there
            stays = {id(pod) for pod in before} & {id(pod) for pod in there}
            for pod in before:
                if id(pod) not in stays:
                    self._take(pod)
            for pod in there:
                if id(pod) not in stays:
                    self._put(pod)

    def _put(self, pod: PodOnNode) -> None:
        self.size += 1
        named = self._by_namespace.own(pod.namespace)
        named[pod.name] = (*named.get(pod.name, NOBODY), pod)
        for wish in _wishes_of(pod):
            self._repelling.own(wish)[id(pod)] = pod
        if not pod.bound:
            self._arriving[id(pod)] = pod

    def _take(self, pod: PodOnNode) -> None:
        self.size -= 1
        stay = tuple(other for other in self.named(pod.namespace, pod.name) if other is not pod)
        if stay:
            self._by_namespace.own(pod.namespace)[pod.name] = stay
        else:
            self._by_namespace.drop(pod.namespace, pod.name)
        for wish in _wishes_of(pod):
            self._repelling.drop(wish, id(pod))
        self._arriving.pop(id(pod), None)


def _wishes_of(pod: PodOnNode) -> set[_Wish]:
    """A term is kept under one of the labels that it wants, if it wants any: others need not look at it."""
    return {_wish(term, pod.namespace) for term in pod.anti_affinity if term.selector is not None}


def _wish(term: PodAffinityTerm, namespace: str) -> _Wish:
    place = "" if term.namespaces or term.namespace_selector is not None else namespace
    labels = term.selector.match_labels if term.selector is not None else {}
    return (place, *min(labels.items(), default=("", "")))
