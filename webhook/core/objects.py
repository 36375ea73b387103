"""Kubernetes objects as frozen values that hold only what a decision reads.

`manifests.py` builds them from plain dicts and survives any shape. Names are Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

EMPTY: Mapping[str, str] = MappingProxyType({})
NO_QUANTITIES: Mapping[str, Decimal] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a label or node selector: key, operator (In, NotIn, Exists, …), values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements on a node's labels and fields, all of which must hold; with none at all it matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    terms: tuple[NodeSelectorTerm, ...]


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """`matchLabels` and `matchExpressions`, all of which must hold; with neither it matches everything."""

    match_labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    match_expressions: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One required term of podAffinity or podAntiAffinity.

    `selector` None matches nothing; `namespaces` empty and `namespace_selector` None mean the pod's own.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """The controller that owns an object."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def api_group(self) -> str:
        """The API group of the owner's kind, "" for core."""
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: one that exists, or one that an AdmissionReview asks to create (`uid` "" then)."""

    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    annotations: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    owner: OwnerReference | None = None
    node_name: str = ""
    nominated_node_name: str = ""
    phase: str = ""
    deleting: bool = False
    ready: bool = False
    scheduler_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    node_affinity: NodeSelector | None = None
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    claim_names: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the pod has run to its end and holds neither node nor data open."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim. `created` is the creationTimestamp as the API server wrote it (RFC 3339)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    annotations: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    created: str = ""
    deleting: bool = False
    phase: str = "Pending"
    volume_name: str = ""
    storage_class: str = ""
    selected_node: str = ""

    @property
    def bound(self) -> bool:
        """Whether the claim has its volume."""
        return self.phase == "Bound" and bool(self.volume_name)


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `ready` is its Ready condition; `allocatable` in base units (CPUs, bytes, pods)."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    allocatable: Mapping[str, Decimal] = field(default_factory=lambda: NO_QUANTITIES)


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume; `node_affinity` None: usable from every node."""

    name: str
    node_affinity: NodeSelector | None = None


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass; `waits` is volumeBindingMode WaitForFirstConsumer; `allowed_topologies` None: anywhere."""

    name: str
    provisioner: str = ""
    waits: bool = False
    allowed_topologies: NodeSelector | None = None
