"""Builders of manifests, valid as they are; a test names only what it is about."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
LOCAL_STORAGE = "local-storage"
DECISION = "tidb-ha-webhook.io/decision"
ASSIGNED_NODE = "tidb-ha-webhook.io/assigned-node"
GUARD = "tidb-ha-webhook.io/guard"
LOCK = "tidb-ha-webhook.io/lock"
ENTRY_PREFIX = "tidb-ha-webhook.io/entry."
ADVANCED_GROUP = "apps.pingcap.com"


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


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Object:
    """A taint of a node."""
    return {"key": key, "value": value, "effect": effect}


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


def local_cluster(
    names: Iterable[str], *, zones: Iterable[str | None] = (None,), volumes: int = 3, **fields: Any
) -> list[Object]:
    """The storage class, nodes of one shape (`fields` are `node`'s), and so many local volumes on each.

    The zones are dealt out in turn: one zone for all, or a list.
    """
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


def external_name_service(namespace: str, name: str) -> Object:
    """A Service that resolves to this machine, so that webhook configurations can name a Service as ever."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def webhook_configuration(
    name: str,
    *,
    service: tuple[str, str],
    port: int,
    ca_bundle: bytes,
    path: str = "/mutate",
    failure_policy: str = "Ignore",
    timeout_seconds: int = 10,
    **fields: Any,
) -> Object:
    """A MutatingWebhookConfiguration for CREATE of pods.

    `service` is namespace and name: the server's certificate has to be for `NAME.NAMESPACE.svc`, whatever
    that resolves to. `ca_bundle` is PEM. Other fields of the entry (objectSelector, matchConditions, …) go
    into `fields`.
    """
    namespace, service_name = service
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    reference = {"namespace": namespace, "name": service_name, "port": port, "path": path}
    entry: Object = {
        "name": f"{name}.e2e.test",
        "rules": [pods],
        "clientConfig": {"service": reference, "caBundle": base64.b64encode(ca_bundle).decode()},
        "failurePolicy": failure_policy,
        "timeoutSeconds": timeout_seconds,
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{**entry, **fields}],
    }


def custom_resource_definition(group: str, version: str, kind: str, plural: str) -> Object:
    """A definition of a namespaced kind that takes any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served],
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
