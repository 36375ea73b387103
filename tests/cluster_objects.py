"""Manifests of what lives on a cluster, as the API server writes them: valid as they come, one thing changed at a time.

The world they make: namespace shop, v1 cluster "db" (or v2 cluster "db", group "kv"; or the generic set "raft"), nodes
n1, n2, …, one unbound claim for each member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.cluster.door import (
    CLAIMS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    TIKV_GROUPS,
    TIKVS,
    Manifest,
    Resource,
)
from webhook.core import keys

SPACE = "shop"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"


def labels_v1(component: str = "tikv", cluster: str = "db") -> dict[str, str]:
    return {
        keys.V1_NAME: "tidb-cluster",
        keys.V1_MANAGED_BY: keys.TIDB_OPERATOR,
        keys.V1_INSTANCE: cluster,
        keys.V1_COMPONENT: component,
    }


def labels_v2(component: str = "tikv", cluster: str = "db", group: str = "kv") -> dict[str, str]:
    return {
        keys.V2_MANAGED_BY: keys.TIDB_OPERATOR,
        keys.V2_CLUSTER: cluster,
        keys.V2_COMPONENT: component,
        keys.V2_GROUP: group,
        **labels_v1(component, cluster),
    }


def an_object(resource: Resource, name: str, *, labels: Any = None, annotations: Any = None, **parts: Any) -> Manifest:
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    metadata: Manifest = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    metadata |= {"namespace": SPACE} if resource.namespaced else {}
    metadata["ownerReferences"] = parts.pop("owners", [])
    return {"apiVersion": version, "kind": resource.kind, "metadata": metadata, **parts}


def owner_of(resource: Resource, name: str) -> Manifest:
    version = f"{resource.group}/{resource.version}"
    return {"apiVersion": version, "kind": resource.kind, "name": name, "uid": f"uid-{name}", "controller": True}


def a_node(name: str, *, zone: str = "", cpu: str = "8", ready: bool = True, **spec: Any) -> Manifest:
    labels = {keys.HOSTNAME: name} | ({ZONE: zone} if zone else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def nodes(count: int = 3) -> list[Manifest]:
    return [a_node(f"n{number}") for number in range(1, count + 1)]


def a_set(component: str = "tikv", replicas: int = 3, *, cluster: str = "db", **parts: Any) -> Manifest:
    """The StatefulSet of a component of a v1 cluster."""
    owners = [owner_of(TIDB_CLUSTERS, cluster)]
    return an_object(STATEFUL_SETS, f"{cluster}-{component}", owners=owners, spec={"replicas": replicas}, **parts)


def a_generic_set(replicas: int = 3, *, name: str = "raft", **parts: Any) -> Manifest:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    return an_object(STATEFUL_SETS, name, spec=parts.pop("spec", spec), **parts)


def a_cluster(**annotations: str) -> Manifest:
    """The TidbCluster with options: `a_cluster(skip="true")`."""
    return an_object(TIDB_CLUSTERS, "db", annotations=options(**annotations))


def options(**values: str) -> dict[str, str]:
    return {keys.PREFIX + name.replace("_", "-"): value for name, value in values.items()}


def a_claim(name: str, labels: Mapping[str, str] | None = None, *, volume: str = "", **metadata: Any) -> Manifest:
    claim = an_object(
        CLAIMS,
        name,
        labels=labels_v1() if labels is None else labels,
        spec={"storageClassName": "local", **({"volumeName": volume} if volume else {})},
        status={"phase": "Bound" if volume else "Pending"},
    )
    claim["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    return claim


def claims(count: int = 3, component: str = "tikv", cluster: str = "db") -> list[Manifest]:
    names = [f"{component}-{cluster}-{component}-{ordinal}" for ordinal in range(count)]
    return [a_claim(name, labels_v1(component, cluster)) for name in names]


def a_class(name: str = "local") -> Manifest:
    """A class whose volumes are made where the first pod that uses them goes."""
    return an_object(STORAGE_CLASSES, name, provisioner="disk.example.com", volumeBindingMode="WaitForFirstConsumer")


def a_volume(name: str, *node_names: str) -> Manifest:
    """A local volume for these nodes; for all of them if none is named."""
    expression = {"key": keys.HOSTNAME, "operator": "In", "values": list(node_names)}
    required = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    spec = {"capacity": {"storage": "10Gi"}, **({"nodeAffinity": required} if node_names else {})}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def a_pod(
    name: str = "db-tikv-0",
    *,
    labels: Any = None,
    annotations: Any = None,
    owner: Any = None,
    claim: str | None = None,
    **spec: Any,
) -> Manifest:
    """A pod as a review shows it: here of the StatefulSet that its name tells, with the claim `<component>-<name>`."""
    parent = name.rpartition("-")[0]
    component = parent.rpartition("-")[2]
    metadata: Manifest = {
        "name": name,
        "generateName": f"{parent}-",
        "namespace": SPACE,
        "labels": dict(labels_v1(component) if labels is None else labels),
        "ownerReferences": [owner or owner_of(STATEFUL_SETS, parent)],
    }
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    claim_name = f"{component}-{name}" if claim is None else claim
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}] if claim_name else []
    container = {"name": "main", "image": "store:v8", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "schedulerName": "default-scheduler", "volumes": volumes, **spec},
        "status": {},
    }


def a_v2_pod(suffix: str = "a1b2c3", *, annotations: Any = None, **spec: Any) -> Manifest:
    owner = {
        "apiVersion": "core.pingcap.com/v1alpha1",
        "kind": "TiKV",
        "name": f"kv-{suffix}",
        "uid": f"uid-{suffix}",
        "controller": True,
    }
    name = f"kv-tikv-{suffix}"
    pod = a_pod(name, labels=labels_v2(), annotations=annotations, owner=owner, claim=f"data-{name}", **spec)
    del pod["metadata"]["generateName"]
    return pod


def a_v2_world(
    replicas: int = 3, suffixes: Sequence[str] = ("a1b2c3", "d4e5f6", "g7h8i9"), **parts: Any
) -> list[Manifest]:
    """The v2 group object with its claims, on three nodes."""
    spec = {"cluster": {"name": "db"}, "replicas": replicas}
    named = [a_claim(f"data-kv-tikv-{suffix}", labels_v2()) for suffix in suffixes]
    return [*nodes(), an_object(TIKV_GROUPS, "kv", spec=spec, **parts), *named]


def v2_instances(*suffixes: str) -> list[Manifest]:
    """The instances of that group, whose pods their operator creates."""
    spec = {"cluster": {"name": "db"}}
    return [an_object(TIKVS, f"kv-{suffix}", labels=labels_v2(), spec=spec) for suffix in suffixes]


def a_generic_pod(ordinal: int = 0, member_class: str = "quorum", *, name: str = "raft", **parts: Any) -> Manifest:
    labels = {"app": name, keys.CLASS_LABEL: member_class}
    return a_pod(f"{name}-{ordinal}", labels=labels, claim=f"data-{name}-{ordinal}", **parts)


def a_v1_world(
    replicas: int = 3, component: str = "tikv", *, node_count: int = 3, **annotations: str
) -> list[Manifest]:
    """A set with its cluster object and its claims, on as many nodes."""
    return [*nodes(node_count), a_set(component, replicas), a_cluster(**annotations), *claims(replicas, component)]


def pinned(node: str) -> Manifest:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def own_guard(labels: dict[str, str] | None = None) -> Manifest:
    """What the floor puts in: the guard by hostname."""
    term = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": labels or labels_v1()}}
    exists = {"matchExpressions": [{"key": keys.HOSTNAME, "operator": "Exists"}]}
    return {
        "podAntiAffinity": {REQUIRED: [term]},
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [exists]}},
    }


def with_floor(pod: Manifest) -> Manifest:
    pod["spec"]["affinity"] = own_guard()
    pod["metadata"].setdefault("annotations", {})[keys.GUARD] = keys.HOSTNAME
    return pod


def generic_world(**parts: Any) -> list[Manifest]:
    named = [a_claim(f"data-raft-{ordinal}", {"app": "raft"}) for ordinal in range(3)]
    return [*nodes(), a_generic_set(**parts), *named]
