"""The claims, volumes and classes that a round's decisions look at: only of members that need them.

Claims, and the volumes that hold data, are read directly: they say where a member must be. What is free, where,
and how many volumes a node takes may come from the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.cluster import trimming
from webhook.cluster.door import CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from webhook.cluster.quantities import parse_quantity
from webhook.cluster.reader import Reader
from webhook.cluster.shelves import Placed
from webhook.cluster.surroundings import Stock, Surroundings
from webhook.core import groups
from webhook.core.manifests import claim_from, storage_class_from, volume_from
from webhook.core.model import Desired, Group
from webhook.core.node_index import index_of
from webhook.core.objects import Claim, Pod
from webhook.core.storage import CsiVolume, PersistentVolume, StorageCapacity, StorageClass, Volumes

# Provisioners of Kubernetes' own, which no CSI driver stands behind.
_BUILT_IN: Final = "kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Members:
    """Whose volumes may matter: the pods to be placed, the visible ones, the desired ones."""

    placing: Sequence[Pod]
    visible: Sequence[Pod]
    desired: Desired


def read_volumes(
    reader: Reader, group: Group, claims: Sequence[Claim], members: Members, surroundings: Surroundings
) -> Volumes:
    """Read own claims that the group's label does not find, then the PVs and classes of who needs them.

    PVs: of the pods to be placed; of desired members without a node or finished, which may have to return;
    of members whose Node object is gone. Classes, and what is free of them: of the own unbound claims. How many volumes
    nodes take: where CSI drivers make the own ones. What does not exist is left out.
    """
    own = _own_claims(reader, group, claims, members.placing)
    needed = {claim.name: claim for claim in (*own, *_of_others(claims, members, surroundings))}
    persistent = _read_volumes(reader, {claim.volume_name for claim in needed.values() if claim.volume_name})
    coming = [claim for pod in members.placing for claim in pod.ephemeral_claims]
    unbound = [claim for claim in (*own, *coming) if not claim.bound]
    classes = _read_classes(reader, {claim.storage_class for claim in unbound if claim.storage_class})
    stock = surroundings.stock
    drivers = _drivers(own, persistent, classes)
    limits = _attach_limits(stock, drivers)
    return Volumes(
        claims={claim.name: claim for claim in (*claims, *own)},
        persistent_volumes=persistent,
        storage_classes=classes,
        of_class=_of_class(stock, {claim.storage_class for claim in unbound}),
        capacities=_capacities(stock, classes),
        attach_limits=limits,
        attached=_attached(stock, surroundings.placed, drivers) if limits else {},
    )


def _own_claims(reader: Reader, group: Group, claims: Sequence[Claim], placing: Iterable[Pod]) -> tuple[Claim, ...]:
    listed = {claim.name: claim for claim in claims}
    names = dict.fromkeys(name for pod in placing for name in pod.claim_names)
    found = (listed.get(name) or find_claim(reader, group.namespace, name) for name in names)
    return tuple(claim for claim in found if claim is not None)


def find_claim(reader: Reader, namespace: str, name: str) -> Claim | None:
    """Read one claim, None if there is none of that name."""
    manifest = reader.find(CLAIMS, name, namespace=namespace)
    return claim_from(manifest, parse_quantity) if manifest is not None else None


def _of_others(claims: Sequence[Claim], members: Members, surroundings: Surroundings) -> Iterator[Claim]:
    node_names = index_of(surroundings.nodes).by_name
    for pod in members.visible:
        if pod.finished or pod.node_name not in node_names:
            yield from groups.claims_of(pod.name, pod, claims)
    visible_names = {pod.name for pod in members.visible}
    for name in members.desired.names:
        if name not in visible_names:
            yield from groups.claims_of(name, None, claims)


def _read_volumes(reader: Reader, names: Iterable[str]) -> Mapping[str, PersistentVolume]:
    found = ((name, reader.find(PERSISTENT_VOLUMES, name)) for name in sorted(names))
    return {name: volume_from(manifest, parse_quantity) for name, manifest in found if manifest is not None}


def _read_classes(reader: Reader, names: Iterable[str]) -> Mapping[str, StorageClass]:
    found = ((name, reader.find(STORAGE_CLASSES, name)) for name in sorted(names))
    return {name: storage_class_from(manifest) for name, manifest in found if manifest is not None}


def _of_class(stock: Stock, names: Iterable[str]) -> Mapping[str, tuple[PersistentVolume, ...]]:
    found: dict[str, list[PersistentVolume]] = {name: [] for name in names}
    for volume in stock.of(trimming.VOLUME).values() if found else ():
        if volume.storage_class in found:
            found[volume.storage_class].append(volume)
    return {name: tuple(volumes) for name, volumes in found.items()}


def _is_csi(provisioner: str) -> bool:
    return provisioner != "" and not provisioner.startswith(_BUILT_IN)


def _capacities(stock: Stock, classes: Mapping[str, StorageClass]) -> Mapping[str, tuple[StorageCapacity, ...]]:
    """What is free, of the provisioners that publish it: where they have published nothing, nothing is."""
    provisioners = {found.provisioner for found in classes.values() if found.waits and _is_csi(found.provisioner)}
    publishers = {name for name in provisioners if ("", name) in stock.of(trimming.PUBLISHER)}
    return {
        provisioner: tuple(
            capacity
            for capacity in stock.of(trimming.CAPACITY).values()
            if capacity.storage_class in classes and classes[capacity.storage_class].provisioner == provisioner
        )
        for provisioner in publishers
    }


def _drivers(
    own: Iterable[Claim], persistent: Mapping[str, PersistentVolume], classes: Mapping[str, StorageClass]
) -> frozenset[str]:
    """The CSI drivers that the pods' own volumes are, or will be, made by."""
    volumes = (persistent.get(claim.volume_name) for claim in own)
    drivers = {volume.csi.driver for volume in volumes if volume and volume.csi}
    return frozenset(drivers | {found.provisioner for found in classes.values() if _is_csi(found.provisioner)})


def _attach_limits(stock: Stock, drivers: frozenset[str]) -> Mapping[str, Mapping[str, int]]:
    if not drivers:
        return {}
    limits = stock.of(trimming.ATTACH_LIMITS)
    return {name: found for (_, name), found in limits.items() if not drivers.isdisjoint(found)}


def _attached(stock: Stock, placed: Placed, drivers: frozenset[str]) -> Mapping[str, frozenset[CsiVolume]]:
    volumes, claimed = stock.of(trimming.VOLUME), stock.of(trimming.CLAIMED)
    names: dict[str, set[str]] = {}
    for attachment in stock.of(trimming.ATTACHMENT).values():
        names.setdefault(attachment.node_name, set()).add(attachment.volume_name)
    for node_name, pods in placed.pods.items():
        used = (claimed.get((pod.namespace, name)) for pod in pods for name in pod.claim_names)
        names.setdefault(node_name, set()).update(filter(None, used))
    found = {}
    for node_name, there in names.items():
        attached = (volume.csi for name in there if (volume := volumes.get(("", name))) and volume.csi)
        found[node_name] = frozenset(volume for volume in attached if volume.driver in drivers)
    return found
