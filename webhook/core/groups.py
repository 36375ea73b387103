"""Which group a pod belongs to, and which pods and claims belong to a group.

A group is namespace + cluster + component. Three families of labels make a pod a member, looked at in this
order: tidb-operator v2, whose pods also carry the labels of v1; tidb-operator v1; and any StatefulSet whose
pod template opts in by the label `tidb-ha-webhook.io/class`. Labels alone do not suffice: backup and restore
jobs, TiBR servers and copies made by hand carry them too, so the controlling owner must be of the right kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from webhook.core import keys
from webhook.core.model import Family, Group, MemberClass
from webhook.core.objects import Claim, OwnerReference, Pod
from webhook.core.outcomes import Cause
from webhook.core.shapes import inside, texts

# The one list of components that are kept apart; the chart and the floor must name the same ones.
MEMBER_CLASSES: Final[Mapping[str, MemberClass]] = MappingProxyType(
    {"pd": MemberClass.QUORUM, "dm-master": MemberClass.QUORUM, "tikv": MemberClass.REPLICATED}
)

V1_NAMES: Final = ("tidb-cluster", "dm-cluster")
V2_API_GROUP: Final = "core.pingcap.com"
STATEFUL_SET_API_GROUPS: Final = ("apps", "apps.pingcap.com")

V1_SELECTOR_KEYS: Final = (keys.V1_MANAGED_BY, keys.V1_NAME, keys.V1_INSTANCE, keys.V1_COMPONENT)
V2_SELECTOR_KEYS: Final = (keys.V2_MANAGED_BY, keys.V2_CLUSTER, keys.V2_COMPONENT)

# A StatefulSet's ordinals are 32-bit numbers; longer runs of digits are part of a name.
ORDINAL_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class Recognised:
    """The pod's group, or None with the cause (NOT_A_MEMBER, UNUSABLE_SELECTOR) and the reason in words."""

    group: Group | None
    cause: Cause = Cause.NONE
    detail: str = ""


def recognise(pod: Pod, owner: Mapping[str, Any] | None = None) -> Recognised:
    """The group that the pod is a member of.

    `owner` is the StatefulSet that owns the pod, as the API server writes it; only generic sets need it
    (`needs_owner`), and without it such a pod is in no group.
    """
    if pod.labels.get(keys.V2_MANAGED_BY) == keys.TIDB_OPERATOR:
        recognised = _recognise_v2(pod)
    elif _has_v1_labels(pod.labels):
        recognised = _recognise_v1(pod)
    else:
        recognised = _not_a_member(f"no labels of tidb-operator and no label {keys.CLASS_LABEL}")
    if recognised.group is None and keys.CLASS_LABEL in pod.labels:
        return _recognise_generic(pod, owner)
    return recognised


def needs_owner(pod: Pod) -> bool:
    """Whether `recognise` needs the pod's StatefulSet: a generic set's selector is not in the pod."""
    return keys.CLASS_LABEL in pod.labels and _is_stateful_set(pod.owner) and recognise(pod).group is None


def is_member(group: Group, pod: Pod) -> bool:
    """Whether a pod that exists is of this group; a list by the group's selector may hold others.

    A pod without a controller still is: `kubectl delete --cascade=orphan`, which tidb-operator's manuals ask
    for when volumes change, leaves the members running under their names.
    """
    if pod.namespace != group.namespace or not _carries(group, pod.labels):
        return False
    if group.family is Family.OPERATOR_V2:
        return pod.owner is None or pod.owner.api_group == V2_API_GROUP
    if pod.owner is not None and not _is_stateful_set(pod.owner):
        return False
    if group.family is Family.OPERATOR_V1:
        return True
    # Selectors of two sets may overlap, so labels do not tell their pods apart.
    return _set_of(pod.name) == group.cluster if pod.owner is None else pod.owner.name == group.cluster


def owns_claim(group: Group, claim: Claim) -> bool:
    """Whether a claim is one of this group's by its labels; only such claims can be the lock claim.

    Claims of a generic set must have the names that its controller gives (`<template>-<set>-<ordinal>`):
    where the selectors of two sets overlap, one set's ledger must not lie on the other's claim.
    """
    if claim.namespace != group.namespace or not _carries(group, claim.labels):
        return False
    return group.family is not Family.GENERIC or _set_of(claim.name).endswith(f"-{group.cluster}")


