"""Where a watch puts what it is told, and where decisions find it: frozen views, made anew only where they changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from webhook.cluster.trimming import Attachment, Key
from webhook.core.crowd import Crowd
from webhook.core.fresh import room_of
from webhook.core.model import NodeRoom
from webhook.core.objects import Node, PodOnNode
from webhook.core.pool import Pool
from webhook.core.storage import PersistentVolume

Value = TypeVar("Value")
View = TypeVar("View")
Located = TypeVar("Located", PodOnNode, Attachment)


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


class _ShelfByNode(Shelf[Located, View]):
    """What is at nodes, by node, and the nodes where something has changed since the last view."""

    def __init__(self) -> None:
        super().__init__()
        self._by_node: dict[str, dict[Key, Located]] = {}
        self._changed: set[str] = set()

    def _replaced(self, key: Key, old: Located | None, new: Located | None) -> None:
        if old is not None:
            del self._by_node[old.node_name][key]
            self._changed.add(old.node_name)
        if new is not None:
            self._by_node.setdefault(new.node_name, {})[key] = new
            self._changed.add(new.node_name)


class PodShelf(_ShelfByNode[PodOnNode, Placed]):
    """Pods by node. Only the nodes where something has changed are added up again for a view.

    `seen` is told of each pod that comes to a node, by namespace and name, and of the node's name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: Callable[[Key, str], None] = _nobody_looks
        self._last = Placed()

    def _replaced(self, key: Key, old: PodOnNode | None, new: PodOnNode | None) -> None:
        super()._replaced(key, old, new)
        if new is not None:
            self.seen(key, new.node_name)

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


def _nobody_looks(_key: Key, _node_name: str) -> None:
    """Nobody has asked to be told."""


Pools = Mapping[str, Pool]
"""Persistent volumes by class."""


def pools_of(volumes: Iterable[PersistentVolume]) -> Pools:
    """These volumes by class."""
    by_class: dict[str, list[PersistentVolume]] = {}
    for volume in volumes:
        by_class.setdefault(volume.storage_class, []).append(volume)
    return {name: Pool(there) for name, there in by_class.items()}


def find_volume(pools: Pools, name: str) -> PersistentVolume | None:
    """The volume of a name, whatever its class."""
    found = (pool.find(name) for pool in pools.values())
    return next((volume for volume in found if volume is not None), None)


class VolumeShelf(Shelf[PersistentVolume, Pools]):
    """Volumes by class."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[str, dict[str, PersistentVolume | None]] = {}
        self._last: dict[str, Pool] = {}

    def _replaced(self, _key: Key, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if old is not None:
            self._changed.setdefault(old.storage_class, {})[old.name] = None
        if new is not None:
            self._changed.setdefault(new.storage_class, {})[new.name] = new

    def _make_view(self) -> Pools:
        self._last = dict(self._last)
        for name, volumes in self._changed.items():
            self._last[name] = self._last.get(name, Pool()).changed(volumes)
        self._changed.clear()
        return self._last


Attached = Mapping[str, frozenset[str]]
"""The names of the volumes that are attached to a node, or about to be, by the node's name."""


def attached(attachments: Iterable[Attachment]) -> Attached:
    """These attachments by node."""
    by_node: dict[str, set[str]] = {}
    for each in attachments:
        by_node.setdefault(each.node_name, set()).add(each.volume_name)
    return {name: frozenset(there) for name, there in by_node.items()}


class AttachmentShelf(_ShelfByNode[Attachment, Attached]):
    """Attached volumes by node."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, frozenset[str]] = {}

    def _make_view(self) -> Attached:
        self._last = dict(self._last)
        for name in self._changed:
            self._last[name] = frozenset(each.volume_name for each in self._by_node[name].values())
        self._changed.clear()
        return self._last
