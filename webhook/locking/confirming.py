"""Planning on what was proposed: a node that was not read in this round is read before it is promised.

The inventory may be some seconds old. The node that was chosen by it, and the pods there, are read directly; if
the pod cannot go there any more the next in rank is read, at most three for a pod. Then it waits, guarded: a pin to
a node that cannot take the pod is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from webhook.core.fresh import with_fresh
from webhook.core.model import Decision, FreshNode, Placing, Snapshot
from webhook.core.node_index import index_of
from webhook.core.outcomes import Cause
from webhook.core.policy import without_pin
from webhook.core.rounds import Decide, Planned, plan_round
from webhook.locking.tools import RoundTools

MOST_CONFIRMED: Final = 3
"""Nodes that are read for one pod in one attempt."""

CHANGING: Final = "the nodes that could take it had changed when they were read once more"

Confirm = Callable[[frozenset[str]], Sequence[FreshNode]]
"""Reads these nodes directly."""


def plan_confirmed(
    snapshot: Snapshot, placings: Sequence[Placing], tools: RoundTools, confirm: Confirm
) -> tuple[Planned, ...]:
    """Plan a round so that every node in it has been confirmed."""
    for _ in range(MOST_CONFIRMED):
        planned = plan_round(snapshot, placings, tools.decide, tools.tokens)
        chosen = frozenset(plan.decision.node for plan in planned if plan.decision.node) - snapshot.confirmed
        if not chosen:
            return planned
        before = snapshot
        snapshot = with_fresh(snapshot, confirm(chosen))
        if all(_same(before, snapshot, name) for name in chosen):
            return planned
    return plan_round(snapshot, placings, _only_confirmed(tools.decide), tools.tokens)


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
        if not decision.node or decision.node in snapshot.confirmed:
            return decision
        return without_pin(decision, Cause.NO_SAFE_NODE, snapshot, placing, CHANGING)

    return decide_confirmed
