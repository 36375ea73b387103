"""Sets of members, their claims and pods, as tidb-operator v1 and the controllers of StatefulSets make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from e2e.objects.nodes import LOCAL_STORAGE, Object, container

ADVANCED_GROUP = "apps.pingcap.com"


def operator_labels(cluster: str, component: str) -> dict[str, str]:
    """The labels that tidb-operator v1 gives a pod, its claims and its StatefulSet when it creates them."""
    return {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": component,
    }


def claim_template(name: str, labels: Mapping[str, str], *, storage_class: str, size: str) -> Object:
    """An entry of a StatefulSet's volumeClaimTemplates."""
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def stateful_set(
    namespace: str,
    *,
    cluster: str = "db",
    component: str = "tikv",
    replicas: int = 3,
    storage_class: str = LOCAL_STORAGE,
    size: str = "10Gi",
    cpu: str = "100m",
    memory: str = "256Mi",
    pod_management_policy: str = "Parallel",
    pod_spec: Mapping[str, Any] | None = None,
) -> Object:
    """The StatefulSet of `component` (`tikv`, `pd`) as tidb-operator v1 makes it; `pod_spec` adds fields."""
    labels = operator_labels(cluster, component)
    mount = {"name": component, "mountPath": f"/var/lib/{component}"}
    spec: Object = {"containers": [{**container(component, cpu=cpu, memory=memory), "volumeMounts": [mount]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": f"{cluster}-{component}", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "serviceName": f"{cluster}-{component}-peer",
            "podManagementPolicy": pod_management_policy,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**spec, **(pod_spec or {})}},
            "volumeClaimTemplates": [claim_template(component, labels, storage_class=storage_class, size=size)],
        },
    }


def advanced(stateful_set: Object) -> Object:
    """The same set as an advanced StatefulSet: no controller here knows that kind, so a test can play it."""
    return {**stateful_set, "apiVersion": f"{ADVANCED_GROUP}/v1"}


def owner_reference(owner: Object, uid: str = "") -> Object:
    """The reference that a controller puts into what it creates."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid or owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def member_claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """The claims of one pod, as the controller of a StatefulSet creates them."""
    name, namespace = stateful_set["metadata"]["name"], stateful_set["metadata"]["namespace"]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"{template['metadata']['name']}-{name}-{ordinal}",
                "namespace": namespace,
                "labels": dict(template["metadata"]["labels"]),
            },
            "spec": template["spec"],
        }
        for template in stateful_set["spec"]["volumeClaimTemplates"]
    ]


def member_pod(stateful_set: Object, ordinal: int, uid: str = "", **spec: Any) -> Object:
    """One pod, as the controller of a StatefulSet creates it; `spec` adds fields to the template's."""
    name, template = f"{stateful_set['metadata']['name']}-{ordinal}", stateful_set["spec"]["template"]
    volumes = [
        {
            "name": claim["metadata"]["name"].removesuffix(f"-{name}"),
            "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]},
        }
        for claim in member_claims(stateful_set, ordinal)
    ]
    labels = {"apps.kubernetes.io/pod-index": str(ordinal), "statefulset.kubernetes.io/pod-name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": name.removesuffix(str(ordinal)),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**template["metadata"]["labels"], **labels},
            "annotations": dict(template["metadata"].get("annotations", {})),
            "ownerReferences": [owner_reference(stateful_set, uid)],
        },
        "spec": {
            **template["spec"],
            "hostname": name,
            "subdomain": stateful_set["spec"]["serviceName"],
            "volumes": volumes,
            **spec,
        },
    }


def tidb_cluster(namespace: str, name: str, annotations: Mapping[str, str] | None = None) -> Object:
    """A TidbCluster of which only the annotations matter here."""
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    return {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": metadata, "spec": {}}
