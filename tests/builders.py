"""Builders of model values: each is valid as it comes, and a test changes only what it is about.

The world they make: namespace t1, tidb-operator v1 cluster "db", component tikv with three stores, nodes n1,
n2 and n3 of 8 CPUs and 32 GiB, and one unbound claim per store of a class that waits for its first consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from webhook.core import keys
from webhook.core.feasibility import infeasible_reason
from webhook.core.model import Desired, Entry, Family, Group, MemberClass, NodeRoom, Options, Placing, Snapshot
from webhook.core.objects import (
    Claim,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodOnNode,
    Requirement,
)
from webhook.core.storage import PersistentVolume, StorageClass, Volumes

NAMESPACE = "t1"
CLUSTER = "db"
ZONE = "topology.kubernetes.io/zone"
GIB = 1024**3
STORAGE_CLASS = "local"
NOW = 1_800_000_000


def make_group(component: str = "tikv", **changes: Any) -> Group:
    """The group of a v1 cluster; `component` pd and dm-master are of class quorum."""
    quorum = component in ("pd", "dm-master")
    group = Group(
        namespace=NAMESPACE,
        cluster=CLUSTER,
        component=component,
        family=Family.OPERATOR_V1,
        member_class=MemberClass.QUORUM if quorum else MemberClass.REPLICATED,
        selector=(
            (keys.V1_MANAGED_BY, keys.TIDB_OPERATOR),
            (keys.V1_NAME, "tidb-cluster"),
            (keys.V1_INSTANCE, CLUSTER),
            (keys.V1_COMPONENT, component),
        ),
    )
    return replace(group, **changes)


def member(ordinal: int, group: Group | None = None) -> str:
    """The name of the group's pod of this ordinal."""
    group = group or make_group()
    return f"{group.cluster}-{group.component}-{ordinal}"


def make_node(name: str = "n1", *, zone: str = "", cpu: int = 8, memory: int = 32 * GIB, **changes: Any) -> Node:
    """A Ready node with its hostname label, and a zone label where one is given."""
    labels = {keys.HOSTNAME: name} | ({ZONE: zone} if zone else {})
    node = Node(
        name=name,
        labels=labels,
        allocatable={"cpu": Decimal(cpu), "memory": Decimal(memory), "pods": Decimal(110)},
    )
    return replace(node, **changes)


def make_nodes(count: int, **changes: Any) -> tuple[Node, ...]:
    """Nodes n1, n2, … all alike."""
    return tuple(make_node(f"n{number}", **changes) for number in range(1, count + 1))


def make_room(**requested: int) -> NodeRoom:
    """What is requested on a node: `cpu`, `memory`, `pods`, in base units."""
    return NodeRoom({name: Decimal(quantity) for name, quantity in requested.items()})


def pinned_to(*nodes: str) -> NodeSelector:
    """Required node affinity with one term for each node, by matchFields as the webhook writes it."""
    return NodeSelector(
        tuple(NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (node,)),)) for node in nodes)
    )


def label_in(key: str, *values: str) -> NodeSelector:
    """Nodes whose label `key` has one of the values."""
    return NodeSelector((NodeSelectorTerm(match_expressions=(Requirement(key, "In", values),)),))


def guard_term(group: Group | None = None, topology_key: str = keys.HOSTNAME) -> PodAffinityTerm:
    """The anti-affinity term of the guard."""
    group = group or make_group()
    return PodAffinityTerm(topology_key=topology_key, selector=LabelSelector(dict(group.selector)))


def make_pod(name: str = "db-tikv-0", *, group: Group | None = None, **changes: Any) -> Pod:
    """A Pending pod of the group without a node, with its data claim `<component>-<name>`."""
    group = group or make_group()
    pod = Pod(
        namespace=group.namespace,
        name=name,
        uid=f"uid-{name}",
        resource_version="1",
        labels=dict(group.selector),
        phase="Pending",
        scheduler_name="default-scheduler",
        claim_names=(f"{group.component}-{name}",),
    )
    return replace(pod, **changes)


def running_pod(name: str, node: str, **changes: Any) -> Pod:
    """A pod that runs on `node` and is Ready."""
    return make_pod(name, **{"node_name": node, "phase": "Running", "ready": True} | changes)


def pinned_pod(name: str, node: str, **changes: Any) -> Pod:
    """A Pending pod that the webhook has pinned to `node`."""
    return make_pod(name, **{"node_affinity": pinned_to(node)} | changes)


def guarded_pod(name: str, *, topology_key: str = keys.HOSTNAME, group: Group | None = None, **changes: Any) -> Pod:
    """A pod that carries the guard; Pending without a node unless `node_name` is given."""
    guarded = {
        "annotations": {keys.GUARD: topology_key},
        "anti_affinity": (guard_term(group, topology_key),),
    }
    return make_pod(name, group=group, **guarded | changes)


def make_claim(name: str = "tikv-db-tikv-0", **changes: Any) -> Claim:
    """An unbound claim of the group; `volume_name` alone makes it Bound."""
    phase = {"phase": "Bound"} if changes.get("volume_name") else {}
    claim = Claim(
        namespace=NAMESPACE,
        name=name,
        uid=f"uid-{name}",
        resource_version="1",
        labels=dict(make_group().selector),
        created="2026-01-01T00:00:00Z",
        storage_class=STORAGE_CLASS,
    )
    return replace(claim, **phase | changes)


