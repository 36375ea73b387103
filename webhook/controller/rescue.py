"""Which waiting pods are ours to free, and whether freeing one would help; pure.

A pod of ours that has never run may be deleted, so that its owner creates it anew and it is decided anew. That is
done only to pods that we hold where they are (by a pin, by the guard), only where somebody creates them again, and
only when the rule that the webhook decides by has something better for them *now*. Everything else is left alone,
and each refusal has its reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook.core import keys, options
from webhook.core.carriers import OptionCarriers
from webhook.core.counting import guard_key, take_census
from webhook.core.decision_record import DecisionRecord, record_from
from webhook.core.feasibility import infeasible_reason
from webhook.core.model import Decision, Desired, Group, Placing, Snapshot
from webhook.core.node_index import index_of
from webhook.core.objects import Pod
from webhook.core.outcomes import PINNING, UNREADABLE, Cause, Outcome
from webhook.core.policy import nothing_to_decide, untouched_cause
from webhook.core.repeated import own_placement
from webhook.core.safety import guard_reason
from webhook.core.volumes import claims_by_name, claims_of_pod
from webhook.core.whereabouts import Whereabouts

NODE_IS_GONE: Final = "the node is gone"
PENDING: Final = ("", "Pending")

# Guards that another life would get again, or that wait for something that only people can mend.
_ON_PURPOSE: Final = {
    Cause.GUARD_OPTION.value: "the option placement is Guard",
    Cause.OTHER_SCHEDULER.value: "another scheduler places it",
}
_FOR_GOOD: Final = {**_ON_PURPOSE, Cause.NO_LOCK_CLAIM.value: "it is guarded for want of a claim"}


class Kind(StrEnum):
    """How we hold a waiting pod."""

    PINNED = "pinned"
    GUARDED = "guarded"


@dataclass(frozen=True, slots=True)
class Held:
    """A pod of ours that waits, and how we hold it; `node` is the one that it is pinned to, "" for a guarded one."""

    pod: Pod
    group: Group
    kind: Kind
    node: str = ""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A pod that is not to be freed, whatever else might be there for it."""

    why: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What was found for a held pod as if it were created now.

    `problem`: why it cannot run where it is pinned, "" if it can. `unwanted`: why its owner would not create it
    again, "" if it would; `paused`: why it would not for now. `settling`: the scheduler has chosen a node for one
    of its claims, and waits for the volume.
    """

    decision: Decision
    problem: str = ""
    unwanted: str = ""
    paused: str = ""
    settling: bool = False


class Verdict(StrEnum):
    """What is to be done for a held pod."""

    LEAVE = "leave"
    STUCK = "stuck"
    FREE = "free"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict, and why. FREE only says that it helps now, not that it has been so for long enough."""

    verdict: Verdict
    why: str


def held_by_us(
    pod: Pod, group: Group, *, gated: bool = False, other_schedulers: Collection[str] = ()
) -> Held | LeftAlone:
    """How we hold this member, or why it is left alone. `gated`: it has scheduling gates."""
    if why := _not_waiting(pod, gated=gated):
        return LeftAlone(why)
    if pod.owner is None:
        return LeftAlone("it has no controller, so nobody would create it again")
    own = options.of_pod(group.component, pod, OptionCarriers())
    if (cause := untouched_cause(pod, own)) is not None:
        return LeftAlone(f"{cause.value}: it is not ours to place")
    if pod.scheduler_name in other_schedulers:
        return LeftAlone(_ON_PURPOSE[Cause.OTHER_SCHEDULER.value])
    record = record_from(pod.annotations.get(keys.DECISION))
    if record is not None and record.member == pod.name:
        return _by_record(pod, group, record)
    if keys.GUARD in pod.annotations:
        # The floor's: it leaves no record.
        return Held(pod, group, Kind.GUARDED)
    return LeftAlone("it carries neither a decision for its own name nor our guard")


def sight(snapshot: Snapshot, placing: Placing, held: Held, decision: Decision) -> Sight:
    """What a snapshot shows. `placing` is the pod as it is, pin and guard included; `decision` is for its next life."""
    own = claims_of_pod(held.pod, claims_by_name(snapshot))
    return Sight(
        decision=decision,
        problem=_problem(snapshot, placing, held.node) if held.kind is Kind.PINNED else "",
        unwanted=_unwanted(held.pod, snapshot.desired),
        paused=snapshot.desired.paused,
        settling=any(claim.selected_node and not claim.bound for claim in own),
    )


