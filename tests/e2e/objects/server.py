"""What tells the API server of webhooks and kinds."""

from __future__ import annotations

import base64
from typing import Any

from e2e.objects.nodes import Object


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
