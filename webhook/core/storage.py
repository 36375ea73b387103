"""What Kubernetes says about storage, as frozen values: volumes, classes, and what is free of them where.

Claims are in `objects.py`; `storage_manifests.py` builds these from plain dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from webhook.core.objects import EMPTY, FILESYSTEM, Claim, LabelSelector, NodeSelector


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """The claim that a volume is bound to or kept for; `uid` "" for any claim of the name."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CsiVolume:
    """A volume as its driver knows it; `handle` "" where the volume is yet to be made."""

    driver: str
    handle: str = ""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume; `node_affinity` None: usable from every node.

    `capacity` in bytes, None where it cannot be read. `csi` None: it is no CSI driver's.
    """

    name: str
    node_affinity: NodeSelector | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    storage_class: str = ""
    capacity: Decimal | None = Decimal(0)
    access_modes: tuple[str, ...] = ()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    phase: str = ""
    deleting: bool = False
    claim: ClaimReference | None = None
    csi: CsiVolume | None = None


@dataclass(frozen=True, slots=True)
class FreshVolume:
    """A volume as it was read directly; `volume` None: it is gone."""

    name: str
    volume: PersistentVolume | None


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass; `waits` is volumeBindingMode WaitForFirstConsumer; `allowed_topologies` None: anywhere."""

    name: str
    provisioner: str = ""
    waits: bool = False
    allowed_topologies: NodeSelector | None = None


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """A CSIStorageCapacity: on the nodes that `topology` selects the class can still make volumes up to `limit` bytes.

    `topology` None selects no node; `limit` None: nothing is known to be free.
    """

    storage_class: str
    topology: LabelSelector | None
    limit: Decimal | None


@dataclass(frozen=True, slots=True)
class Volumes:
    """What the API server says about volumes: claims, persistent volumes and classes, each by name.

    `of_class`: every persistent volume of a class, by the class's name; a class that is not there was not read.
    `promised`: the claims of other groups' pods that are in flight, by the node that they go to. `capacities`: all that
    is published, by the name of each provisioner that publishes it. `attach_limits`: by node, how many volumes of a
    driver can be attached. `attached`: by node, the volumes that are. `claimed`: those that claims have or will be
    made, by namespace and name of the claim. `confirmed`: the volumes that were read directly in this round after it
    was known that a pod would take them.
    """

    claims: Mapping[str, Claim] = field(default_factory=dict)
    persistent_volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    of_class: Mapping[str, Collection[PersistentVolume]] = field(default_factory=dict)
    promised: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)
    capacities: Mapping[str, Collection[StorageCapacity]] = field(default_factory=dict)
    attach_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    attached: Mapping[str, frozenset[CsiVolume]] = field(default_factory=dict)
    claimed: Mapping[tuple[str, str], CsiVolume] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
