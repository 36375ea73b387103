"""Claims, volumes, classes and what is free of them, from plain dicts; see `manifests.py`.

A quantity that is absent is none (0); one that cannot be read is None: nothing fits it, and it holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from webhook.core.objects import FILESYSTEM, Claim
from webhook.core.selector_manifests import label_selector_from, node_selector_from, topologies_from
from webhook.core.shapes import inside, items, mapping, strings, text, texts
from webhook.core.storage import ClaimReference, CsiVolume, PersistentVolume, StorageCapacity, StorageClass

ParseQuantity = Callable[[object], Decimal | None]
"""Gives a quantity in base units, or None for what it cannot read."""

# Set by the scheduler on an unbound claim of a class that waits for its first consumer.
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
# The class annotation of before storageClassName; Kubernetes still lets it win, on claims and on volumes.
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def claim_from(manifest: Mapping[str, Any], parse_quantity: ParseQuantity | None = None) -> Claim:
    """A PersistentVolumeClaim object's value; without a parser the storage it asks for is not known."""
    top = mapping(manifest)
    metadata, spec = mapping(top.get("metadata")), mapping(top.get("spec"))
    annotations = texts(metadata.get("annotations"))
    return Claim(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        labels=texts(metadata.get("labels")),
        annotations=annotations,
        created=text(metadata.get("creationTimestamp")),
        deleting=bool(metadata.get("deletionTimestamp")),
        phase=text(inside(top, "status", "phase")) or "Pending",
        volume_name=text(spec.get("volumeName")),
        storage_class=annotations.get(BETA_STORAGE_CLASS, text(spec.get("storageClassName"))),
        selected_node=annotations.get(SELECTED_NODE, ""),
        requested=_bytes(inside(spec, "resources", "requests", "storage"), parse_quantity),
        access_modes=strings(spec.get("accessModes")),
        volume_mode=text(spec.get("volumeMode")) or FILESYSTEM,
        selector=label_selector_from(spec.get("selector")),
        attributes_class=text(spec.get("volumeAttributesClassName")),
    )


def volume_from(manifest: Mapping[str, Any], parse_quantity: ParseQuantity | None = None) -> PersistentVolume:
    """A PersistentVolume object's value; without a parser its capacity is not known."""
    top = mapping(manifest)
    metadata, spec = mapping(top.get("metadata")), mapping(top.get("spec"))
    annotations = texts(metadata.get("annotations"))
    return PersistentVolume(
        name=text(metadata.get("name")),
        node_affinity=node_selector_from(inside(spec, "nodeAffinity", "required")),
        labels=texts(metadata.get("labels")),
        storage_class=annotations.get(BETA_STORAGE_CLASS, text(spec.get("storageClassName"))),
        capacity=_bytes(inside(spec, "capacity", "storage"), parse_quantity),
        access_modes=strings(spec.get("accessModes")),
        volume_mode=text(spec.get("volumeMode")) or FILESYSTEM,
        attributes_class=text(spec.get("volumeAttributesClassName")),
        phase=text(inside(top, "status", "phase")),
        deleting=bool(metadata.get("deletionTimestamp")),
        claim=_claim_reference(spec.get("claimRef")),
        csi=_csi_volume(spec.get("csi")),
    )


def storage_class_from(manifest: Mapping[str, Any]) -> StorageClass:
    """A StorageClass object's value; its fields lie beside the metadata, not in a spec."""
    top = mapping(manifest)
    return StorageClass(
        name=text(inside(top, "metadata", "name")),
        provisioner=text(top.get("provisioner")),
        waits=top.get("volumeBindingMode") == "WaitForFirstConsumer",
        allowed_topologies=topologies_from(top.get("allowedTopologies")),
    )


def capacity_from(manifest: Mapping[str, Any], parse_quantity: ParseQuantity) -> StorageCapacity:
    """A CSIStorageCapacity object's value: its largest possible volume, else what is free altogether."""
    top = mapping(manifest)
    limit = top.get("capacity") if top.get("maximumVolumeSize") is None else top["maximumVolumeSize"]
    return StorageCapacity(
        storage_class=text(top.get("storageClassName")),
        topology=label_selector_from(top.get("nodeTopology")),
        limit=parse_quantity(limit),
    )


def publishes_capacity(csi_driver: Mapping[str, Any]) -> bool:
    """Whether a CSIDriver object says that its driver publishes what is free, so that the scheduler looks at it."""
    return inside(csi_driver, "spec", "storageCapacity") is True


def attach_limits_from(csi_node: Mapping[str, Any]) -> Mapping[str, int]:
    """How many volumes of each driver can be attached, by a CSINode object; drivers without a limit are left out."""
    limits = {}
    for raw in items(inside(csi_node, "spec", "drivers")):
        count = inside(raw, "allocatable", "count")
        if isinstance(count, int) and not isinstance(count, bool):
            limits[text(mapping(raw).get("name"))] = count
    return limits


def _bytes(raw: object, parse_quantity: ParseQuantity | None) -> Decimal | None:
    if raw is None:
        return Decimal(0)
    return parse_quantity(raw) if parse_quantity else None


def _claim_reference(raw: object) -> ClaimReference | None:
    """Whom the volume is kept for; a reference that cannot be read is kept for nobody."""
    if raw is None:
        return None
    fields = mapping(raw)
    return ClaimReference(text(fields.get("namespace")), text(fields.get("name")), text(fields.get("uid")))


def _csi_volume(raw: object) -> CsiVolume | None:
    fields = mapping(raw)
    driver, handle = text(fields.get("driver")), text(fields.get("volumeHandle"))
    return CsiVolume(driver, handle) if driver and handle else None
