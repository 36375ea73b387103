"""A `Cluster` over an API server."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from kubernetes.client import Configuration

from certs.calls import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Caller
from certs.cluster import ClusterError, Published, Sighting, StoredSecret, Target

FIELD_MANAGER: Final = "tidb-ha-webhook-certs"
"""Owns nothing in the configuration but each `caBundle`."""

ROTATE: Final = "tidb-ha-webhook.io/rotate"
"""The Secret's annotation that asks for a new CA; any value."""

MODE: Final = "tidb-ha-webhook.io/certificates"
"""The configuration's annotation that says who makes the certificate, a `state.Mode`."""

PROBE: Final = "tidb-ha-webhook.io/probe"
"""The label by which the configuration's probe entry knows a probe, and the annotation that answers it."""

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = f"{_ADMISSION}/mutatingwebhookconfigurations"
# A policy whose binding is gone does nothing any more. A server that does not serve a kind answers 404 too.
_POLICIES: Final = (
    "mutatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicies",
)
_CERTIFICATES: Final = "/apis/cert-manager.io/v1/namespaces/{}/certificates"
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class ApiCluster:
    """A `Cluster` over an API server."""

    def __init__(self, configuration: Configuration, target: Target) -> None:
        self._caller = Caller(configuration)
        self._target = target
        self._secrets = f"/api/v1/namespaces/{target.namespace}/secrets"

    def secret(self) -> StoredSecret | None:
        """See `Cluster.secret`."""
        found = self._find("get secret", f"{self._secrets}/{self._target.secret}")
        if found is None:
            return None
        annotations = found["metadata"].get("annotations") or {}
        return StoredSecret(found["metadata"]["resourceVersion"], found.get("data") or {}, ROTATE in annotations)

    def create_secret(self, data: Mapping[str, str | None]) -> None:
        """See `Cluster.create_secret`."""
        labels = {"app.kubernetes.io/managed-by": FIELD_MANAGER}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": self._target.secret, "labels": labels},
            "data": {name: text for name, text in data.items() if text is not None},
        }
        self._caller.call("create secret", "POST", self._secrets, body, fieldManager=FIELD_MANAGER)

    def change_secret(self, version: str, data: Mapping[str, str | None], *, rotated: bool) -> None:
        """See `Cluster.change_secret`."""
        metadata: dict[str, Any] = {"resourceVersion": _checked(version)}
        if rotated:
            metadata["annotations"] = {ROTATE: None}
        body = {"metadata": metadata, "data": dict(data)}
        path = f"{self._secrets}/{self._target.secret}"
        self._caller.call("patch secret", "PATCH", path, body, MERGE_PATCH, fieldManager=FIELD_MANAGER)

    def request_rotation(self, reason: str) -> None:
        """Ask the keeper for a new CA."""
        body = {"metadata": {"annotations": {ROTATE: reason}}}
        path = f"{self._secrets}/{self._target.secret}"
        self._caller.call("patch secret", "PATCH", path, body, MERGE_PATCH, fieldManager=FIELD_MANAGER)

    def configuration(self) -> Published | None:
        """See `Cluster.configuration`."""
        path = f"{_CONFIGURATIONS}/{quote(self._target.configuration)}"
        found = self._find("get mutatingwebhookconfiguration", path)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return None
        entries = ((entry["name"], _bundle_of(entry)) for entry in found.get("webhooks") or [])
        mode = (found["metadata"].get("annotations") or {}).get(MODE, "")
        return Published(found["metadata"]["resourceVersion"], tuple(entries), mode)

    def publish(self, published: Published, bundle: bytes) -> None:
        """See `Cluster.publish`.

        A strategic merge patch finds the entries by their names and leaves every other field alone.
        """
        text = base64.b64encode(bundle).decode()
        entries = [{"name": name, "clientConfig": {"caBundle": text}} for name, _ in published.entries]
        body = {"metadata": {"resourceVersion": _checked(published.version)}, "webhooks": entries}
        path = f"{_CONFIGURATIONS}/{quote(self._target.configuration)}"
        what = "patch mutatingwebhookconfiguration"
        self._caller.call(what, "PATCH", path, body, STRATEGIC_MERGE_PATCH, fieldManager=FIELD_MANAGER)

    def probe(self, fingerprint: str) -> Sighting:
        """See `Cluster.probe`: a ConfigMap that is never stored."""
        metadata = {"generateName": f"{self._target.service}-probe-", "labels": {PROBE: self._target.service}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        path = f"/api/v1/namespaces/{self._target.namespace}/configmaps"
        try:
            found = self._caller.call("create configmap", "POST", path, body, dryRun="All", fieldManager=FIELD_MANAGER)
        except ClusterError as error:
            if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED) and "x509" not in error.detail:
                raise
            return Sighting.DISTRUSTED if "x509: " in error.detail else Sighting.UNANSWERED
        answer = (found["metadata"].get("annotations") or {}).get(PROBE)
        if answer is None:
            return Sighting.UNANSWERED
        return Sighting.MET if answer == fingerprint else Sighting.OTHER

    def remove(self, secrets: Sequence[str] = ()) -> list[str]:
        """Delete the Secret, further ones of these names, and the Lease, where they are; what was there, in words."""
        paths = {f"Secret {name}": f"{self._secrets}/{quote(name)}" for name in (self._target.secret, *secrets)}
        lease = self._target.lease
        paths[f"Lease {lease}"] = f"{_LEASES.format(self._target.namespace)}/{lease}"
        return [what for what, path in paths.items() if self._delete(what.partition(" ")[0].lower(), path)]

    def remove_configuration(self) -> bool:
        """Delete the configuration; whether it was there."""
        return self._delete("mutatingwebhookconfiguration", f"{_CONFIGURATIONS}/{quote(self._target.configuration)}")

    def remove_policies(self, names: Sequence[str]) -> list[str]:
        """Delete admission policies of these names, and the bindings of the same names first; what was there."""
        paths = [(kind, name) for name in names for kind in _POLICIES]
        return [f"{kind} {name}" for kind, name in paths if self._delete(kind, f"{_ADMISSION}/{kind}/{quote(name)}")]

    def remove_certificates(self, names: Sequence[str]) -> list[str]:
        """Delete cert-manager's Certificates of these names; what was there."""
        folder = _CERTIFICATES.format(self._target.namespace)
        return [f"Certificate {name}" for name in names if self._delete("certificate", f"{folder}/{quote(name)}")]

    def _delete(self, what: str, path: str) -> bool:
        try:
            self._caller.call(f"delete {what}", "DELETE", path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def _find(self, what: str, path: str) -> dict[str, Any] | None:
        try:
            return self._caller.call(what, "GET", path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None


def _bundle_of(entry: Mapping[str, Any]) -> bytes:
    text = (entry.get("clientConfig") or {}).get("caBundle")
    return base64.b64decode(text) if isinstance(text, str) else b""


def _checked(version: str) -> str:
    """An empty version, or 0, would mean: no check at all."""
    if version in ("", "0"):
        raise ClusterError("write", None, "without a resourceVersion nothing is written")
    return version
