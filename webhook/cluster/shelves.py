"""Where a watch puts what it is told, and where decisions find it: frozen views, made anew only after changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from webhook.cluster.trimming import Key
from webhook.core.crowd import Crowd
from webhook.core.fresh import room_of
from webhook.core.model import NodeRoom
from webhook.core.objects import Node, PodOnNode

Value = TypeVar("Value")
View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Placed:
    """The pods that take a place on a node, and what they ask of it altogether; both by the node's name."""

    pods: Crowd = field(default_factory=Crowd)
    rooms: Mapping[str, NodeRoom] = field(default_factory=dict)


def placed(pods: Iterable[PodOnNode]) -> Placed:
    """The view of these pods."""
    by_node: dict[str, list[PodOnNode]] = {}
    for pod in pods:
        by_node.setdefault(pod.node_name, []).append(pod)
    return Placed(
        pods=Crowd(by_node),
        rooms={name: room_of(there) for name, there in by_node.items()},
    )


def in_order(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes by name."""
    return tuple(sorted(nodes, key=lambda node: node.name))


class Shelf(ABC, Generic[Value, View]):
    """Values by key. One thread puts, any may look; a view that was handed out never changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[Key, Value] = {}
        self._view: View | None = None

    def put(self, key: Key, value: Value | None) -> None:
        """Keep a value, or none any more. One that is equal to the one that is kept changes nothing."""
        with self._lock:
            self._put(key, value)

    def put_all(self, values: Mapping[Key, Value]) -> None:
        """Keep these and no others."""
        with self._lock:
            for key in self._values.keys() - values.keys():
                self._put(key, None)
            for key, value in values.items():
                self._put(key, value)

    def known(self, key: Key, value: Value) -> Value:
        """The value that is kept already, if it is equal: then the new one need not be kept."""
        kept = self._values.get(key)
        return kept if kept is not None and kept == value else value

    def view(self) -> View:
        """What is kept now."""
        with self._lock:
            if self._view is None:
                self._view = self._make_view()
            return self._view

    def _put(self, key: Key, value: Value | None) -> None:
        old = self._values.get(key)
        if old is value or old == value:
            return
        if value is None:
            del self._values[key]
        else:
            self._values[key] = value
        self._view = None
        self._replaced(key, old, value)

    def _replaced(self, key: Key, old: Value | None, new: Value | None) -> None:
        """Called after each change, under the lock."""

    @abstractmethod
    def _make_view(self) -> View: ...


class Catalogue(Shelf[Value, Mapping[Key, Value]]):
    """Values as they are, by key."""

    def _make_view(self) -> Mapping[Key, Value]:
        return dict(self._values)


class NodeShelf(Shelf[Node, tuple[Node, ...]]):
    """Nodes in order."""

    def _make_view(self) -> tuple[Node, ...]:
        return in_order(self._values.values())


class PodShelf(Shelf[PodOnNode, Placed]):
    """Pods by node. Only the nodes where something has changed are added up again for a view."""

    def __init__(self) -> None:
        super().__init__()
        self._by_node: dict[str, dict[Key, PodOnNode]] = {}
        self._changed: set[str] = set()
        self._last = Placed()

    def _replaced(self, key: Key, old: PodOnNode | None, new: PodOnNode | None) -> None:
        if old is not None:
            del self._by_node[old.node_name][key]
            self._changed.add(old.node_name)
        if new is not None:
            self._by_node.setdefault(new.node_name, {})[key] = new
            self._changed.add(new.node_name)

    def _make_view(self) -> Placed:
        changed = {name: tuple(self._by_node[name].values()) for name in self._changed}
        rooms = dict(self._last.rooms)
        for name, there in changed.items():
            if there:
                rooms[name] = room_of(there)
            else:
                del self._by_node[name]
                rooms.pop(name, None)
        self._changed.clear()
        self._last = Placed(self._last.pods.moved(changed), rooms)
        return self._last