def make_volume(name: str, key: str = keys.HOSTNAME, *values: str) -> PersistentVolume:
    """A PersistentVolume for nodes whose label `key` has one of the values; without values for every node."""
    return PersistentVolume(name=name, node_affinity=label_in(key, *values) if values else None)


def make_class(name: str = STORAGE_CLASS, **changes: Any) -> StorageClass:
    """A class of local volumes that waits for its first consumer."""
    return replace(StorageClass(name=name, provisioner="kubernetes.io/no-provisioner", waits=True), **changes)


def make_volumes(
    claims: Iterable[Claim] = (),
    volumes: Iterable[PersistentVolume] = (),
    classes: Iterable[StorageClass] | None = None,
) -> Volumes:
    """The objects by name; the one class is `local` unless others are given."""
    return Volumes(
        claims={claim.name: claim for claim in claims},
        persistent_volumes={volume.name: volume for volume in volumes},
        storage_classes={item.name: item for item in ((make_class(),) if classes is None else classes)},
    )


def make_desired(replicas: int = 3, *, group: Group | None = None, **changes: Any) -> Desired:
    """What a set wants: `replicas` members with ordinals from 0. Options may be given by their names."""
    options = {name: changes.pop(name) for name in tuple(changes) if name in Options.__dataclass_fields__}
    desired = Desired(
        replicas=replicas,
        members=tuple(member(ordinal, group) for ordinal in range(replicas)),
        options=Options(**options),
    )
    return replace(desired, **changes)


def make_entry(name: str, node: str, **changes: Any) -> Entry:
    """A live entry: `name` goes to `node`, whose hostname is its name."""
    entry = Entry(
        token=f"token-{name}",
        member=name,
        claim_uid=f"uid-tikv-{name}",
        node=node,
        domain=node,
        topology_key=keys.HOSTNAME,
        time=NOW - 5,
    )
    return replace(entry, **changes)


def make_snapshot(
    *,
    desired: Desired | None = None,
    group: Group | None = None,
    nodes: Sequence[Node] | None = None,
    pods: Iterable[Pod] = (),
    entries: Iterable[Entry] = (),
    claims: Iterable[Claim] | None = None,
    volumes: Iterable[PersistentVolume] = (),
    classes: Iterable[StorageClass] | None = None,
    rooms: Mapping[str, NodeRoom] | None = None,
) -> Snapshot:
    """A snapshot of three alike nodes and a set of three; an unbound claim for each claim name not given.

    `claims` given replace those of the same names; a test of an absent claim uses `dataclasses.replace`.
    """
    group = group or make_group()
    desired = desired or make_desired(group=group)
    pods = tuple(pods)
    members = [member(ordinal, group) for ordinal in range(9)] if desired.members is None else desired.members
    names = {f"{group.component}-{name}" for name in members}
    names.update(name for pod in pods for name in pod.claim_names)
    by_name = {name: make_claim(name, labels=dict(group.selector)) for name in sorted(names)}
    by_name.update({claim.name: claim for claim in claims or ()})
    return Snapshot(
        group=group,
        claims=tuple(by_name.values()),
        pods=pods,
        desired=desired,
        entries=tuple(entries),
        nodes=make_nodes(3) if nodes is None else tuple(nodes),
        rooms=rooms or {},
        volumes=make_volumes(by_name.values(), volumes, classes),
        now=NOW,
    )


def make_placing(name: str = "db-tikv-0", *, requests: Mapping[str, int] | None = None, **changes: Any) -> Placing:
    """A pod as an AdmissionReview shows it: no uid, no phase, no node; it asks for 1 CPU and 1 GiB."""
    pod = make_pod(name, **{"uid": "", "resource_version": "", "phase": ""} | changes)
    asked = {"pods": 1} | dict({"cpu": 1, "memory": GIB} if requests is None else requests)
    return Placing(pod=pod, requests={key: Decimal(value) for key, value in asked.items()})


# One volume on the disk of each of n1, n2 and n3.
LOCAL_VOLUMES = tuple(make_volume(f"on-n{number}", keys.HOSTNAME, f"n{number}") for number in (1, 2, 3))

# Two nodes in each of three zones: za1, za2, zb1, …
ZONAL_NODES = tuple(make_node(f"{zone}{number}", zone=zone) for zone in ("za", "zb", "zc") for number in (1, 2))


def running_members(*nodes: str, first: int = 1, group: Group | None = None) -> list[Pod]:
    """The members from ordinal `first` on, running on these nodes."""
    return [running_pod(member(ordinal, group), node, group=group) for ordinal, node in enumerate(nodes, first)]


def bound_claim(volume: str, ordinal: int = 0) -> Claim:
    """The data claim of db-tikv-`ordinal`, bound to the volume of this name."""
    return make_claim(f"tikv-{member(ordinal)}", volume_name=volume)


def pod_on(node: str, name: str = "", **changes: Any) -> PodOnNode:
    """A bound pod of another application, label app=web, in the group's namespace; it asks for nothing."""
    pod = PodOnNode(NAMESPACE, name or f"web-{node}", node, {"app": "web"})
    return replace(pod, **changes)


def by_node(*pods: PodOnNode) -> dict[str, tuple[PodOnNode, ...]]:
    """The pods as a snapshot lists them."""
    return {pod.node_name: tuple(other for other in pods if other.node_name == pod.node_name) for pod in pods}


def reasons_for(snapshot: Snapshot, placing: Placing) -> dict[str, str]:
    """Why each node is not possible; those that are are left out."""
    found = {node.name: infeasible_reason(placing, node, snapshot) for node in snapshot.nodes}
    return {name: reason for name, reason in found.items() if reason}
