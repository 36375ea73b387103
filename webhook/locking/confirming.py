"""Planning on what was proposed: a node that was not read in this round is read before it is promised.

The inventory may be some seconds old. The node that was chosen by it, the pods there, and the volumes that the pod will
take there are read directly; if the pod cannot go there any more the next in rank is read, at most three for a pod.
Then it waits, guarded: a pin to a node that cannot take the pod is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from webhook.core.feasibility import volumes_to_take
from webhook.core.fresh import with_fresh, with_fresh_volumes
from webhook.core.model import Decision, Placing, Snapshot
from webhook.core.node_index import index_of
from webhook.core.outcomes import Cause
from webhook.core.policy import without_pin
from webhook.core.rounds import Decide, Planned, plan_round
from webhook.deadline import Deadline
from webhook.locking.tools import RoundTools

MOST_CONFIRMED: Final = 3
"""Nodes that are read for one pod in one attempt."""

CHANGING: Final = "the nodes that could take it had changed when they were read once more"


def plan_confirmed(
    snapshot: Snapshot, placings: Sequence[Placing], tools: RoundTools, deadline: Callable[[], Deadline]
) -> tuple[Planned, ...]:
    """Plan a round so that every node in it, and every volume that will be taken there, has been confirmed."""
    for _ in range(MOST_CONFIRMED):
        planned = plan_round(snapshot, placings, tools.decide, tools.tokens)
        nodes = frozenset(plan.decision.node for plan in planned if plan.decision.node) - snapshot.confirmed
        volumes = _to_take(snapshot, planned) - snapshot.volumes.confirmed
        if not nodes and not volumes:
            return planned
        before = snapshot
        if nodes:
            snapshot = with_fresh(snapshot, tools.cluster.confirm_nodes(nodes, deadline()))
        if volumes:
            snapshot = with_fresh_volumes(snapshot, tools.cluster.confirm_volumes(volumes, deadline()))
        kept = before.volumes.of_class == snapshot.volumes.of_class
        if kept and all(_same(before, snapshot, name) for name in nodes):
            return planned
    return plan_round(snapshot, placings, _only_confirmed(tools.decide), tools.tokens)


def _to_take(snapshot: Snapshot, planned: Iterable[Planned]) -> frozenset[str]:
    """The volumes that the pods of the round will take, one after another."""
    found: frozenset[str] = frozenset()
    for plan in planned:
        if plan.decision.node:
            found |= volumes_to_take(snapshot, plan.placing, plan.decision.node)
        if plan.entry is not None:
            snapshot = replace(snapshot, entries=(*snapshot.entries, plan.entry))
    return found


def _same(before: Snapshot, after: Snapshot, name: str) -> bool:
    """Whether the node and who is on it are still what was decided on."""
    return _node(before, name) == _node(after, name) and _pods(before, name) == _pods(after, name)


def _node(snapshot: Snapshot, name: str) -> object:
    return index_of(snapshot.nodes).by_name.get(name)


def _pods(snapshot: Snapshot, name: str) -> object:
    return sorted(snapshot.placed_pods.get(name, ()), key=lambda pod: (pod.namespace, pod.name))


def _only_confirmed(decide: Decide) -> Decide:
    def decide_confirmed(snapshot: Snapshot, placing: Placing) -> Decision:
        decision = decide(snapshot, placing)
        if not decision.node or _is_confirmed(snapshot, placing, decision.node):
            return decision
        return without_pin(decision, Cause.NO_SAFE_NODE, snapshot, placing, CHANGING)

    return decide_confirmed


def _is_confirmed(snapshot: Snapshot, placing: Placing, node_name: str) -> bool:
    volumes = volumes_to_take(snapshot, placing, node_name)
    return node_name in snapshot.confirmed and volumes <= snapshot.volumes.confirmed
