"""The claims, volumes and classes that a round's decisions look at: only of members that need them.

Claims, and the volumes that hold data, are read directly: they say where a member must be. What is free, where,
and how many volumes a node takes may come from the inventory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.cluster import trimming
from webhook.cluster.attached import AttachedVolumes, ByName, ClaimedVolumes
from webhook.cluster.door import CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from webhook.cluster.quantities import parse_quantity
from webhook.cluster.reader import Reader
from webhook.cluster.surroundings import Stock, Surroundings
from webhook.cluster.trimming import Key
from webhook.core import groups
from webhook.core.manifests import claim_from, storage_class_from, volume_from
from webhook.core.memo import Memo
from webhook.core.model import Desired, Group
from webhook.core.node_index import index_of
from webhook.core.objects import Claim, Pod
from webhook.core.pool import Pool
from webhook.core.storage import PersistentVolume, StorageCapacity, StorageClass, Volumes

# Provisioners of Kubernetes' own, which no CSI driver stands behind.
_BUILT_IN: Final = "kubernetes.io/"

NO_VOLUMES: Final = Pool()


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
    limits = ByName(stock.of(trimming.ATTACH_LIMITS)) if drivers else {}
    return Volumes(
        claims={claim.name: claim for claim in (*claims, *own)},
        persistent_volumes=persistent,
        storage_classes=classes,
        of_class=_of_class(stock, {claim.storage_class for claim in unbound}),
        capacities=_capacities(stock, classes),
        attach_limits=limits,
        attached=AttachedVolumes(stock) if limits else {},
        claimed=ClaimedVolumes(stock) if limits else {},
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


def _of_class(stock: Stock, names: Collection[str]) -> Mapping[str, Pool]:
    pools = stock.volumes() if names else {}
    return {name: pools.get(name, NO_VOLUMES) for name in names}


def _is_csi(provisioner: str) -> bool:
    return provisioner != "" and not provisioner.startswith(_BUILT_IN)


def _capacities(stock: Stock, classes: Mapping[str, StorageClass]) -> Mapping[str, Collection[StorageCapacity]]:
    """What is free, of the provisioners that publish it: where they have published nothing, nothing is."""
    provisioners = {found.provisioner for found in classes.values() if found.waits and _is_csi(found.provisioner)}
    publishers = [name for name in sorted(provisioners) if ("", name) in stock.of(trimming.PUBLISHER)]
    # The same object as long as nothing has changed, so that what is made of it serves again.
    return dict.fromkeys(publishers, _all_of(stock.of(trimming.CAPACITY))) if publishers else {}


_all_of: Final = Memo[Mapping[Key, StorageCapacity], tuple[StorageCapacity, ...]](lambda found: tuple(found.values()))


def _drivers(
    own: Iterable[Claim], persistent: Mapping[str, PersistentVolume], classes: Mapping[str, StorageClass]
) -> frozenset[str]:
    """The CSI drivers that the pods' own volumes are, or will be, made by."""
    volumes = (persistent.get(claim.volume_name) for claim in own)
    drivers = {volume.csi.driver for volume in volumes if volume and volume.csi}
    return frozenset(drivers | {found.provisioner for found in classes.values() if _is_csi(found.provisioner)})
