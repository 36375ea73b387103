"""Nodes, their volumes, and pods that take room on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any, Final

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
LOCAL_STORAGE = "local-storage"


def node(
    name: str,
    *,
    zone: str | None = None,
    cpu: str = "8",
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Object] = (),
    unschedulable: bool = False,
) -> Object:
    """A ready node. Its status is part of the POST: if it came later, kwok might first give it 1,000 CPUs."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "1Ti"}
    zone_label = {} if zone is None else {ZONE: zone}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, "kubernetes.io/os": "linux", **zone_label, **(labels or {})},
        },
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def storage_class(name: str = LOCAL_STORAGE, *, binding_mode: str = "WaitForFirstConsumer") -> Object:
    """A class of volumes that exist already; the other binding mode is `Immediate`."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": binding_mode,
    }


def local_volume(name: str, node_name: str, *, storage_class: str = LOCAL_STORAGE, size: str = "100Gi") -> Object:
    """A PersistentVolume on the disk of one node."""
    on_the_node = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_the_node]}]}},
        },
    }


SPARE: Final = 6
"""Local volumes on each node beyond those that a test needs."""


def local_cluster(
    names: Iterable[str], *, zones: Iterable[str | None] = (None,), volumes: int = 3, **fields: Any
) -> list[Object]:
    """The storage class, nodes of one shape (`fields` are `node`'s), and so many local volumes on each, or more.

    The zones are dealt out in turn: one zone for all, or a list. With just enough volumes a set may be guarded for
    those that pods of other sets on their way are about to take, or did not take in the end; that is not what these
    tests are about.
    """
    volumes += SPARE if volumes else 0
    nodes = [node(name, zone=zone, **fields) for name, zone in zip(names, cycle(zones), strict=False)]
    return [
        storage_class(),
        *nodes,
        *(local_volume(f"{on}-{i}", on) for on in (n["metadata"]["name"] for n in nodes) for i in range(volumes)),
    ]


def container(name: str, *, cpu: str, memory: str) -> Object:
    """A container that asks for resources; there is no kubelet here to run it."""
    return {
        "name": name,
        "image": f"example.invalid/{name}",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }


def filler_pod(namespace: str, node_name: str, *, cpu: str, memory: str, name: str | None = None) -> Object:
    """A pod that takes room on one node; it names its node itself, so no scheduler is asked."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name or f"filler-{node_name}", "namespace": namespace},
        "spec": {
            "nodeName": node_name,
            "terminationGracePeriodSeconds": 0,
            "containers": [container("filler", cpu=cpu, memory=memory)],
        },
    }
