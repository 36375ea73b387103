"""What a volume's controller does when a pod of the simulation begins to run: local volumes are bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.cluster import trimming
from webhook.cluster.door import CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, Manifest
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import parse_quantity
from webhook.core.manifests import claim_from, storage_class_from, volume_from
from webhook.core.objects import Claim, Node
from webhook.core.selectors import matches_node
from webhook.core.storage import PersistentVolume
from webhook.errors import NotFound

TIMEOUT: Final = 5.0
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def bind_local_volumes(cluster: MemoryCluster, namespace: str, names: Iterable[str], node: Manifest) -> None:
    """Bind those of these claims that take volumes which exist, on the node where their pod runs.

    Volumes that somebody would make are not made: they are taken to follow their pod.
    """
    there = trimming.NODE.trim(node)
    for name in names:
        claim = _claim(cluster, namespace, name)
        if claim is not None and there is not None and not claim.volume_name and _is_local(cluster, claim):
            _bind(cluster, claim, there)


def _claim(cluster: MemoryCluster, namespace: str, name: str) -> Claim | None:
    try:
        return claim_from(cluster.get(CLAIMS, name, namespace=namespace, timeout=TIMEOUT), parse_quantity)
    except NotFound:
        return None


def _is_local(cluster: MemoryCluster, claim: Claim) -> bool:
    try:
        found = cluster.get(STORAGE_CLASSES, claim.storage_class, timeout=TIMEOUT)
    except NotFound:
        return False
    return storage_class_from(found).provisioner == NO_PROVISIONER


def _bind(cluster: MemoryCluster, claim: Claim, node: Node) -> None:
    listed = cluster.list(PERSISTENT_VOLUMES, timeout=TIMEOUT).items
    volumes = (volume_from(found, parse_quantity) for found in listed)
    free = sorted(
        (volume for volume in volumes if _fits(volume, claim, node)), key=lambda each: (each.capacity or 0, each.name)
    )
    if not free:
        return
    reference = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    volume = {"spec": {"claimRef": reference}, "status": {"phase": "Bound"}}
    cluster.merge_patch(PERSISTENT_VOLUMES, free[0].name, volume, timeout=TIMEOUT)
    bound = {"spec": {"volumeName": free[0].name}, "status": {"phase": "Bound"}}
    cluster.merge_patch(CLAIMS, claim.name, bound, namespace=claim.namespace, timeout=TIMEOUT)


def _fits(volume: PersistentVolume, claim: Claim, node: Node) -> bool:
    return (
        volume.storage_class == claim.storage_class
        and volume.claim is None
        and not volume.deleting
        and volume.phase in ("", "Available")
        and volume.capacity is not None
        and volume.capacity >= (claim.requested or 0)
        and matches_node(volume.node_affinity, node)
    )
