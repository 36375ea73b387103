"""Claims that have no volume yet: on which nodes one can be found or made (the scheduler's VolumeBinding).

A claim of a class that waits for its first consumer takes the smallest free volume of its class that fits and that
the node can use; where there is none, a provisioner makes one, if the class has one, allows the node, and has
storage left there as far as it publishes that. A claim that the scheduler has chosen a node for stays with it.
Volumes that pods in flight will take are taken, whatever group they are of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from webhook.core.filtering import MOST_COMPARISONS, Filter, Victims
from webhook.core.objects import Claim, Node
from webhook.core.pool import pool_of
from webhook.core.selectors import matches_labels, matches_node, size_of
from webhook.core.space import space_of
from webhook.core.storage import ClaimReference, PersistentVolume, StorageClass, Volumes

NO_VOLUME_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"

TOO_MANY_TERMS: Final = "volumes, topologies or capacities of a claim's class have too many terms for so many nodes"
NO_CLASS: Final = "names no StorageClass, and got no default one"
NO_SUCH_CLASS: Final = "names a StorageClass that is not there"

# Its class makes no volumes.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

Candidates = Callable[[Node], Iterable[PersistentVolume]]
"""The volumes that a claim could take on a node, the best first."""


@dataclass(frozen=True, slots=True)
class Member:
    """A pod that is not bound yet: the node that it goes to, and its claims."""

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
    unless no volume of the class is tied to nodes. Where there is neither the class nor a volume of it, that is said
    besides: the scheduler does not.
    """
    for claim in claims:
        if claim.volume_name or _waits(claim, volumes):
            continue
        pool = pool_of(volumes.of_class.get(claim.storage_class, ()))
        if not pool and claim.storage_class not in volumes.storage_classes:
            return f"{UNBOUND_IMMEDIATE}: {_without_class(claim)}"
        if not pool or pool.tied:
            return UNBOUND_IMMEDIATE
    return ""


def size_problem(claims: Iterable[Claim], volumes: Volumes, nodes: int) -> str:
    """Why it cannot be looked at in time where these claims get their volumes, of so many nodes; "" if it can."""
    for claim in waiting_claims(claims, volumes):
        storage_class = volumes.storage_classes[claim.storage_class]
        terms = pool_of(volumes.of_class.get(storage_class.name, ())).terms
        if storage_class.allowed_topologies is not None:
            terms += sum(map(size_of, storage_class.allowed_topologies.terms))
        if (published := volumes.capacities.get(storage_class.provisioner)) is not None:
            terms += space_of(published).terms(storage_class.name)
        if terms * nodes > MOST_COMPARISONS:
            return TOO_MANY_TERMS
    return ""


def _without_class(claim: Claim) -> str:
    named = f' ("{claim.storage_class}")' if claim.storage_class else ""
    return f'"{claim.name}" {NO_SUCH_CLASS if named else NO_CLASS}{named}'


def binding_filter(claims: Sequence[Claim], volumes: Volumes, in_flight: Iterable[Member] = ()) -> Filter | None:
    """The filter for a pod with claims that wait; None if it has none. `in_flight` take their volumes before it."""
    claims = waiting_claims(claims, volumes)
    if not claims:
        return None
    taken = expected_volumes(in_flight, volumes)
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


def expected_volumes(members: Iterable[Member], volumes: Volumes) -> frozenset[str]:
    """The volumes that these members will take, so far as they find any that is there already."""
    return _taken(members, volumes, set())


def _taken(members: Iterable[Member], volumes: Volumes, taken: set[str]) -> frozenset[str]:
    """The volumes that are taken once these members have theirs, after those that are taken already."""
    for member in members:
        waiting = waiting_claims(member.claims, volumes)
        # Where the class has no volumes there is nothing to take, however many wait for one that is made.
        claims = [claim for claim in waiting if pool_of(volumes.of_class.get(claim.storage_class, ()))]
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
        each.limit is not None and each.limit >= wanted for each in space_of(published).on(node, storage_class.name)
    )


def _candidates(claim: Claim, volumes: Volumes) -> Candidates:
    """A search for the claim's volume; where one is kept for the claim no other counts."""
    pool = pool_of(volumes.of_class.get(claim.storage_class, ()))
    kept = [volume for volume in pool.kept_for(claim.namespace, claim.name) if _fits(volume, claim)]
    if kept:
        only = min(kept, key=lambda volume: volume.name)
        return lambda node: (only,) if matches_node(only.node_affinity, node) else ()

    def free_on(node: Node) -> Iterable[PersistentVolume]:
        free = (volume for volume in pool.on(node) if _is_free(volume, claim) and _fits(volume, claim))
        return sorted(free, key=lambda volume: (volume.capacity, volume.name))

    return free_on


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
        volume.claim is None
        and volume.phase == "Available"
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or matches_labels(claim.selector, volume.labels))
    )
