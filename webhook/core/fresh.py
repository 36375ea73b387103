"""Nodes and volumes that are read once more after they were chosen, put into the snapshot that they were chosen on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from decimal import Decimal

from webhook.core.model import FreshNode, NodeRoom, Snapshot
from webhook.core.node_index import index_of
from webhook.core.objects import Node, PodOnNode
from webhook.core.occupancy import EMPTY, crowd_of
from webhook.core.pool import pool_of
from webhook.core.storage import FreshVolume, PersistentVolume


def with_fresh(snapshot: Snapshot, fresh: Iterable[FreshNode]) -> Snapshot:
    """The snapshot with these nodes, and the pods bound to them, as they were read just now.

    Pods that are only pinned or nominated to a node are not found there yet; they stay as they were known. What is
    still as it was stays the same object, so that what was made of it serves again.
    """
    by_name = {each.name: each for each in fresh}
    crowd = crowd_of(snapshot.placed_pods)
    placed = {name: _with_arriving(each, crowd.on(name)) for name, each in by_name.items()}
    changed = {name: pods for name, pods in placed.items() if pods != crowd.on(name)}
    rooms = {name: room_of(pods) for name, pods in placed.items()}
    rooms = {name: room for name, room in rooms.items() if room != snapshot.rooms.get(name, EMPTY)}
    return replace(
        snapshot,
        nodes=_with_nodes(snapshot.nodes, by_name.values()),
        rooms={**snapshot.rooms, **rooms} if rooms else snapshot.rooms,
        placed_pods=crowd.moved(changed) if changed else snapshot.placed_pods,
        confirmed=snapshot.confirmed | by_name.keys(),
    )


def with_fresh_volumes(snapshot: Snapshot, fresh: Iterable[FreshVolume]) -> Snapshot:
    """The snapshot with these volumes as they were read just now."""
    by_name = {each.name: each.volume for each in fresh}
    of_class: dict[str, Collection[PersistentVolume]] = dict(snapshot.volumes.of_class)
    for name, volumes in of_class.items():
        pool = pool_of(volumes)
        changed = {each: volume for each, volume in by_name.items() if pool.find(each) not in (None, volume)}
        if changed:
            of_class[name] = pool.changed(changed)
    confirmed = snapshot.volumes.confirmed | by_name.keys()
    return replace(snapshot, volumes=replace(snapshot.volumes, of_class=of_class, confirmed=confirmed))


def _with_arriving(fresh: FreshNode, known: Iterable[PodOnNode]) -> tuple[PodOnNode, ...]:
    """The pods of a node: those that are bound as they were read now, in the known order where they are the same."""
    bound = {(pod.namespace, pod.name): pod for pod in fresh.pods}
    kept = [bound.pop((pod.namespace, pod.name), None if pod.bound else pod) for pod in known]
    return (*(pod for pod in kept if pod is not None), *bound.values())


def _with_nodes(nodes: tuple[Node, ...], fresh: Iterable[FreshNode]) -> tuple[Node, ...]:
    known = index_of(nodes).by_name
    changed = {each.name: each.node for each in fresh if known.get(each.name) != each.node}
    if not changed:
        return nodes
    current = {**known, **changed}
    return tuple(sorted((node for node in current.values() if node is not None), key=lambda node: node.name))


def room_of(pods: Iterable[PodOnNode]) -> NodeRoom:
    """What these pods ask of their node altogether."""
    total: dict[str, Decimal] = {}
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] = total[name] + amount if name in total else amount
    return NodeRoom(total)
