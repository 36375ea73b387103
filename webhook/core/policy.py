"""What the users' options make of a decision: skip, placement, when-unplaceable, other schedulers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from webhook.core import keys
from webhook.core.groups import claims_of
from webhook.core.model import Cause, Decision, Options, Outcome, Placement, Placing, Snapshot, WhenUnplaceable
from webhook.core.objects import Pod
from webhook.core.placement import decide

# Guards that were asked for, so that `when-unplaceable` has nothing to say about them.
_ASKED_FOR = frozenset({Cause.GUARD_OPTION, Cause.OTHER_SCHEDULER})
_WITHOUT_ANSWER = {WhenUnplaceable.DENY: Outcome.DENIED, WhenUnplaceable.ADMIT: Outcome.ADMITTED}


def untouched_cause(pod: Pod) -> Cause | None:
    """Why a pod is left alone whatever its group is like: its name, node or origin; None if it is not."""
    if pod.node_name or not pod.name or keys.MIRROR_POD in pod.annotations:
        return Cause.NOT_A_MEMBER
    if pod.scheduler_name == keys.TIDB_SCHEDULER:
        return Cause.TIDB_SCHEDULER
    return None


def decide_by_options(snapshot: Snapshot, placing: Placing, other_schedulers: Collection[str] = ()) -> Decision:
    """Decide by the HA rule, then by the options in force for the pod.

    `other_schedulers`: names of schedulers whose pods are guarded and never pinned.
    """
    options = snapshot.desired.options_of(placing.pod.name)
    key = options.topology_key
    if options.skip:
        return Decision(Outcome.UNTOUCHED, Cause.SKIP_OPTION, topology_key=key, problems=options.problems)
    decision = decide(snapshot, placing)
    if placing.pod.scheduler_name in other_schedulers:
        return _without_pin(decision, Cause.OTHER_SCHEDULER, snapshot, placing)
    if options.placement is Placement.GUARD:
        return _without_pin(decision, Cause.GUARD_OPTION, snapshot, placing)
    return decision


def when_unplaceable(decision: Decision, options: Options) -> Decision:
    """What a pod gets instead of the guard, where its user chose so."""
    if decision.outcome is not Outcome.GUARDED or decision.cause in _ASKED_FOR:
        return decision
    outcome = _WITHOUT_ANSWER.get(options.when_unplaceable)
    return replace(decision, outcome=outcome) if outcome is not None else decision


def _without_pin(decision: Decision, cause: Cause, snapshot: Snapshot, placing: Placing) -> Decision:
    """The decision for a pod that must not be pinned.

    One whose data lies where other members are must not get the guard either: it would never start again. Its
    volume holds it, as a pin would.
    """
    bound = any(claim.bound for claim in claims_of(placing.pod.name, placing.pod, snapshot.claims))
    beside_others = decision.outcome is Outcome.PINNED and bound and decision.counts.get(decision.domain, 0) > 0
    if beside_others or decision.outcome in (Outcome.RETURNED, Outcome.RETURNED_WAITING):
        return replace(decision, outcome=Outcome.RETURNED_WAITING, cause=cause, node="", hostname="", guard_too=False)
    if decision.outcome is Outcome.PINNED:
        return replace(decision, outcome=Outcome.GUARDED, cause=cause, node="", domain="", hostname="", guard_too=False)
    return replace(decision, cause=cause) if decision.outcome is Outcome.GUARDED else decision
