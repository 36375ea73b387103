"""The cluster in which the incident is replayed, as the objects of a dump, and the pods that are created in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

from webhook.cluster.door import Manifest
from webhook.core import keys
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Group
from webhook.demo.incident import Incident
from webhook.embedded.sets import pods_of

_CLASS = "local"
_SPACES = ("default", "kube-system")


def objects_of(incident: Incident) -> tuple[Manifest, ...]:
    """Nodes, what keeps all but one of them busy, a storage class, and the StatefulSets of PD and TiKV."""
    busy = [name for name in incident.nodes if name != incident.emptiest]
    return (
        *(_node(name, incident.node) for name in incident.nodes),
        # Of several namespaces, as in any cluster: a dump with the pods of one was made without -A.
        *(_other_work(name, incident.other_work, space) for name, space in zip(busy, cycle(_SPACES), strict=False)),
        _storage_class(),
        *sets_of(incident),
    )


def sets_of(incident: Incident) -> tuple[Manifest, ...]:
    """The StatefulSets, as tidb-operator v1 would have made them."""
    return tuple(_set(incident, component) for component in incident.components)


def pods_by_name(incident: Incident) -> Mapping[str, Manifest]:
    """The pods as admission sees them."""
    return {pod["metadata"]["name"]: pod for found in sets_of(incident) for pod in pods_of(found)}


def group_of(pod: Manifest) -> Group:
    """The group that one of these pods is a member of."""
    group = recognise(pod_from(pod)).group
    if group is None:
        raise ValueError(f"{pod['metadata']['name']} is of no group")
    return group


def _node(name: str, allocatable: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {keys.HOSTNAME: name}},
        "status": {"allocatable": dict(allocatable), "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _other_work(node: str, requests: Mapping[str, str], namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-work-on-{node}", "namespace": namespace},
        "spec": {"nodeName": node, "containers": [_container("work", requests)]},
        "status": {"phase": "Running"},
    }


def _storage_class() -> Manifest:
    # The driver makes a volume on whichever node the pod is bound to.
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": "local.csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _set(incident: Incident, component: str) -> Manifest:
    name = f"{incident.cluster}-{component}"
    labels = {
        keys.V1_MANAGED_BY: keys.TIDB_OPERATOR,
        keys.V1_NAME: "tidb-cluster",
        keys.V1_INSTANCE: incident.cluster,
        keys.V1_COMPONENT: component,
    }
    claim = {
        "metadata": {"name": component},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": _CLASS,
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    spec: dict[str, Any] = {
        "replicas": len(incident.components[component]),
        "podManagementPolicy": "Parallel",
        "serviceName": f"{name}-peer",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [_container(component, incident.requests[component])]},
        },
        "volumeClaimTemplates": [claim],
    }
    metadata = {"name": name, "namespace": incident.namespace, "uid": f"uid-of-{name}", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _container(name: str, requests: Mapping[str, str]) -> Manifest:
    return {"name": name, "image": f"example.com/{name}", "resources": {"requests": dict(requests)}}
