"""The nodes that the default scheduler would accept for a pod, with its own words for each it would not.

One small filter for each thing that the scheduler looks at, in its order; the first reason stands. Not looked
at yet: host ports, (anti-)affinity between pods, hard spread constraints, free volumes for unbound claims, room
made by preempting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from webhook.core.model import NodeRoom, Placing, Snapshot
from webhook.core.objects import Node, Pod, Taint
from webhook.core.selectors import matches_node, tolerates
from webhook.core.volumes import VolumeVerdict, claims_by_name, claims_of_pod, volume_verdict

# A filter gives the reason why the pod cannot go to the node, None if it can.
Filter = Callable[[Node], str | None]

# NotReady nodes are kept free by a taint, which comes some seconds later than the condition.
NOT_READY: Final = "node(s) were not ready"
UNSCHEDULABLE: Final = "node(s) were unschedulable"
UNTOLERATED: Final = "node(s) had untolerated taint(s)"
NO_MATCH: Final = "node(s) didn't match Pod's node affinity/selector"
TOO_MANY_PODS: Final = "Too many pods"

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
# Taints that say how a node is, not whom it is for; so they do not make its domain ineligible.
CONDITION_TAINTS: Final = "node.kubernetes.io/"
REPELLING: Final = ("NoSchedule", "NoExecute")

NO_ROOM: Final = NodeRoom()
ONE_POD: Final[Mapping[str, Decimal]] = {"pods": Decimal(1)}


def infeasible_reason(placing: Placing, node: Node, snapshot: Snapshot) -> str | None:
    """Why the scheduler would not accept the node for the pod, None if it would.

    For one node; for all of them make the filters once (`filters_for`).
    """
    claims = claims_of_pod(placing.pod, claims_by_name(snapshot))
    verdict = volume_verdict(claims, snapshot.volumes, (node,))
    return first_reason(filters_for(placing, snapshot, verdict), node)


def first_reason(filters: Sequence[Filter], node: Node) -> str | None:
    """The reason of the first filter that has one."""
    for judge in filters:
        reason = judge(node)
        if reason is not None:
            return reason
    return None


def filters_for(placing: Placing, snapshot: Snapshot, verdict: VolumeVerdict) -> tuple[Filter, ...]:
    """The filters of one pod; `verdict` is on its own claims and the nodes that will be asked about."""
    return (
        _readiness,
        _cordon(placing.pod),
        _taints(placing.pod),
        _node_affinity(placing.pod),
        _topology_label(snapshot.desired.options.topology_key),
        _resources(placing, snapshot.rooms),
        _volumes(verdict),
    )


def eligible(placing: Placing, node: Node, topology_key: str) -> bool:
    """Whether the node makes its domain eligible for the pod (the design's term).

    Cordon, readiness, room and volumes do not enter: a domain that is down for an hour is still one.
    """
    return (
        bool(node.labels.get(topology_key))
        and all(
            taint.key.startswith(CONDITION_TAINTS) or tolerates(placing.pod.tolerations, taint)
            for taint in node.taints
            if taint.effect in REPELLING
        )
        and _selects(placing.pod, node)
    )


def _readiness(node: Node) -> str | None:
    return None if node.ready else NOT_READY


def _cordon(pod: Pod) -> Filter:
    tolerated = tolerates(pod.tolerations, CORDON)
    return lambda node: UNSCHEDULABLE if node.unschedulable and not tolerated else None


def _taints(pod: Pod) -> Filter:
    def judge(node: Node) -> str | None:
        repelling = (taint for taint in node.taints if taint.effect in REPELLING)
        return None if all(tolerates(pod.tolerations, taint) for taint in repelling) else UNTOLERATED

    return judge


def _node_affinity(pod: Pod) -> Filter:
    return lambda node: None if _selects(pod, node) else NO_MATCH


def _selects(pod: Pod, node: Node) -> bool:
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    return matches_node(pod.node_affinity, node)


def _topology_label(topology_key: str) -> Filter:
    reason = f"node(s) had no label {topology_key}"
    return lambda node: None if node.labels.get(topology_key) else reason


def _resources(placing: Placing, rooms: Mapping[str, NodeRoom]) -> Filter:
    asked = [(name, quantity) for name, quantity in {**ONE_POD, **placing.requests}.items() if quantity > 0]

    def judge(node: Node) -> str | None:
        requested = rooms.get(node.name, NO_ROOM).requested
        for name, quantity in asked:
            offered = node.allocatable.get(name)
            if offered is None:
                # An extended resource that a node does not report is not there; anything else was not readable.
                if "/" in name and node.allocatable:
                    return f"Insufficient {name}"
            elif offered - requested.get(name, Decimal(0)) < quantity:
                return TOO_MANY_PODS if name == "pods" else f"Insufficient {name}"
        return None

    return judge


def _volumes(verdict: VolumeVerdict) -> Filter:
    return lambda node: verdict.reasons.get(node.name)
