"""Every group of a cluster, by a number of lists that does not grow with the number of groups.

For looking at what exists, not for placing: the lists are not of one moment. Groups whose pods are all gone are found
by their owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webhook.cluster import door, owners, trimming
from webhook.cluster.door import CLAIMS, PODS, Listing, Manifest
from webhook.cluster.fleet_groups import expected_groups, grouped
from webhook.cluster.inventory import InventoryView
from webhook.cluster.kinds import CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import parse_quantity
from webhook.cluster.reader import Reader
from webhook.cluster.shelves import in_order
from webhook.cluster.usage import UsageReader
from webhook.core import keys
from webhook.core.audited import isolated_keys
from webhook.core.groups import V1_SELECTOR_KEYS, V2_SELECTOR_KEYS, owns_claim
from webhook.core.location_labels import location_labels
from webhook.core.manifests import claim_from, pod_from
from webhook.core.model import Family, Group, Snapshot
from webhook.core.objects import Claim, Node, Pod
from webhook.core.options import with_class_problems
from webhook.core.shapes import inside
from webhook.core.storage import PersistentVolume, Volumes
from webhook.core.volumes import NodeIndex
from webhook.errors import NotFound

FAMILIES: Final[tuple[Mapping[str, str], ...]] = (
    {keys.V1_MANAGED_BY: keys.TIDB_OPERATOR},
    {keys.V2_MANAGED_BY: keys.TIDB_OPERATOR},
    {keys.CLASS_LABEL: door.ANY_VALUE},
)
"""Which pods can be members, also by a class that is none; `recognise` tells which are.

Claims have the labels of the operator's families too.
"""

OWNERS: Final = (door.STATEFUL_SETS, *CUSTOM)


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group as it is, without answers in flight. `isolated_by`: see `audited.isolated_keys`."""

    snapshot: Snapshot
    isolated_by: frozenset[str] | None = None

    @property
    def group(self) -> Group:
        """Which group it is."""
        return self.snapshot.group


@dataclass(frozen=True, slots=True)
class UnreadableGroup:
    """A group of which too little is known; `why` in words."""

    group: Group
    pods: tuple[Pod, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """All groups in order, those of which too little is known, and the nodes by name."""

    groups: tuple[FoundGroup, ...]
    unreadable: tuple[UnreadableGroup, ...]
    nodes: tuple[Node, ...]

    @property
    def index(self) -> NodeIndex:
        """The nodes by name and label."""
        return NodeIndex(self.nodes)


def read_fleet(
    reader: Reader, namespace: str = "", *, view: InventoryView | None = None, usage: UsageReader | None = None
) -> Fleet:
    """Read the groups of a namespace ("": of all). Raises `errors.ApiError` or OutOfTime as the reader does.

    `view`: of an inventory that knows the nodes already. `usage`: remembers what it has read from one time to the next.
    """
    usage = usage or UsageReader()
    nodes = view.nodes if view is not None else in_order(usage.read(reader, trimming.NODE).values())
    wishes = Reader(_owners_of(reader, namespace), reader.deadline)
    members = grouped(_pods(reader, namespace), wishes)
    naming = {group: [pod] for group, pod in expected_groups(wishes)}
    naming |= {group: [member.owned for member in there] for group, there in members.items()}
    claims, now = _claims(reader, namespace, naming)
    volumes = {name: volume for (_, name), volume in usage.read(reader, trimming.VOLUME).items()}
    found: list[FoundGroup] = []
    unreadable: list[UnreadableGroup] = []
    for group in sorted(naming, key=str):
        pods = tuple(member.pod for member in members.get(group, ()))
        try:
            wanted = owners.read_desired(wishes, group, (), naming[group])
        except NotFound as error:
            unreadable.append(UnreadableGroup(group, pods, f"what its owners want is not known: {error}"))
            continue
        own, there = claims.get(group, ()), _volumes(claims.get(group, ()), volumes)
        # As the next pods will have it: those that are there may have another class.
        wanted = replace(wanted, options=with_class_problems(wanted.options, group.component, naming[group]))
        snapshot = Snapshot(group, own, pods, wanted, (), nodes, {}, there, now)
        found.append(FoundGroup(snapshot, _isolated_by(wishes, group, naming[group])))
    return Fleet(tuple(found), tuple(unreadable), nodes)


def _owners_of(reader: Reader, namespace: str) -> MemoryCluster:
    """The objects that own groups; a kind that is not served has none."""
    found: list[Manifest] = []
    for resource in OWNERS:
        try:
            found += reader.list(resource, namespace=namespace).items
        except NotFound:
            continue
    return MemoryCluster(found, serve=CUSTOM)


def _pods(reader: Reader, namespace: str) -> Iterator[Pod]:
    seen: set[tuple[str, str]] = set()
    for family in FAMILIES:
        for manifest in reader.list(PODS, namespace=namespace, labels=family).items:
            pod = pod_from(manifest)
            # tidb-operator v2's pods have the labels of v1 too.
            if (pod.namespace, pod.name) not in seen:
                seen.add((pod.namespace, pod.name))
                yield pod


def _claims(reader: Reader, namespace: str, groups: Iterable[Group]) -> tuple[dict[Group, tuple[Claim, ...]], int]:
    """The groups' claims, and the API server's time; those of a generic set may have any labels."""
    listings = [reader.list(CLAIMS, namespace=namespace, labels=family) for family in FAMILIES[:2]]
    by_selector = {(group.namespace, group.selector): group for group in groups}
    found: dict[Group, dict[str, Claim]] = {}
    for claim in _claims_in(listings):
        for keys_of_family in (V1_SELECTOR_KEYS, V2_SELECTOR_KEYS):
            selector = tuple((key, claim.labels.get(key, "")) for key in keys_of_family)
            group = by_selector.get((claim.namespace, selector))
            if group is not None and owns_claim(group, claim):
                found.setdefault(group, {})[claim.name] = claim
    for group in groups:
        if group.family is Family.GENERIC:
            listing = reader.list(CLAIMS, namespace=group.namespace, labels=dict(group.selector))
            found[group] = {claim.name: claim for claim in _claims_in([listing]) if owns_claim(group, claim)}
    return {group: tuple(own.values()) for group, own in found.items()}, max(listing.date for listing in listings)


def _claims_in(listings: Iterable[Listing]) -> Iterator[Claim]:
    return (claim_from(manifest, parse_quantity) for listing in listings for manifest in listing.items)


def _volumes(claims: Sequence[Claim], volumes: Mapping[str, PersistentVolume]) -> Volumes:
    return Volumes(
        claims={claim.name: claim for claim in claims},
        persistent_volumes={
            claim.volume_name: volumes[claim.volume_name] for claim in claims if claim.volume_name in volumes
        },
    )


def _isolated_by(wishes: Reader, group: Group, naming: Sequence[Pod]) -> frozenset[str] | None:
    """The keys by which PD keeps the group's copies apart, as far as its configuration is there to read."""
    if group.component != "tikv":
        return None
    configs: list[object]
    if group.family is Family.OPERATOR_V1:
        configs = [inside(owners.read_owners(wishes, group, naming).cluster, "spec", "pd", "config")]
    else:
        listing = wishes.list(door.PD_GROUPS, namespace=group.namespace)
        of_cluster = (found for found in listing.items if inside(found, "spec", "cluster", "name") == group.cluster)
        configs = [inside(found, "spec", "template", "spec", "config") for found in of_cluster]
    labels = {location_labels(config) for config in configs}
    return isolated_keys(labels.pop()) if len(labels) == 1 else None
