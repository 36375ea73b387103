"""The JSON Patch of one pod: pin, guard and annotations (docs/design.md, section 6).

What is ours is put in, replaced where it stands, or taken away; everything else stays as it is. The pod is
a plain dict throughout: fields that nobody here knows survive because nothing reads them.

tidb-operator v2 applies its pods again and again (server-side apply). A field that it sets and that we
changed would fail each later apply with 422, for ever; so of its pods the required node affinity, the
required anti-affinity and the nodeSelector are only ever touched where the requester set none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from webhook.core import guard, keys, pin
from webhook.core.decision_record import decision_annotation
from webhook.core.free_fields import NO_GUARD, NO_PIN, FreeFields
from webhook.core.jsonpatch import Operation, PatchError, apply, difference, duplicate, put
from webhook.core.model import Decision, Family, Group
from webhook.core.outcomes import PINNING, Cause, Outcome
from webhook.core.pin import Marks, Wanted, marks_of
from webhook.core.shapes import inside, items, mapping, text

__all__ = ["PatchError", "PatchResult", "free_fields_of", "patch_for", "without_ours"]

_ANNOTATIONS = ("metadata", "annotations")
_REVISED = {"metadata": ("annotations",), "spec": ("affinity", "nodeSelector")}
# The innermost first.
_MAY_BE_EMPTY = (
    guard.REQUIRED,
    pin.REQUIRED,
    guard.REQUIRED[:-1],
    pin.REQUIRED[:-1],
    pin.REQUIRED[:2],
    pin.NODE_SELECTOR,
    _ANNOTATIONS,
)
_MATCHES_NOTHING = "its required node affinity has no term that matches a node"


@dataclass(frozen=True, slots=True)
class PatchResult:
    """What is sent for one pod.

    `operations` may be empty; `patched` is the pod with them applied. `decision` is the one that was given,
    or the one that the pod's own fields left: then its outcome, cause and detail differ. `refused`: there is
    no way to keep the pod apart, answer 429; the outcome is denied and nothing is patched.
    """

    operations: list[Operation]
    patched: dict[str, Any]
    decision: Decision
    refused: Cause | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome that was reached."""
        return self.decision.outcome


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the pod shall hold of ours; "" for what it shall not hold.

    `wanted`: in its node affinity. `hostname`: in its nodeSelector. `guard`: the topology key of our
    anti-affinity term. `refused`: it can hold no guard, and needs one.
    """

    decision: Decision
    wanted: Wanted = pin.NOTHING
    hostname: str = ""
    guard: str = ""
    refused: bool = False


def patch_for(manifest: dict[str, Any], group: Group | None, decision: Decision, token: str | None) -> PatchResult:
    """The patch that gives a pod what was decided for it.

    `manifest` is the pod as the review holds it; it is not changed. `group` None: the pod is no member, and
    is not touched. `token`: that of its entry in the ledger, None if it has none. Raises PatchError if the
    patch would not do what was decided, or more than that.
    """
    if group is None or decision.outcome in (Outcome.UNCHANGED, Outcome.DENIED):
        return PatchResult([], manifest, decision)
    plan = _planned(without_ours(manifest, group), group, decision)
    if plan.refused:
        return PatchResult([], manifest, plan.decision, Cause.REQUESTER_FIELDS)
    target = _revisable(manifest)
    _revise(target, group, marks_of(manifest), plan)
    _annotate(target, plan, token)
    operations = difference(manifest, target)
    patched = apply(manifest, operations)
    _check(manifest, target, patched, group, plan)
    return PatchResult(operations, patched, plan.decision)


def free_fields_of(theirs: dict[str, Any], group: Group) -> FreeFields:
    """What a pod without anything of ours leaves to us. Known before a node is promised to it, and kept for it."""
    if not _is_applied_again(group):
        return FreeFields()
    terms = [(term, text(inside(term, "topologyKey"))) for term in guard.terms_of(theirs)]
    covering = frozenset(key for term, key in terms if guard.keeps_off_group(term, group, key))
    return FreeFields(
        pin=pin.terms_of(theirs) is None,
        hostname=not inside(theirs, *pin.NODE_SELECTOR),
        guards=covering if terms else None,
    )


def _planned(theirs: dict[str, Any], group: Group, decision: Decision) -> _Plan:
    """What to put in, given the pod without anything of ours."""
    plan = _Plan(decision)
    if decision.outcome in PINNING:
        plan = _plan_pin(theirs, group, plan)
    if plan.decision.outcome is Outcome.GUARDED or plan.decision.guard_too:
        plan = _plan_guard(theirs, group, plan)
    return plan


def _plan_pin(theirs: dict[str, Any], group: Group, plan: _Plan) -> _Plan:
    decision = plan.decision
    if not decision.node:
        raise PatchError(f"{decision.outcome.value} names no node")
    terms = pin.terms_of(theirs)
    if terms is not None and all(pin.is_empty(term) for term in terms):
        return replace(plan, decision=_unpinned(decision, Cause.NO_SAFE_NODE, _MATCHES_NOTHING))
    free = free_fields_of(theirs, group)
    if free.pin:
        return replace(plan, wanted=Wanted(node=decision.node))
    if free.can_pin(decision.hostname):
        return replace(plan, hostname=decision.hostname)
    return replace(plan, decision=_unpinned(decision, Cause.REQUESTER_FIELDS, NO_PIN))


def _plan_guard(theirs: dict[str, Any], group: Group, plan: _Plan) -> _Plan:
    key = plan.decision.topology_key
    terms = guard.terms_of(theirs)
    avoids = plan.decision.avoids if plan.decision.outcome is Outcome.GUARDED else ()
    with_key = replace(plan, wanted=replace(plan.wanted, exists=key, avoids=avoids))
    if not _is_applied_again(group):
        there = any(guard.is_guard_term(term, group, key) for term in terms)
        return replace(with_key, guard="" if there else key)
    free = free_fields_of(theirs, group)
    if not free.can_guard(key):
        denied = replace(_unpinned(plan.decision, Cause.REQUESTER_FIELDS, NO_GUARD), outcome=Outcome.DENIED)
        return _Plan(denied, refused=True)
    if free.guards is not None:
        # Its own term does it.
        return plan
    return replace(with_key if free.pin else plan, guard=key)


def _unpinned(decision: Decision, cause: Cause, detail: str) -> Decision:
    """The decision for a pod that cannot be pinned: it waits; one that returns is held by its volume."""
    outcome = Outcome.RETURNED_WAITING if decision.outcome is Outcome.RETURNED else Outcome.GUARDED
    return replace(decision, outcome=outcome, cause=cause, detail=detail, node="", guard_too=False)


def _is_applied_again(group: Group) -> bool:
    """Whether the pods of this group are applied again by their operator: their owner is no StatefulSet."""
    return group.family is Family.OPERATOR_V2


def _revise(pod: dict[str, Any], group: Group, marks: Marks, plan: _Plan) -> None:
    exclusive = _is_applied_again(group)
    pin.revise(pod, marks, plan.wanted, exclusive=exclusive)
    pin.revise_node_selector(pod, marks, hostname=plan.hostname)
    guard.revise(pod, group, marks.guard, topology_key=plan.guard, exclusive=exclusive)


def _annotate(pod: dict[str, Any], plan: _Plan, token: str | None) -> None:
    member = text(inside(pod, "metadata", "name"))
    pinned, key_exists = bool(plan.hostname), bool(plan.wanted.exists)
    avoids = plan.wanted.avoids
    record = decision_annotation(
        plan.decision, member, token, selector_pin=pinned, key_exists=key_exists, avoids=avoids
    )
    assigned = plan.decision.node if plan.decision.outcome in PINNING else ""
    _set_annotations(pod, {keys.ASSIGNED_NODE: assigned, keys.DECISION: record, keys.GUARD: plan.guard})


def _set_annotations(pod: dict[str, Any], annotations: dict[str, str]) -> None:
    """Set annotations in place; "" takes one away."""
    for key, value in annotations.items():
        if value:
            put(pod, (*_ANNOTATIONS, key), value)
        elif key in mapping(inside(pod, *_ANNOTATIONS)):
            del pod["metadata"]["annotations"][key]


def without_ours(manifest: dict[str, Any], group: Group) -> dict[str, Any]:
    """A copy of the pod as its requester made it."""
    pod = _revisable(manifest)
    _revise(pod, group, marks_of(manifest), _Plan(Decision(Outcome.UNTOUCHED)))
    _set_annotations(pod, dict.fromkeys((keys.ASSIGNED_NODE, keys.DECISION, keys.GUARD), ""))
    return pod


def _revisable(manifest: dict[str, Any]) -> dict[str, Any]:
    """The pod with copies of the parts that may be revised; the rest is shared, and nobody changes it."""
    pod = dict(manifest)
    for parent, names in _REVISED.items():
        if isinstance(pod.get(parent), dict):
            pod[parent] = {name: duplicate(raw) if name in names else raw for name, raw in pod[parent].items()}
    return pod


def _check(
    manifest: dict[str, Any], target: dict[str, Any], patched: dict[str, Any], group: Group, plan: _Plan
) -> None:
    """Raise PatchError unless the patched pod is the requester's pod and what was planned, no more and no less.

    Taking ours away from both leaves the same pod: so nothing else was changed, every requirement of the
    requester's still holds (never widened), and the next review will recognise what is ours.
    """
    if patched != target:
        raise PatchError("the patch does not give the pod that it was made from")
    if _settled(without_ours(patched, group)) != _settled(without_ours(manifest, group)):
        raise PatchError("the patch changes more of the pod than what is ours")
    terms = [term for term in pin.terms_of(patched) or [] if not pin.is_empty(term)]
    if plan.wanted.node and not (terms and all(pin.is_pinned(term, plan.wanted.node) for term in terms)):
        raise PatchError(f"the patch does not pin the pod to {plan.wanted.node}")
    if plan.wanted.exists and not all(pin.has_key_exists(term, plan.wanted.exists) for term in terms):
        raise PatchError(f"the patch lets the pod onto nodes without {plan.wanted.exists}")
    avoids = plan.wanted.avoids
    if avoids and not all(pin.has_key_not_in(term, plan.wanted.exists, avoids) for term in terms):
        raise PatchError(f"the patch lets the pod into {', '.join(avoids)}")
    if plan.hostname and inside(patched, *pin.NODE_SELECTOR, keys.HOSTNAME) != plan.hostname:
        raise PatchError(f"the patch does not pin the pod to the host {plan.hostname}")
    if plan.guard and not any(guard.is_guard_term(term, group, plan.guard) for term in guard.terms_of(patched)):
        raise PatchError(f"the patch does not keep the pod off its group by {plan.guard}")


def _settled(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod, changed in place, without the empty values on our paths, which mean the same as absent ones.

    No terms at all match no node: an empty required node affinity is not absent.
    """
    for term in pin.terms_of(pod) or []:
        for name in ("matchFields", "matchExpressions"):
            if isinstance(term, dict) and not items(term.get(name)):
                term.pop(name, None)
    for path in _MAY_BE_EMPTY:
        value, parent = inside(pod, *path), inside(pod, *path[:-1])
        if isinstance(parent, dict) and (value is None or (path != pin.REQUIRED and value in ({}, []))):
            parent.pop(path[-1], None)
    return pod
