"""A pod that comes with a decision of ours: whether that is its own, and whether the pod still holds it.

The API server calls again after other webhooks have changed the pod, who may have taken off what we put in; and a
template may be copied from a pod that once ran.
"""

from __future__ import annotations

from webhook.core import keys
from webhook.core.counting import guard_key
from webhook.core.decision_record import DecisionRecord, record_from
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.core.outcomes import PINNING, Outcome
from webhook.core.selectors import pinned_node

_PLACED = PINNING | {Outcome.RETURNED_WAITING}


def own_placement(pod: Pod, group: Group) -> DecisionRecord | None:
    """The record by which the pod was placed under its own name, if it still holds what that put in; else None."""
    record = _own_record(pod)
    if record is None or record.outcome not in _PLACED or (record.outcome in PINNING and not _is_pinned(pod, record)):
        return None
    # Pinned and guarded: both halves, or the pod is not kept apart.
    return record if keys.GUARD not in pod.annotations or guard_key(pod, group) else None


def has_own_guard(pod: Pod, group: Group) -> bool:
    """Whether the pod was guarded by us under its own name, and still is."""
    record = _own_record(pod)
    return record is not None and record.outcome == Outcome.GUARDED.value and bool(guard_key(pod, group))


def _own_record(pod: Pod) -> DecisionRecord | None:
    record = record_from(pod.annotations.get(keys.DECISION))
    return record if record is not None and record.member == pod.name else None


def _is_pinned(pod: Pod, record: DecisionRecord) -> bool:
    if record.hostname:
        return pod.node_selector.get(keys.HOSTNAME) == record.hostname
    return pinned_node(pod) == record.node != ""
