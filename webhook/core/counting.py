"""Who counts where: the members of the group, by domain, at their worst.

A member counts wherever it is or may still come to be, at most once in each domain:

* a visible pod at its node, else where its own spec pins it, else where the scheduler has nominated it;
* a live entry at its domain, whether its pod is visible or not: the answer may still be on its way;
* a desired member without a node whose bound volumes allow one domain only: it will return there. So will one
  without a pod to the node where its volume is being made.

Not counted are the pod to be placed, its entries included; pods that have finished, as pods (their members still
return to their data); pods that are no longer desired; failed members that are not Ready, as long as they
have the claim that they failed with. The entries of all of them count until they are over. Terminating pods
count while they are there.

A member may have no known domain: its node is gone, and neither its decision record nor its volume names one.
One whose node is there but lacks the topology label is in no domain; it is reported and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.core import keys
from webhook.core.decision_record import token_of
from webhook.core.model import Entry, Group, Placing
from webhook.core.objects import Claim, LabelSelector, Pod, PodAffinityTerm
from webhook.core.whereabouts import Place, Whereabouts


@dataclass(frozen=True, slots=True)
class Census:
    """The group without the pod to be placed.

    `members`: the names of those that count, by domain in use. `hosts`: the same by node name. `occupied`:
    domains where a pod of the group is or may come to be, counted or not. `guards`: (topology key, value) of
    the nodes that a guarded member keeps others off, with its name. `open_members`: Pending ones without
    the guard that could land anywhere. `unknown`: members whose domain is not known. `problems`: in words.
    `in_use`: how many domains hold a member for certain.
    """

    members: Mapping[str, frozenset[str]]
    in_use: int
    hosts: Mapping[str, frozenset[str]]
    occupied: frozenset[str]
    guards: Mapping[tuple[str, str], str]
    open_members: frozenset[str]
    unknown: tuple[str, ...]
    problems: tuple[str, ...]

    def count(self, domain: str) -> int:
        """How many members count in the domain."""
        return len(self.members.get(domain, ()))

    def may_join(self, domain: str) -> frozenset[str]:
        """The open members that do not count in the domain already."""
        return self.open_members - self.members.get(domain, frozenset())


def take_census(where: Whereabouts, placing: Placing) -> Census:
    """Count the group for placing this pod."""
    others = [pod for pod in where.snapshot.pods if pod.name != placing.pod.name]
    seen = {pod.name: tuple(where.of_pod(pod)) for pod in others if not pod.finished}
    counted = [pod for pod in others if not pod.finished and _counts(where, pod)]
    places = [place for pod in counted for place in seen[pod.name]]
    in_flight = _in_flight(where, others, placing)
    places += map(where.of_entry, in_flight)
    places += _returning(where, others, placing)
    everywhere = [*places, *(place for found in seen.values() for place in found)]
    return Census(
        members=_grouped((place.domain or "", place.member) for place in places),
        in_use=_in_use(place for place in places if where.is_desired(place.member)),
        hosts=_grouped((place.node, place.member) for place in places),
        occupied=frozenset(place.domain for place in everywhere if place.domain),
        guards=_guards(where, [pod for pod in others if not pod.finished], in_flight),
        open_members=frozenset(pod.name for pod in counted if _is_open(where, pod)),
        unknown=tuple(sorted({place.member for place in places if place.domain is None})),
        problems=_unlabelled(places, where.topology_key),
    )


def guard_key(pod: Pod, group: Group) -> str:
    """The topology key of the guard that the pod carries: the annotation *and* the equal term; "" if it has none."""
    key = pod.annotations.get(keys.GUARD, "")
    return key if any(is_guard(term, key, group) for term in pod.anti_affinity) else ""


def is_guard(term: PodAffinityTerm, key: str, group: Group) -> bool:
    """Whether a term of one of the group's namespace is the group's guard by this topology key."""
    return (
        term.topology_key == key
        and term.selector == LabelSelector(dict(group.selector))
        and set(term.namespaces) <= {group.namespace}
        and term.namespace_selector is None
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Members by place, in order of the places' names; "" is no place."""
    found: dict[str, set[str]] = {}
    for place, member in pairs:
        found.setdefault(place, set()).add(member)
    return {place: frozenset(found[place]) for place in sorted(found) if place}


