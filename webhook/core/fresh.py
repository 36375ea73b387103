"""Nodes that are read once more after they were chosen, put into the snapshot that they were chosen on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from webhook.core.model import FreshNode, NodeRoom, Snapshot
from webhook.core.objects import PodOnNode


def with_fresh(snapshot: Snapshot, fresh: Iterable[FreshNode]) -> Snapshot:
    """The snapshot with these nodes, and the pods bound to them, as they were read just now.

    Pods that are only pinned or nominated to a node are not found there yet; they stay as they were known.
    """
    by_name = {each.name: each for each in fresh}
    known = {node.name: node for node in snapshot.nodes}
    placed, rooms = dict(snapshot.placed_pods), dict(snapshot.rooms)
    for name, each in by_name.items():
        bound = {(pod.namespace, pod.name) for pod in each.pods}
        arriving = (pod for pod in placed.get(name, ()) if not pod.bound and (pod.namespace, pod.name) not in bound)
        placed[name] = (*each.pods, *arriving)
        rooms[name] = room_of(placed[name])
        known.pop(name, None)
        if each.node is not None:
            known[name] = each.node
    return replace(
        snapshot,
        nodes=tuple(sorted(known.values(), key=lambda node: node.name)),
        rooms=rooms,
        placed_pods=placed,
        confirmed=snapshot.confirmed | by_name.keys(),
    )


def room_of(pods: Iterable[PodOnNode]) -> NodeRoom:
    """What these pods ask of their node altogether."""
    total: dict[str, Decimal] = {}
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] = total[name] + amount if name in total else amount
    return NodeRoom(total)