def judge(held: Held, seen: Sight) -> Finding:
    """Whether the pod should be freed."""
    finding = _judged(held, seen)
    if finding.verdict is Verdict.FREE and seen.paused:
        return Finding(Verdict.STUCK, f"its owner would not create it again: {seen.paused}")
    return finding


def _judged(held: Held, seen: Sight) -> Finding:
    decision = seen.decision
    if decision.cause in UNREADABLE:
        return Finding(Verdict.UNKNOWN, decision.detail or decision.cause.value)
    if seen.unwanted:
        return Finding(Verdict.LEAVE, f"its owner would not create it again: {seen.unwanted}")
    if held.kind is Kind.PINNED and not seen.problem:
        return Finding(Verdict.LEAVE, f"it can run on {held.node}")
    if held.kind is Kind.GUARDED and seen.settling:
        return Finding(Verdict.LEAVE, "the scheduler has chosen a node for its volume")
    if decision.outcome in PINNING and decision.node != held.node:
        return Finding(Verdict.FREE, f"{decision.node} is possible")
    if decision.outcome in PINNING and not decision.guard_too and guard_key(held.pod, held.group):
        # A sibling came there before it, which is within the cap, but not within its guard.
        return Finding(Verdict.FREE, f"{decision.node} is possible without its guard")
    if decision.outcome is Outcome.UNTOUCHED or decision.cause.value in _ON_PURPOSE:
        return Finding(Verdict.LEAVE, f"{decision.cause.value}: it is not ours to place")
    if decision.outcome is Outcome.GUARDED and (key := foreign_guard(held, seen)):
        return Finding(
            Verdict.FREE, f"its guard is by {key}, and {decision.topology_key} is what keeps its group apart"
        )
    return Finding(Verdict.STUCK, decision.detail or decision.cause.value or decision.outcome.value)


def foreign_guard(held: Held, seen: Sight) -> str:
    """The topology key of the pod's guard if it is not the group's, "" if it is or the pod has none.

    The floor knows no options, nor do we where they cannot be read. Such a pod could go anywhere by the group's key,
    so that all its siblings wait for it: two of them for each other.
    """
    key = guard_key(held.pod, held.group) if held.kind is Kind.GUARDED else ""
    return "" if key == seen.decision.topology_key else key


def _unwanted(pod: Pod, desired: Desired) -> str:
    if desired.members is not None:
        return "" if pod.name in desired.members else "it is not among those that its set wants"
    return "" if pod.name in desired.instances else "its instance is gone, or is being deleted"


def _not_waiting(pod: Pod, *, gated: bool) -> str:
    """Why a pod is not one that waits for a node, "" if it does."""
    if pod.deleting:
        return "it is being deleted"
    if pod.nominated_node_name:
        return "the scheduler is about to bind it"
    if why := nothing_to_decide(pod):
        return why
    if pod.phase not in PENDING:
        return "it has run"
    return "its scheduling gates hold it" if gated else ""


def _by_record(pod: Pod, group: Group, record: DecisionRecord) -> Held | LeftAlone:
    if record.outcome in PINNING:
        if own_placement(pod, group) is None:
            return LeftAlone("somebody has taken off what holds it")
        return Held(pod, group, Kind.PINNED, record.node)
    if record.outcome == Outcome.GUARDED:
        why = _FOR_GOOD.get(record.cause)
        return LeftAlone(why) if why else Held(pod, group, Kind.GUARDED)
    if record.outcome == Outcome.RETURNED_WAITING:
        return LeftAlone("its volume holds it")
    return LeftAlone(f"it is {record.outcome}: we do not hold it")


def _problem(snapshot: Snapshot, placing: Placing, node_name: str) -> str:
    node = next((node for node in snapshot.nodes if node.name == node_name), None)
    if node is None:
        return NODE_IS_GONE
    if reason := infeasible_reason(placing, node, snapshot):
        return reason
    # The scheduler may have put a guarded sibling there first, who then keeps this one off for good.
    census = take_census(Whereabouts.of(snapshot, index_of(snapshot.nodes)), placing)
    return guard_reason(census, node)
