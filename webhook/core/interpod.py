"""Required affinity and anti-affinity between pods (the scheduler's InterPodAffinity).

Each term becomes a set of places, a place being a value of the term's topology key: those where a pod is that the
term selects. A node is then looked up, so that no node looks at any pod.

The guard that members of the own group carry is left out: whether it keeps the pod off is for the rule to judge,
by the consistent list (`safety.py`). What other anti-affinity there is between members is their owner's own, and a
pod that is no member may carry an equal term: a copy of a guarded one, or one of another set with this selector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from webhook.core.counting import is_guard
from webhook.core.filtering import MOST_COMPARISONS, Filter, Victims, is_victim, same_everywhere
from webhook.core.model import Group, Snapshot
from webhook.core.node_index import NodeIndex
from webhook.core.objects import LabelSelector, Node, Pod, PodAffinityTerm, PodOnNode
from webhook.core.occupancy import Occupancy
from webhook.core.selectors import is_usable, matches_labels, size_of

NO_AFFINITY: Final = "node(s) didn't match pod affinity rules"
OWN_ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
THEIR_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
TOO_MANY: Final = "the pod has too many terms of affinity to other pods for so many pods"
UNUSABLE: Final = "the pod's affinity to other pods cannot be used: a label selector in it is not valid"

Places = dict[str, dict[str, list[PodOnNode]]]
"""Who was found at which places: topology key → its value → the pods."""

Namespaces = Mapping[str, Mapping[str, str]]


def interpod_filter(pod: Pod, snapshot: Snapshot, occupancy: Occupancy, index: NodeIndex) -> Filter | None:
    """The filter of one pod; None if it has no such rules and nobody has any against it."""
    if any(not _is_usable(term) for term in (*pod.affinity, *pod.anti_affinity)):
        return same_everywhere("InterPodAffinity", UNUSABLE)
    near = _near(pod, occupancy)
    if sum(size_of(term.selector) for term in (*pod.affinity, *pod.anti_affinity)) * len(near) > MOST_COMPARISONS:
        return same_everywhere("InterPodAffinity", TOO_MANY)
    against = _against(pod, snapshot, occupancy, index)
    if not (pod.affinity or pod.anti_affinity or against):
        return None
    away_from, towards = _own_places(pod, snapshot.namespaces, near, index)
    leads = all(_selects(term, pod, pod, snapshot.namespaces, unknown=False) for term in pod.affinity)

    def is_with_others(node: Node, victims: Victims) -> bool:
        if all(_anyone(_at(node, towards, term.topology_key), victims) for term in pod.affinity):
            return True
        # The first pod of a series that wants to be together has nobody to go to.
        found = (other for by_value in towards.values() for pods in by_value.values() for other in pods)
        return leads and not _anyone(found, victims)

    def judge(node: Node, victims: Victims) -> str | None:
        if any(term.topology_key not in node.labels for term in pod.affinity) or not is_with_others(node, victims):
            return NO_AFFINITY
        if any(_anyone(_at(node, away_from, key), victims) for key in away_from):
            return OWN_ANTI_AFFINITY
        return THEIR_ANTI_AFFINITY if any(_anyone(_at(node, against, key), victims) for key in against) else None

    return Filter("InterPodAffinity", judge, resolvable=True)


def _near(pod: Pod, occupancy: Occupancy) -> Sequence[PodOnNode]:
    """The pods that its terms may be about."""
    terms = (*pod.affinity, *pod.anti_affinity)
    if not terms:
        return ()
    if any(term.namespaces or term.namespace_selector is not None for term in terms):
        return tuple(occupancy.crowd.everybody())
    return tuple(occupancy.crowd.in_namespace(pod.namespace))


def _own_places(pod: Pod, namespaces: Namespaces, near: Iterable[PodOnNode], index: NodeIndex) -> tuple[Places, Places]:
    """Where pods are that the pod must keep away from, and where those are that it must go to."""
    away_from: Places = {}
    towards: Places = {}
    for other in near:
        node = index.by_name.get(other.node_name)
        for term in pod.anti_affinity:
            if _selects(term, pod, other, namespaces, unknown=True):
                _put(away_from, term, node, other)
        if pod.affinity and all(_selects(term, pod, other, namespaces, unknown=False) for term in pod.affinity):
            for term in pod.affinity:
                _put(towards, term, node, other)
    return away_from, towards


def _against(pod: Pod, snapshot: Snapshot, occupancy: Occupancy, index: NodeIndex) -> Places:
    """Where pods are that keep this one away."""
    found: Places = {}
    # Also those that are gone by the consistent list, while the inventory still has them.
    members = {*snapshot.desired.names, *(member.name for member in snapshot.pods)}
    for other in occupancy.crowd.repelling(pod.namespace, pod.labels):
        for term in other.anti_affinity:
            if _is_members_guard(term, other, snapshot.group, members):
                continue
            if _selects(term, other, pod, snapshot.namespaces, unknown=True):
                _put(found, term, index.by_name.get(other.node_name), other)
    return found


def _is_members_guard(term: PodAffinityTerm, owner: PodOnNode, group: Group, members: Collection[str]) -> bool:
    is_member = owner.namespace == group.namespace and owner.name in members
    return is_member and bool(owner.guard) and is_guard(term, owner.guard, group)


def _put(places: Places, term: PodAffinityTerm, node: Node | None, pod: PodOnNode) -> None:
    value = node.labels.get(term.topology_key) if node else None
    if value is not None:
        places.setdefault(term.topology_key, {}).setdefault(value, []).append(pod)


def _at(node: Node, places: Places, topology_key: str) -> Sequence[PodOnNode]:
    """Who is at the node's place by this key."""
    value = node.labels.get(topology_key)
    return () if value is None else places.get(topology_key, {}).get(value, ())


def _anyone(pods: Iterable[PodOnNode], victims: Victims) -> bool:
    return any(not is_victim(pod, victims) for pod in pods)


def _selects(
    term: PodAffinityTerm, owner: Pod | PodOnNode, target: Pod | PodOnNode, namespaces: Namespaces, *, unknown: bool
) -> bool:
    """Whether the owner's term selects the target. `unknown`: what holds where the namespace's labels are not known."""
    return matches_labels(term.selector, target.labels) and _reaches(term, owner, target.namespace, namespaces, unknown)


def _reaches(
    term: PodAffinityTerm, owner: Pod | PodOnNode, namespace: str, namespaces: Namespaces, unknown: bool
) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return namespace == owner.namespace
    if namespace in term.namespaces:
        return True
    if term.namespace_selector is None or term.namespace_selector == LabelSelector():
        return term.namespace_selector is not None
    labels = namespaces.get(namespace)
    return unknown if labels is None else matches_labels(term.namespace_selector, labels)


def _is_usable(term: PodAffinityTerm) -> bool:
    return all(selector is None or is_usable(selector) for selector in (term.selector, term.namespace_selector))
