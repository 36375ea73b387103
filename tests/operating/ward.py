"""A cluster for `doctor`: with configurations, policies, Leases, and an API server that knows who may do what."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import trustme
from cluster_objects import a_class
from stand import START

from webhook.cluster.door import PODS, WEBHOOKS, Manifest, Resource
from webhook.cluster.kinds import CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.deadline import Deadline
from webhook.errors import Forbidden
from webhook.operating.connecting import Connection
from webhook.operating.doctor.examine import examine
from webhook.operating.doctor.lines import Line
from webhook.operating.doctor.patient import BINDINGS, LEASES, POLICIES, SERVICES
from webhook.operating.doctor.permissions import REVIEWS, SELF_REVIEWS
from webhook.settings import Settings

SYSTEM = "tidb-ha-system"
NAME = "hook"
POD_LABELS = {"app.kubernetes.io/name": "tidb-ha-webhook"}


class Ward(MemoryCluster):
    """Serves what a doctor reads. `denied`: what nobody may do; `forbidden`: what the doctor may not list."""

    def __init__(self, objects: Iterable[Manifest], *, floor: bool = True) -> None:
        kinds = (WEBHOOKS, SERVICES, LEASES, *((POLICIES, BINDINGS) if floor else ()))
        there = json.loads(json.dumps([a_class(), *objects]))
        super().__init__(there, clock=lambda: START, serve=(*CUSTOM, *kinds))
        self.denied: set[tuple[str, str]] = set()
        self.forbidden: set[str] = set()
        self.asked: list[str] = []

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        if resource not in (REVIEWS, SELF_REVIEWS):
            return super().create(resource, manifest, namespace=namespace, timeout=timeout)
        if resource.plural in self.forbidden:
            raise Forbidden("create", resource.plural, status=403)
        wanted = manifest["spec"]["resourceAttributes"]
        self.asked.append(manifest["spec"].get("user", ""))
        return {"status": {"allowed": (wanted["verb"], wanted["resource"]) not in self.denied}}

    def list(self, resource: Resource, **parameters: Any) -> Any:
        if resource.plural in self.forbidden:
            raise Forbidden("list", resource.plural, status=403)
        return super().list(resource, **parameters)

    def add(self, resource: Resource, name: str, namespace: str = "", **parts: Any) -> Ward:
        """Put an object there."""
        metadata = {"name": name, **parts.pop("metadata", {}), **({"namespace": namespace} if namespace else {})}
        super().create(resource, {"metadata": metadata, **parts}, namespace=namespace, timeout=1)
        return self


class About:
    """An API server that says its version, or fails to."""

    def __init__(self, version: object = None, error: Exception | None = None) -> None:
        self._version = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"} if version is None else version
        self._error = error

    def version(self, timeout: float) -> object:
        assert timeout > 0
        if self._error is not None:
            raise self._error
        return self._version


def lines_of(
    cluster: MemoryCluster, *, about: Any = None, now: float = START, **settings: Any
) -> dict[str, list[Line]]:
    """What the doctor says, by what it is about."""
    connection = Connection(cluster, Settings(**settings), "", Deadline.after(20), about=about or About())
    found: dict[str, list[Line]] = {}
    for line in examine(connection, lambda: now):
        found.setdefault(line.about, []).append(line)
    return found


def level(lines: Mapping[str, list[Line]], about: str) -> str:
    """The levels of what is said about it."""
    return " ".join(line.level.value for line in lines[about])


def said(lines: Mapping[str, list[Line]], about: str) -> str:
    """What is said about it, and what to do."""
    return "\n".join(f"{line.found} -> {line.to_do}" for line in lines[about])


AUTHORITY = trustme.CA()


def bundle(authority: trustme.CA = AUTHORITY) -> str:
    """A CA bundle as a configuration has it."""
    return base64.b64encode(authority.cert_pem.bytes()).decode()


def a_webhook(name: str = "pods.tidb-ha-webhook.io", **fields: Any) -> Manifest:
    """One webhook as the chart has it."""
    return {
        "name": name,
        "clientConfig": {
            "service": {"namespace": SYSTEM, "name": NAME, "port": 443, "path": "/mutate"},
            "caBundle": bundle(),
        },
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        **fields,
    }


def installed(ward: Ward, *webhooks: Manifest, replicas: int = 2, image: str = "tidb-ha-webhook:0.1.0") -> Ward:
    """The chart's objects: the configuration, its Service, the replicas and the leader's Lease."""
    ward.add(WEBHOOKS, "hook.tidb-ha-system", webhooks=list(webhooks) or [a_webhook()])
    ward.add(SERVICES, NAME, SYSTEM, spec={"selector": POD_LABELS})
    lease = {"holderIdentity": "hook-0_1a2b3c4d", "renewTime": "2027-01-15T08:00:00.000000Z"}
    ward.add(LEASES, "tidb-ha-webhook-controller", SYSTEM, spec=lease)
    for number in range(replicas):
        ward.add(PODS, f"hook-{number}", SYSTEM, **a_replica(image))
    return ward


def a_replica(image: str, *, ready: bool = True) -> Manifest:
    """The parts of a pod of the webhook."""
    return {
        "metadata": {"labels": POD_LABELS},
        "spec": {"serviceAccountName": NAME, "containers": [{"name": "webhook", "image": image}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }
