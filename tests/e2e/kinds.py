"""The kinds that the tests use, and the paths of their objects."""

from __future__ import annotations

from e2e.objects import Object

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
# kind: prefix of the path, resource, namespaced
RESOURCES: dict[str, tuple[str, str, bool]] = {
    "Event": ("/api/v1", "events", True),
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "Pod": ("/api/v1", "pods", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "Secret": ("/api/v1", "secrets", True),
    "Service": ("/api/v1", "services", True),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses", False),
    "CSIDriver": ("/apis/storage.k8s.io/v1", "csidrivers", False),
    "CSINode": ("/apis/storage.k8s.io/v1", "csinodes", False),
    "CSIStorageCapacity": ("/apis/storage.k8s.io/v1", "csistoragecapacities", True),
    "VolumeAttachment": ("/apis/storage.k8s.io/v1", "volumeattachments", False),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "RuntimeClass": ("/apis/node.k8s.io/v1", "runtimeclasses", False),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    **{
        kind: (ADMISSION, plural, False)
        for kind, plural in (
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
            ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        )
    },
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    **{
        kind: ("/apis/core.pingcap.com/v1alpha1", kind.lower() + "s", True)
        for kind in ("Cluster", "PDGroup", "PD", "TiKVGroup", "TiKV")
    },
    "TidbCluster": ("/apis/pingcap.com/v1alpha1", "tidbclusters", True),
    "apps.pingcap.com/StatefulSet": ("/apis/apps.pingcap.com/v1", "statefulsets", True),
}


def path_of(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """The path of an object or, without a name, of a list."""
    prefix, resource, namespaced = RESOURCES[kind]
    place = f"/namespaces/{namespace}" if namespaced and namespace else ""
    return f"{prefix}{place}/{resource}{below(name)}"


def path_of_manifest(manifest: Object, *, with_name: bool = True) -> str:
    """The path of a manifest's object, or of the list that it goes into."""
    metadata = manifest["metadata"]
    return path_of(kind_of(manifest), metadata.get("namespace"), metadata["name"] if with_name else None)


def kind_of(manifest: Object) -> str:
    """The key of `RESOURCES` for a manifest: two groups may have kinds of one name."""
    group, _, _ = manifest["apiVersion"].rpartition("/")
    qualified = f"{group}/{manifest['kind']}"
    return qualified if qualified in RESOURCES else manifest["kind"]


def below(part: str | None) -> str:
    """The end of a path, empty where there is none."""
    return f"/{part}" if part else ""
