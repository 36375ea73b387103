"""What tidb-operator v2 writes, imitated: groups, instances, claims and pods by server-side apply, no StatefulSet."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from e2e import objects
from e2e.api import Api, ApiError
from e2e.objects import LOCAL_STORAGE, Object
from e2e.waiting import wait_until

API_VERSION = "core.pingcap.com/v1alpha1"
MANAGER = "tidb-operator"
KINDS = {"pd": ("PDGroup", "PD"), "tikv": ("TiKVGroup", "TiKV")}
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def definitions() -> list[Object]:
    """The kinds, with any fields."""
    kinds = ["Cluster", *(kind for pair in KINDS.values() for kind in pair)]
    return [
        objects.custom_resource_definition("core.pingcap.com", "v1alpha1", kind, kind.lower() + "s") for kind in kinds
    ]


@dataclass
class Group:
    """One group object (PDGroup, TiKVGroup) with its instances, as the operator drives it."""

    api: Api
    namespace: str
    name: str = "kv"
    component: str = "tikv"
    replicas: int = 3
    cluster: str = "db"
    pod_spec: Mapping[str, Any] = field(default_factory=dict)
    instances: list[Object] = field(default_factory=list)

    def create(self) -> None:
        """The group object, and so many instances."""
        spec = {"cluster": {"name": self.cluster}, "replicas": self.replicas}
        self.group = self._apply(self._object(KINDS[self.component][0], self.name, spec))
        for _ in range(self.replicas):
            suffix = "".join(random.choices(_ALPHABET, k=6))
            manifest = self._object(
                KINDS[self.component][1], f"{self.name}-{suffix}", {"cluster": {"name": self.cluster}}
            )
            manifest["metadata"]["ownerReferences"] = [objects.owner_reference(self.group)]
            manifest["metadata"]["labels"] = self.labels(f"{self.name}-{suffix}")
            self.instances.append(self._apply(manifest))

    def labels(self, instance: str) -> dict[str, str]:
        """The labels of an instance's pod and claim."""
        return {
            "pingcap.com/managed-by": MANAGER,
            "pingcap.com/component": self.component,
            "pingcap.com/cluster": self.cluster,
            "pingcap.com/group": self.name,
            "pingcap.com/instance": instance,
            "pingcap.com/instance-revision-hash": "6c9",
            **objects.operator_labels(self.cluster, self.component),
        }

    def pod_names(self) -> list[str]:
        """The names of all pods."""
        return [self.pod_name(instance) for instance in self.instances]

    def pod_name(self, instance: Object) -> str:
        """Group, component, the instance's suffix."""
        name: str = instance["metadata"]["name"]
        return f"{self.name}-{self.component}-{name.rpartition('-')[2]}"

    def apply_claims(self, instances: Iterable[Object]) -> None:
        """The claims; PD's have the new labels only."""
        for instance in instances:
            labels = self.labels(instance["metadata"]["name"]) | {"pingcap.com/volume-name": "data"}
            if self.component == "pd":
                labels = {key: value for key, value in labels.items() if key.startswith("pingcap.com/")}
            metadata = {
                "name": f"data-{self.pod_name(instance)}",
                "namespace": self.namespace,
                "labels": labels,
                "ownerReferences": [objects.owner_reference(instance)],
            }
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": LOCAL_STORAGE,
                "resources": {"requests": {"storage": "10Gi"}},
            }
            self._apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})

    def pod(self, instance: Object, labels: Mapping[str, str] | None = None) -> Object:
        """The pod as it is applied."""
        name = self.pod_name(instance)
        volume = {"name": "ti-vol-data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {**self.labels(instance["metadata"]["name"]), **(labels or {})},
                "annotations": {"core.pingcap.com/last-instance-template": json.dumps({"spec": {}})},
                "ownerReferences": [objects.owner_reference(instance)],
            },
            "spec": {
                "containers": [objects.container(self.component, cpu="100m", memory="256Mi")],
                "hostname": name,
                "subdomain": f"{self.name}-{self.component}-peer",
                "terminationGracePeriodSeconds": 65535 if self.component == "tikv" else 30,
                "volumes": [volume],
                **self.pod_spec,
            },
        }

    def apply_pod(self, instance: Object, labels: Mapping[str, str] | None = None, **query: str) -> Object:
        """Apply the pod (again)."""
        return self._apply(self.pod(instance, labels), **query)

    def apply_pod_patiently(self, instance: Object) -> Object:
        """Apply the pod, and again for as long as that is refused with 429, as the operator does."""

        def applied() -> Object | None:
            try:
                return self.apply_pod(instance)
            except ApiError as error:
                if error.status != 429:
                    raise
                return None

        return wait_until(applied, f"{self.pod_name(instance)} to be admitted", 30)

    def _apply(self, manifest: Object, **query: str) -> Object:
        return self.api.apply(manifest, manager=MANAGER, **query)

    def _object(self, kind: str, name: str, spec: Object) -> Object:
        return {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