def _in_use(places: Iterable[Place]) -> int:
    """The fewest domains that the members can be in, one that counts in several being in one of them in the end.

    The cap rises with the number, so what may not be there must not raise it.
    """
    by_member: dict[str, set[str]] = {}
    for place in places:
        if place.domain:
            by_member.setdefault(place.member, set()).add(place.domain)
    found, seen = 0, set[str]()
    # Those first of whom it is known where they are. Whoever may be in none of the domains before needs one more.
    for domains in sorted(by_member.values(), key=lambda domains: (len(domains), sorted(domains))):
        found += domains.isdisjoint(seen)
        seen |= domains
    return found


def _unlabelled(places: Iterable[Place], topology_key: str) -> tuple[str, ...]:
    found = {(place.member, place.node) for place in places if place.domain == ""}
    return tuple(
        f"{member} is on node {node}, which has no label {topology_key}: it counts in no domain"
        for member, node in sorted(found)
    )


def _counts(where: Whereabouts, pod: Pod) -> bool:
    return where.is_desired(pod.name) and not _has_failed(where, pod.name, where.claims_of(pod), ready=pod.ready)


def _has_failed(where: Whereabouts, member: str, claims: Sequence[Claim], *, ready: bool) -> bool:
    """Whether the owner has given the member up. A pod of its name on another claim is a new member."""
    uid = where.snapshot.desired.failure_members.get(member)
    if uid is None or ready:
        return False
    return uid == "" or any(claim.uid == uid for claim in claims)


def _in_flight(where: Whereabouts, pods: Sequence[Pod], placing: Placing) -> Sequence[Entry]:
    """The answers that may still put others somewhere: those whose token no visible pod carries yet."""
    entries = [entry for entry in where.snapshot.entries if entry.member != placing.pod.name]
    recorded = {entry.member for entry in entries}
    carried = {(pod.name, token_of(pod)) for pod in pods if pod.name in recorded}
    return [entry for entry in entries if (entry.member, entry.token) not in carried]


def _returning(where: Whereabouts, pods: Sequence[Pod], placing: Placing) -> Iterator[Place]:
    """Desired members without a pod, or with one that has finished, whose data waits for them in one domain."""
    absent = frozenset(where.snapshot.desired.names) - {pod.name for pod in pods} - {placing.pod.name}
    owned = _owned(where.claims.values(), absent)
    owned |= {pod.name: where.claims_of(pod) for pod in pods if pod.finished and where.is_desired(pod.name)}
    for member, claims in sorted(owned.items()):
        if not _has_failed(where, member, claims, ready=False) and (domain := where.of_claims(claims)):
            yield Place(member, domain)


def _owned(claims: Iterable[Claim], members: frozenset[str]) -> dict[str, Sequence[Claim]]:
    """The claims of members without a pod, by their names: `<template>-<member>`, where both may have hyphens."""
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        rest = claim.name
        while rest:
            rest = rest.partition("-")[2]
            if rest in members:
                found.setdefault(rest, []).append(claim)
    return dict(found)


def _guards(where: Whereabouts, visible: Iterable[Pod], in_flight: Iterable[Entry]) -> dict[tuple[str, str], str]:
    """The nodes, as (key, label value), that guarded members keep others off: of two members the first by name.

    The scheduler asks neither whether a member counts nor whether it runs already: a pinned one will.
    """
    found: dict[tuple[str, str], str] = {}
    for pod in sorted(visible, key=lambda pod: pod.name):
        key = guard_key(pod, where.snapshot.group)
        name = where.settled_node(pod) if key else ""
        if not name:
            continue
        node = where.index.by_name.get(name)
        value = where.domain_at(pod, name) if key == where.topology_key else node and node.labels.get(key)
        if value:
            found.setdefault((key, value), pod.name)
    for entry in in_flight:
        if entry.guarded:
            found.setdefault((entry.topology_key, entry.domain), entry.member)
    return found


def _is_open(where: Whereabouts, pod: Pod) -> bool:
    """Whether the pod could still land in any domain. One that is going away cannot be bound any more."""
    if pod.deleting or where.assigned_node(pod) or where.of_data(where.claims_of(pod)):
        return False
    return guard_key(pod, where.snapshot.group) != where.topology_key
