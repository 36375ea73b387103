"""Kubernetes objects as frozen values that hold only what a decision reads.

`manifests.py` builds them from plain dicts and survives any shape. Names are Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Final

EMPTY: Mapping[str, str] = MappingProxyType({})
NO_QUANTITIES: Mapping[str, Decimal] = MappingProxyType({})
FILESYSTEM: Final = "Filesystem"
ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - what a manifest says, not what we listen on


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
    """One required term of podAffinity or podAntiAffinity, its matchLabelKeys worked into the selector.

    `selector` None matches nothing; `namespaces` empty and `namespace_selector` None mean the pod's own.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint that forbids (DoNotSchedule), its matchLabelKeys worked into the selector.

    `selector` None matches nothing. `honors_affinity`, `honors_taints`: nodes that the pod could not use by its
    node affinity, or for their taints, are no domains.
    """

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes; ALL_ADDRESSES overlaps every other address."""

    port: int
    protocol: str = "TCP"
    address: str = ALL_ADDRESSES


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
    """A pod: one that exists, or one that an AdmissionReview asks to create (`uid` "" then).

    `created`: the creationTimestamp as the API server wrote it (RFC 3339, UTC, so later is greater).
    `preempts`: it may take the place of pods of lower priority. `ephemeral_claims`: the claims of its generic
    ephemeral volumes as they will be once the pod exists; `claim_names` has their names too.
    """

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
    affinity: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    priority: int = 0
    preempts: bool = True
    ephemeral_claims: tuple[Claim, ...] = ()
    created: str = ""

    @property
    def first_claim(self) -> str:
        """The name of its first claim, "" if it has none."""
        return next(iter(self.claim_names), "")

    @property
    def finished(self) -> bool:
        """Whether the pod has run to its end and holds neither node nor data open."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """What a filter needs of a pod that takes a place on a node: it is bound there, or will be in a moment.

    `requests` as of `Placing`; `guard` is the topology key of our guard among its `anti_affinity`, "" without
    one. `bound` False: only pinned or nominated; such a pod cannot be preempted. Finished pods are none.
    """

    namespace: str
    name: str
    node_name: str
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    requests: Mapping[str, Decimal] = field(default_factory=lambda: NO_QUANTITIES)
    priority: int = 0
    bound: bool = True
    deleting: bool = False
    host_ports: tuple[HostPort, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    claim_names: tuple[str, ...] = ()
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim. `created` is the creationTimestamp as the API server wrote it (RFC 3339).

    `requested` is the storage it asks for (bytes), None where that cannot be read. `selector` is what its volume's
    labels must match, None for no requirement.
    """

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
    requested: Decimal | None = Decimal(0)
    access_modes: tuple[str, ...] = ()
    volume_mode: str = FILESYSTEM
    selector: LabelSelector | None = None
    attributes_class: str = ""

    @property
    def bound(self) -> bool:
        """Whether the claim has its volume."""
        return self.phase == "Bound" and bool(self.volume_name)


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `ready` is its Ready condition; `allocatable` in base units (CPUs, bytes, pods), rounded up."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    allocatable: Mapping[str, Decimal] = field(default_factory=lambda: NO_QUANTITIES)
