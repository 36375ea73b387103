"""Between the lock protocol and a door: values of `core/model.py` in and out, each call within a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.cluster import owners, trimming
from webhook.cluster.door import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS, Door, Manifest
from webhook.cluster.inventory import Inventory
from webhook.cluster.owner_reads import OwnerReads
from webhook.cluster.promises import Promises
from webhook.cluster.quantities import parse_quantity
from webhook.cluster.reader import STALE, Reader, time_left
from webhook.cluster.surroundings import SurroundingsReader, namespaces_for
from webhook.cluster.volume_reads import Members, find_claim, read_volumes
from webhook.core import groups
from webhook.core.manifests import claim_from, pod_from
from webhook.core.model import ClaimListing, FreshNode, Group, GroupState, Placing
from webhook.core.objects import Claim, Pod
from webhook.core.storage import FreshVolume
from webhook.deadline import Deadline

WRITE_RESERVE: Final = 1.0
"""Seconds left without which no write is sent (docs/design.md, invariant 7): a late one leaves an entry for nothing."""


class GroupStore:
    """A group's state on the cluster behind a door. Safe to use from many threads.

    Every call raises `errors.ApiError` as the door does, and OutOfTime, with nothing sent, when the deadline
    is reached or, for writes, less than WRITE_RESERVE is left.
    """

    def __init__(
        self, door: Door, inventory: Inventory | None = None, pause: Callable[[float], None] = time.sleep
    ) -> None:
        """`inventory` proposes nodes while it can be relied on; without one they are listed in each round.

        `pause` waits a number of seconds.
        """
        self._door = door
        self._owner_reads = OwnerReads(pause)
        self._surroundings = SurroundingsReader(inventory)
        self._promises = Promises()
        if inventory is not None:
            # Also of pods that come and go between two rounds.
            inventory.tell_of_pods(self._promises.seen)

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        """Step 1: the group's claims by label, and the API server's time of that moment."""
        listing = self._reader(deadline).list(CLAIMS, namespace=group.namespace, labels=dict(group.selector))
        claims = tuple(claim_from(manifest, parse_quantity) for manifest in listing.items)
        return ClaimListing(tuple(claim for claim in claims if groups.owns_claim(group, claim)), listing.date)

    def read_group(
        self, group: Group, claims: Sequence[Claim], placings: Sequence[Placing], deadline: Deadline
    ) -> GroupState:
        """Step 2: the group's pods, after the claims; then its owners' wishes, nodes, rooms and volumes.

        `claims` are those of step 1, `placings` the pods that this round decides about.
        """
        reader = self._reader(deadline)
        placing = tuple(each.pod for each in placings)
        pods = self._pods(reader, group)
        desired = owners.read_desired(reader, group, placing, pods)
        surroundings = self._surroundings.read(reader)
        volumes = read_volumes(reader, group, claims, Members(placing, pods, desired), surroundings)
        volumes = self._promises.with_claims_of_others(group, volumes, surroundings)
        return GroupState(
            pods=pods,
            desired=desired,
            nodes=surroundings.nodes,
            rooms=surroundings.placed.rooms,
            volumes=volumes,
            placed_pods=surroundings.placed.pods,
            promised=self._promises.of_others(group, surroundings.placed),
            namespaces=namespaces_for(placing, surroundings),
            proposed=surroundings.proposed,
        )

    def list_pods(self, group: Group, deadline: Deadline) -> tuple[Pod, ...]:
        """The group's visible pods alone."""
        return self._pods(self._reader(deadline), group)

    def confirm_nodes(self, names: Iterable[str], deadline: Deadline) -> tuple[FreshNode, ...]:
        """Step 4: read nodes that were proposed and chosen, and the pods that are bound to them, directly."""
        reader = self._reader(deadline)
        return tuple(_fresh_node(reader, name) for name in sorted(names))

    def confirm_volumes(self, names: Iterable[str], deadline: Deadline) -> tuple[FreshVolume, ...]:
        """Step 4: read volumes that will be taken directly."""
        reader = self._reader(deadline)
        return tuple(_fresh_volume(reader, name) for name in sorted(names))

    def promise(self, group: Group, placing: Placing, node_name: str, claims: Iterable[Claim]) -> None:
        """Step 4: until the pod is seen, it counts on its node for the other groups."""
        self._promises.add(group, placing, node_name, claims)

    def withdraw(self, placing: Placing) -> None:
        """The pod gets no node after all: it counts nowhere."""
        self._promises.withdraw(placing)

    def get_claim(self, namespace: str, name: str, deadline: Deadline) -> Claim | None:
        """One claim, None if there is none of that name (yet)."""
        return find_claim(self._reader(deadline), namespace, name)

    def recognise(self, pod: Pod, deadline: Deadline) -> groups.Recognised:
        """The pod's group, or why it is of none; the StatefulSet of a generic set's pod is read for it."""
        owner = self.owner_of(pod, deadline) if groups.needs_owner(pod) else None
        return groups.recognise(pod, owner)

    def owner_of(self, pod: Pod, deadline: Deadline) -> Manifest | None:
        """The StatefulSet (Kubernetes' own or an advanced one) that controls the pod, None if there is none.

        A read that fails is repeated where that may help: for a generic set there is no guard to fall back to.
        """
        resource, owner = owners.stateful_set_resource(pod), pod.owner
        if resource is None or owner is None:
            return None
        reader = self._reader(deadline)
        return self._owner_reads.read(lambda: reader.find(resource, owner.name, namespace=pod.namespace), deadline)

    def swap(self, claim: Claim, annotations: Mapping[str, str | None], deadline: Deadline) -> None:
        """Step 5: set (None: take away) annotations if the claim is still in the version of this value.

        Raises Conflict if it is not. ValueError for a version that the API server would not check.
        """
        if claim.resource_version in ("", "0"):
            raise ValueError(f"claim {claim.name}: resourceVersion {claim.resource_version!r} is no check")
        self._annotate(claim, {"resourceVersion": claim.resource_version}, annotations, deadline)

    def annotate(self, claim: Claim, annotations: Mapping[str, str | None], deadline: Deadline) -> None:
        """Step 6: set (None: take away) annotations of this very claim in whatever version.

        Raises Invalid if another claim has its name by now. ValueError for a claim without a uid.
        """
        if not claim.uid:
            raise ValueError(f"claim {claim.name}: without a uid, another claim of its name could be written")
        self._annotate(claim, {"uid": claim.uid}, annotations, deadline)

    def _annotate(
        self,
        claim: Claim,
        condition: Mapping[str, str],
        annotations: Mapping[str, str | None],
        deadline: Deadline,
    ) -> None:
        patch: dict[str, Any] = {"metadata": {**condition, "annotations": dict(annotations)}}
        timeout = time_left(deadline, at_least=WRITE_RESERVE)
        self._door.merge_patch(CLAIMS, claim.name, patch, namespace=claim.namespace, timeout=timeout)

    def _pods(self, reader: Reader, group: Group) -> tuple[Pod, ...]:
        listing = reader.list(PODS, namespace=group.namespace, labels=dict(group.selector))
        pods = (pod_from(manifest) for manifest in listing.items)
        return tuple(pod for pod in pods if groups.is_member(group, pod))

    def _reader(self, deadline: Deadline) -> Reader:
        return Reader(self._door, deadline)


def _fresh_node(reader: Reader, name: str) -> FreshNode:
    manifest = reader.find(NODES, name)
    if manifest is None:
        return FreshNode(name, None)
    # From the server's cache: good enough for room, as in the scheduler itself.
    listing = reader.list(PODS, fields={"spec.nodeName": name}, resource_version=STALE)
    pods = (trimming.POD.trim(found) for found in listing.items)
    return FreshNode(name, trimming.NODE.trim(manifest), tuple(pod for pod in pods if pod is not None))


def _fresh_volume(reader: Reader, name: str) -> FreshVolume:
    manifest = reader.find(PERSISTENT_VOLUMES, name)
    return FreshVolume(name, None if manifest is None else trimming.VOLUME.trim(manifest))
