"""Manifests of a small cluster, as a dump holds them: three nodes, a class, a v1 StatefulSet of three stores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from webhook.core import keys
from webhook.embedded.reviews import review_of
from webhook.embedded.sets import pods_of

NAMESPACE = "t1"
LABELS = {
    keys.V1_MANAGED_BY: keys.TIDB_OPERATOR,
    keys.V1_NAME: "tidb-cluster",
    keys.V1_INSTANCE: "db",
    keys.V1_COMPONENT: "tikv",
}
CLASS = "local"
Manifest = dict[str, Any]


def a_node(name: str, *, cpu: str = "8", **metadata: Any) -> Manifest:
    """A Ready node with its hostname label."""
    status = {
        "allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {"labels": {keys.HOSTNAME: name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **labels, **metadata}, "status": status}


def a_class() -> Manifest:
    """A class that waits for its first consumer."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": "local.csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def a_set(
    name: str = "db-tikv",
    *,
    replicas: Any = 3,
    labels: Manifest = LABELS,
    claims: Iterable[str] = ("tikv",),
    **spec: Any,
) -> Manifest:
    """A StatefulSet whose pods ask for one CPU and own a claim for each of `claims`."""
    templates = [
        {
            "metadata": {"name": claim},
            "spec": {"storageClassName": CLASS, "resources": {"requests": {"storage": "1Gi"}}},
        }
        for claim in claims
    ]
    container = {"name": "tikv", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    whole = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": templates,
    }
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {**whole, **spec}}


def a_cluster_with(*more: Manifest, nodes: Iterable[str] = ("n1", "n2", "n3")) -> list[Manifest]:
    """The objects of a cluster: nodes, the class, the namespace, pods as every cluster has some, and more."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [*(a_node(name) for name in nodes), a_class(), space, *system_pods(), *more]


def system_pods() -> list[Manifest]:
    """Pods of two namespaces that ask for nothing, on a node that is not there."""
    status, spec = {"phase": "Running"}, {"nodeName": "elsewhere", "containers": [{"name": "c"}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": space},
            "spec": spec,
            "status": status,
        }
        for space in ("kube-system", "monitoring")
    ]


def a_plain_pod(name: str = "web-0", **metadata: Any) -> Manifest:
    """A pod that is of no group."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {"containers": [{"name": "web"}]},
    }


def pods_of_set(stateful_set: Manifest) -> list[Manifest]:
    """The pods that the set's controller would create."""
    return list(pods_of(stateful_set))


def body_of(pod: Manifest, *, namespace: str = NAMESPACE, dry_run: bool = False) -> bytes:
    """The review of the pod's create, as it is sent."""
    return json.dumps(review_of(pod, namespace=namespace, uid="u-1", dry_run=dry_run)).encode()


def write(path: Path, *objects: Any) -> Path:
    """A file that holds these objects as one list."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path
