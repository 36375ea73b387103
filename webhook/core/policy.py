"""What the users' options make of a decision: skip, placement, when-unplaceable, other schedulers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from webhook.core import keys
from webhook.core.free_fields import NO_GUARD, NO_PIN
from webhook.core.model import Decision, Options, Placement, Placing, Snapshot, WhenUnplaceable
from webhook.core.node_index import index_of
from webhook.core.objects import Pod
from webhook.core.outcomes import PINNING, Cause, Outcome
from webhook.core.placement import decide
from webhook.core.whereabouts import Whereabouts

# Guards that were asked for, so that `when-unplaceable` has nothing to say about them.
ASKED_FOR = frozenset({Cause.GUARD_OPTION, Cause.OTHER_SCHEDULER})
_WITHOUT_ANSWER = {WhenUnplaceable.DENY: Outcome.DENIED, WhenUnplaceable.ADMIT: Outcome.ADMITTED}


def nothing_to_decide(pod: Pod) -> str:
    """Why nothing can be decided for a pod, whatever it is a member of; "" if something can.

    Such pods are not touched at all, not even by a record. They count where they are members.
    """
    if keys.MIRROR_POD in pod.annotations:
        return "it is the mirror of a static pod, which runs already"
    if pod.node_name:
        return "it has a node already"
    return "" if pod.name else "its name is made after admission"


def untouched_cause(pod: Pod, own: Options) -> Cause | None:
    """Why a member is left alone without any look at its group; None if it is not. `own`: by its own annotations."""
    if own.skip:
        return Cause.SKIP_OPTION
    # Two deciders must not work on one pod.
    return Cause.TIDB_SCHEDULER if pod.scheduler_name == keys.TIDB_SCHEDULER else None


def untouched(cause: Cause, options: Options) -> Decision:
    """The decision for a member that is left alone: it says which object has the option, where that is why."""
    detail = options.set_by.get(keys.SKIP, "") if cause is Cause.SKIP_OPTION else ""
    key, problems = options.topology_key, options.problems
    return Decision(Outcome.UNTOUCHED, cause, topology_key=key, detail=detail, problems=problems)


def decide_by_options(
    snapshot: Snapshot, placing: Placing, other_schedulers: Collection[str] = (), *, thorough: bool = True
) -> Decision:
    """Decide by the HA rule, then by the options in force for the pod and by what its own fields leave to us.

    `other_schedulers`: names of schedulers whose pods are guarded and never pinned. `thorough`: see `decide`.
    """
    options = snapshot.desired.options_of(placing.pod.name)
    if options.skip:
        return untouched(Cause.SKIP_OPTION, options)
    decision = decide(snapshot, placing, thorough=thorough)
    if placing.pod.scheduler_name in other_schedulers:
        return without_pin(decision, Cause.OTHER_SCHEDULER, snapshot, placing)
    if options.placement is Placement.GUARD:
        return without_pin(decision, Cause.GUARD_OPTION, snapshot, placing, options.set_by.get(keys.PLACEMENT, ""))
    if decision.outcome in PINNING and (obstacle := _obstacle(decision, placing)):
        return without_pin(decision, Cause.REQUESTER_FIELDS, snapshot, placing, obstacle)
    return decision


def when_unplaceable(decision: Decision, options: Options) -> Decision:
    """What a pod gets instead of the guard, where its user chose so.

    A guard that was asked for stays, also where trouble came before the question whether it was.
    """
    asked_for = decision.cause in ASKED_FOR or options.placement is Placement.GUARD
    if decision.outcome is not Outcome.GUARDED or asked_for:
        return decision
    outcome = _WITHOUT_ANSWER.get(options.when_unplaceable)
    return replace(decision, outcome=outcome) if outcome is not None else decision


def _obstacle(decision: Decision, placing: Placing) -> str:
    """What in the pod's own fields keeps us from doing what was decided, "" if nothing does."""
    if not placing.free_fields.can_pin(decision.hostname):
        return NO_PIN
    if decision.guard_too and not placing.free_fields.can_guard(decision.topology_key):
        return NO_GUARD
    return ""


def without_pin(decision: Decision, cause: Cause, snapshot: Snapshot, placing: Placing, detail: str = "") -> Decision:
    """The decision for a pod that must not be pinned.

    One whose data lies where other members are must not get the guard either: it would never start again. Its
    volume holds it, as a pin would.
    """
    if decision.outcome is Outcome.GUARDED:
        return replace(decision, cause=cause)
    if decision.outcome not in PINNING:
        return decision
    unpinned = replace(decision, cause=cause, node="", hostname="", guard_too=False, detail=detail)
    beside_others = decision.counts.get(decision.domain, 0) > 0 and _home(snapshot, placing) == decision.domain
    if decision.outcome is Outcome.RETURNED or beside_others:
        return replace(unpinned, outcome=Outcome.RETURNED_WAITING)
    return replace(unpinned, outcome=Outcome.GUARDED, domain="")


def _home(snapshot: Snapshot, placing: Placing) -> str:
    """The one domain that the pod's bound volumes allow, "" if they allow several or hold it nowhere."""
    where = Whereabouts.of(snapshot, index_of(snapshot.nodes))
    return where.of_data(where.claims_of(placing.pod))