def claims_of(member_name: str, pod: Pod | None, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The member's claims among `claims`: those that its pod names, in the pod's order.

    Where there is no pod, those called `<template>-<member>`, in the order given.
    """
    if pod is not None:
        by_name = {claim.name: claim for claim in claims}
        return tuple(by_name[name] for name in pod.claim_names if name in by_name)
    return tuple(claim for claim in claims if member_name and claim.name.endswith(f"-{member_name}"))


def ordinal_of(name: str) -> int | None:
    """The ordinal in the name of a StatefulSet's pod, None if it has none; a v2 name's suffix is not one."""
    parent, _, digits = name.rpartition("-")
    if not parent or not digits.isascii() or not digits.isdigit() or len(digits) > ORDINAL_DIGITS:
        return None
    return int(digits)


def _recognise_v2(pod: Pod) -> Recognised:
    component, cluster = pod.labels.get(keys.V2_COMPONENT, ""), pod.labels.get(keys.V2_CLUSTER, "")
    if component not in MEMBER_CLASSES:
        return _not_a_member(f"component {component or '(none)'} of tidb-operator v2 is not kept apart")
    if not cluster:
        return _not_a_member(f"the label {keys.V2_CLUSTER} is missing")
    if pod.owner is None or pod.owner.api_group != V2_API_GROUP:
        return _not_a_member(f"its controller is {_owner_text(pod.owner)}, not an instance of {V2_API_GROUP}")
    return Recognised(_operator_group(pod, Family.OPERATOR_V2, cluster, component, V2_SELECTOR_KEYS))


def _recognise_v1(pod: Pod) -> Recognised:
    component, instance = pod.labels.get(keys.V1_COMPONENT, ""), pod.labels.get(keys.V1_INSTANCE, "")
    if component not in MEMBER_CLASSES:
        return _not_a_member(f"component {component or '(none)'} of tidb-operator v1 is not kept apart")
    if not instance:
        return _not_a_member(f"the label {keys.V1_INSTANCE} is missing")
    if not _is_stateful_set(pod.owner):
        return _not_a_member(f"its controller is {_owner_text(pod.owner)}, not a StatefulSet")
    return Recognised(_operator_group(pod, Family.OPERATOR_V1, instance, component, V1_SELECTOR_KEYS))


def _recognise_generic(pod: Pod, owner: Mapping[str, Any] | None) -> Recognised:
    # A class that is none is no reason to leave a pod alone whose owner wants it kept apart: `options.of_pod`.
    value = pod.labels[keys.CLASS_LABEL]
    member_class = MemberClass(value) if value in tuple(MemberClass) else MemberClass.QUORUM
    if pod.owner is None or not _is_stateful_set(pod.owner):
        return _not_a_member(f"its controller is {_owner_text(pod.owner)}, not a StatefulSet")
    if owner is None:
        return _unusable(f"StatefulSet {pod.owner.name} was not found")
    selector = texts(inside(owner, "spec", "selector", "matchLabels"))
    if not selector:
        return _unusable(f"the selector of StatefulSet {pod.owner.name} has no matchLabels")
    if not selector.items() <= pod.labels.items():
        return _unusable(f"the selector of StatefulSet {pod.owner.name} does not select this pod")
    group = Group(
        namespace=pod.namespace,
        cluster=pod.owner.name,
        component=member_class.value,
        family=Family.GENERIC,
        member_class=member_class,
        selector=tuple(sorted(selector.items())),
    )
    return Recognised(group)


def _operator_group(pod: Pod, family: Family, cluster: str, component: str, selector: Sequence[str]) -> Group:
    return Group(
        namespace=pod.namespace,
        cluster=cluster,
        component=component,
        family=family,
        member_class=MEMBER_CLASSES[component],
        selector=tuple((key, pod.labels[key]) for key in selector),
    )


def _has_v1_labels(labels: Mapping[str, str]) -> bool:
    return labels.get(keys.V1_MANAGED_BY) == keys.TIDB_OPERATOR and labels.get(keys.V1_NAME) in V1_NAMES


def _carries(group: Group, labels: Mapping[str, str]) -> bool:
    if group.family is Family.OPERATOR_V1 and labels.get(keys.V2_MANAGED_BY) == keys.TIDB_OPERATOR:
        return False
    return all(labels.get(key) == value for key, value in group.selector)


def _set_of(name: str) -> str:
    """What precedes the ordinal in a name, "" if there is none."""
    return "" if ordinal_of(name) is None else name.rpartition("-")[0]


def _is_stateful_set(owner: OwnerReference | None) -> bool:
    return owner is not None and owner.kind == "StatefulSet" and owner.api_group in STATEFUL_SET_API_GROUPS


def _owner_text(owner: OwnerReference | None) -> str:
    return "nobody" if owner is None else f"{owner.kind} {owner.name} of {owner.api_group or 'core'}"


def _not_a_member(why: str) -> Recognised:
    return Recognised(None, Cause.NOT_A_MEMBER, why)


def _unusable(why: str) -> Recognised:
    return Recognised(None, Cause.UNUSABLE_SELECTOR, why)
