"""Claims that have no volume yet: on which nodes one can be found or made (the scheduler's VolumeBinding).

A claim of a class that waits for its first consumer takes the smallest free volume of its class that fits and that
the node can use; where there is none, a provisioner makes one, if the class has one, allows the node, and has
storage left there as far as it publishes that. A claim that the scheduler has chosen a node for stays with it.
Volumes that members in flight will take are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from webhook.core.filtering import Filter, Victims
from webhook.core.objects import Claim, Node
from webhook.core.selectors import matches_labels, matches_node
from webhook.core.storage import ClaimReference, PersistentVolume, StorageClass, Volumes

NO_VOLUME_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"

# Its class makes no volumes.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

Candidates = Callable[[Node], Iterable[PersistentVolume]]
"""The volumes that a claim could take on a node, the best first."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member that is not bound yet: the node that it goes to, and its claims."""

    node: Node
    claims: tuple[Claim, ...]


def waiting_claims(claims: Iterable[Claim], volumes: Volumes) -> tuple[Claim, ...]:
    """The claims that get their volume when their pod is scheduled, in the scheduler's order.

    First those for which a node has been chosen, then the others, the smallest first.
    """
    found = (claim for claim in claims if not claim.volume_name and _waits(claim, volumes))
    return tuple(sorted(found, key=lambda claim: (not claim.selected_node, claim.requested or Decimal(0))))


def unbound_problem(claims: Iterable[Claim], volumes: Volumes) -> str:
    """Why a pod with these claims cannot be scheduled anywhere yet, "" if it can.

    A claim of a class that binds at once should have its volume by now; until then nobody knows where that will be,
    unless no volume of the class is tied to nodes.
    """
    for claim in claims:
        if claim.volume_name or _waits(claim, volumes):
            continue
        of_class = volumes.of_class.get(claim.storage_class, ())
        if not of_class or any(volume.node_affinity for volume in of_class):
            return UNBOUND_IMMEDIATE
    return ""


def binding_filter(claims: Sequence[Claim], volumes: Volumes, in_flight: Iterable[Member] = ()) -> Filter | None:
    """The filter for a pod with claims that wait; None if it has none."""
    claims = waiting_claims(claims, volumes)
    if not claims:
        return None
    taken = _taken(in_flight, volumes)
    searches = {claim.name: _candidates(claim, volumes) for claim in claims}
    chosen = {claim.selected_node for claim in claims if claim.selected_node}

    def judge(node: Node, _victims: Victims) -> str | None:
        if chosen and chosen != {node.name}:
            return NO_VOLUME_TO_BIND
        to_make = _without_volume(node, claims, searches, set(taken))
        for claim in to_make:
            if reason := _provisioning_reason(node, claim, volumes):
                return reason
        return None

    return Filter("VolumeBinding", judge)


def _waits(claim: Claim, volumes: Volumes) -> bool:
    storage_class = volumes.storage_classes.get(claim.storage_class)
    return storage_class is not None and storage_class.waits


def _taken(in_flight: Iterable[Member], volumes: Volumes) -> frozenset[str]:
    """The volumes that others will have taken first."""
    taken = set(volumes.promised)
    for member in in_flight:
        claims = waiting_claims(member.claims, volumes)
        _without_volume(member.node, claims, {claim.name: _candidates(claim, volumes) for claim in claims}, taken)
    return frozenset(taken)


def _without_volume(
    node: Node, claims: Iterable[Claim], searches: Mapping[str, Candidates], taken: set[str]
) -> list[Claim]:
    """The claims for which no volume is left on the node, in order; those of the others are added to `taken`."""
    missing = []
    for claim in claims:
        found = None
        if not claim.selected_node:
            found = next((volume for volume in searches[claim.name](node) if volume.name not in taken), None)
        if found is None:
            missing.append(claim)
        else:
            taken.add(found.name)
    return missing


def _provisioning_reason(node: Node, claim: Claim, volumes: Volumes) -> str | None:
    """Why no volume can be made for the claim on the node, None if one can."""
    storage_class = volumes.storage_classes[claim.storage_class]
    if storage_class.provisioner in ("", NO_PROVISIONER):
        # Where nobody read which volumes there are, there is nothing to judge by.
        return NO_VOLUME_TO_BIND if storage_class.name in volumes.of_class else None
    if storage_class.allowed_topologies is not None and not matches_node(storage_class.allowed_topologies, node):
        return NO_VOLUME_TO_BIND
    return None if _has_space(node, claim, storage_class, volumes) else NO_SPACE


def _has_space(node: Node, claim: Claim, storage_class: StorageClass, volumes: Volumes) -> bool:
    published = volumes.capacities.get(storage_class.provisioner)
    wanted = claim.requested
    if published is None or wanted == 0:
        return True
    return wanted is not None and any(
        each.storage_class == storage_class.name
        and each.limit is not None
        and each.limit >= wanted
        and matches_labels(each.topology, node.labels)
        for each in published
    )


def _candidates(claim: Claim, volumes: Volumes) -> Candidates:
    """A search for the claim's volume; where one is kept for the claim no other counts."""
    fitting = [volume for volume in volumes.of_class.get(claim.storage_class, ()) if _fits(volume, claim)]
    reserved = sorted((volume for volume in fitting if volume.claim is not None), key=lambda volume: volume.name)
    free = [volume for volume in fitting if volume.claim is None and _is_free(volume, claim)]
    by_size = sorted(reserved[:1] or free, key=lambda volume: (volume.capacity, volume.name))
    return _Shelf(by_size).on


def _fits(volume: PersistentVolume, claim: Claim) -> bool:
    return (
        (volume.claim is None or _is_kept_for(volume.claim, claim))
        and not volume.deleting
        and volume.capacity is not None
        and claim.requested is not None
        and volume.capacity >= claim.requested
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
    )


def _is_kept_for(reference: ClaimReference, claim: Claim) -> bool:
    named = (reference.namespace, reference.name) == (claim.namespace, claim.name)
    return named and reference.uid in ("", claim.uid)


def _is_free(volume: PersistentVolume, claim: Claim) -> bool:
    return (
        volume.phase == "Available"
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or matches_labels(claim.selector, volume.labels))
    )


class _Shelf:
    """Volumes by the label values that their node affinity asks for, so that no node looks at all of them."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        """`volumes` are in the order in which they are to be taken."""
        self._by_label: dict[str, dict[str, list[tuple[int, PersistentVolume]]]] = {}
        self._others: list[tuple[int, PersistentVolume]] = []
        for rank in enumerate(volumes):
            self._put(rank)

    def on(self, node: Node) -> Iterator[PersistentVolume]:
        """The volumes that the node can use, in their order."""
        found = dict(self._others)
        for key, by_value in self._by_label.items():
            found.update(by_value.get(node.labels.get(key, ""), ()))
        for _, volume in sorted(found.items(), key=lambda each: each[0]):
            if matches_node(volume.node_affinity, node):
                yield volume

    def _put(self, ranked: tuple[int, PersistentVolume]) -> None:
        affinity = ranked[1].node_affinity
        wanted = [
            next((each for each in term.match_expressions if each.operator == "In"), None)
            for term in (affinity.terms if affinity else ())
        ]
        if not wanted or None in wanted:
            self._others.append(ranked)
            return
        for requirement in filter(None, wanted):
            for value in requirement.values:
                self._by_label.setdefault(requirement.key, {}).setdefault(value, []).append(ranked)
