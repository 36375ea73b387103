"""What is kept of each kind of object: only what a filter or the ranking looks at, never the object itself.

5,000 nodes and 20,000 pods as their objects would be a gigabyte of Python. Trimmed while they are parsed they
are some tens of megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Final, Generic, TypeVar

from webhook.cluster import door
from webhook.cluster.door import Manifest, Resource
from webhook.cluster.quantities import parse_quantity, requests_of
from webhook.core import keys
from webhook.core.manifests import (
    attach_limits_from,
    capacity_from,
    claim_from,
    node_from,
    placed_pod_from,
    pod_from,
    publishes_capacity,
    storage_class_from,
    volume_from,
)
from webhook.core.objects import Claim, Node, PodOnNode
from webhook.core.selectors import pinned_node
from webhook.core.shapes import inside, items, mapping, text, texts
from webhook.core.storage import PersistentVolume, StorageCapacity, StorageClass

Value = TypeVar("Value")

Key = tuple[str, str]
"""Namespace ("" for what has none) and name."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[Value]):
    """One kind of object; `trim` gives what is kept of one, None if nothing is. It never raises."""

    resource: Resource
    trim: Callable[[Manifest], Value | None]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A volume that is attached, or about to be, to a node."""

    node_name: str
    volume_name: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is kept of a claim: the volume that it has or asks for by name, else all of it."""

    volume_name: str = ""
    claim: Claim | None = None


def key_of(manifest: Manifest) -> Key:
    """The key by which an object is kept."""
    metadata = manifest["metadata"]
    return intern(text(metadata.get("namespace"))), text(metadata.get("name"))


def _node(manifest: Manifest) -> Node:
    return node_from(_with_shared_labels(manifest), parse_quantity)


def _placed_pod(manifest: Manifest) -> PodOnNode | None:
    node_name = _node_of(manifest)
    if not node_name:
        return None
    return placed_pod_from(_with_shared_labels(manifest), intern(node_name), requests_of(manifest))


def _node_of(manifest: Manifest) -> str:
    """Where the pod takes a place: at its node, or where it is pinned or nominated to; "" if nowhere.

    One that the scheduler has turned away takes none, as for the scheduler itself, unless it is ours: that will be
    placed anew if need be. A DaemonSet's pods are pinned too, and may wait for a room that never comes.
    """
    if inside(manifest, "status", "phase") in ("Succeeded", "Failed"):
        return ""
    bound = text(inside(manifest, "spec", "nodeName"))
    if bound:
        return bound
    pod = pod_from(manifest)
    if keys.ASSIGNED_NODE not in pod.annotations and _is_turned_away(manifest):
        return pod.nominated_node_name
    # Not bound yet: it will be there in a moment.
    return pinned_node(pod) or pod.nominated_node_name or pod.node_selector.get(keys.HOSTNAME, "")


def _is_turned_away(manifest: Manifest) -> bool:
    """Whether the scheduler has found no node for the pod, or does not look for one because of its gates."""
    conditions = map(mapping, items(inside(manifest, "status", "conditions")))
    return any((each.get("type"), each.get("status")) == ("PodScheduled", "False") for each in conditions)


def _with_shared_labels(manifest: Manifest) -> Manifest:
    """Labels and their values are much the same on many objects; each word is kept once."""
    metadata = manifest["metadata"]
    labels = {intern(key): intern(value) for key, value in texts(metadata.get("labels")).items()}
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def _namespace(manifest: Manifest) -> Mapping[str, str]:
    return texts(inside(manifest, "metadata", "labels"))


def _volume(manifest: Manifest) -> PersistentVolume:
    return volume_from(_with_shared_labels(manifest), parse_quantity)


def _claimed(manifest: Manifest) -> Claimed:
    volume_name = text(inside(manifest, "spec", "volumeName"))
    return Claimed(volume_name) if volume_name else Claimed(claim=claim_from(manifest, parse_quantity))


def _publishes(manifest: Manifest) -> bool | None:
    return publishes_capacity(manifest) or None


def _capacity(manifest: Manifest) -> StorageCapacity:
    return capacity_from(manifest, parse_quantity)


def _attach_limits(manifest: Manifest) -> Mapping[str, int] | None:
    return attach_limits_from(manifest) or None


def _attachment(manifest: Manifest) -> Attachment | None:
    node_name = text(inside(manifest, "spec", "nodeName"))
    volume_name = text(inside(manifest, "spec", "source", "persistentVolumeName"))
    return Attachment(intern(node_name), volume_name) if node_name and volume_name else None


NODE: Final[Kind[Node]] = Kind(door.NODES, _node)
POD: Final[Kind[PodOnNode]] = Kind(door.PODS, _placed_pod)
NAMESPACE: Final[Kind[Mapping[str, str]]] = Kind(door.NAMESPACES, _namespace)
VOLUME: Final[Kind[PersistentVolume]] = Kind(door.PERSISTENT_VOLUMES, _volume)
CLASS: Final[Kind[StorageClass]] = Kind(door.STORAGE_CLASSES, storage_class_from)
CLAIMED: Final[Kind[Claimed]] = Kind(door.CLAIMS, _claimed)
"""Which volumes the pods of a node use, and which they will take. Never the claims of a group that is decided about."""

PUBLISHER: Final[Kind[bool]] = Kind(door.CSI_DRIVERS, _publishes)
CAPACITY: Final[Kind[StorageCapacity]] = Kind(door.CSI_STORAGE_CAPACITIES, _capacity)
ATTACH_LIMITS: Final[Kind[Mapping[str, int]]] = Kind(door.CSI_NODES, _attach_limits)
ATTACHMENT: Final[Kind[Attachment]] = Kind(door.VOLUME_ATTACHMENTS, _attachment)
