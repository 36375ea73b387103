"""What the API server, its admission plugins and the StatefulSet controller give to a new object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final

from webhook.cluster.api_errors import Refused
from webhook.cluster.door import CLAIMS, PODS, Manifest, Resource
from webhook.core.shapes import inside, items, mapping, text, texts

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_PENDING: Final = {"phase": "Pending"}
_ANY_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def created(manifest: Mapping[str, Any], resource: Resource, namespace: str, number: int, now: float) -> Manifest:
    """A copy of the manifest as it is stored: with name, namespace, uid and creationTimestamp.

    `number` is one that no other object of the cluster has; `now` is in seconds since 1970. Raises Refused.
    """
    result: Manifest = deepcopy(dict(manifest))
    metadata = result.get("metadata")
    if not isinstance(metadata, dict):
        raise Refused(422, "metadata: Required value")
    name = metadata.get("name")
    if not name and metadata.get("generateName"):
        name = f"{metadata['generateName']}{_suffix(number)}"
    if not isinstance(name, str) or not name:
        raise Refused(422, "metadata.name: Required value: name or generateName is required")
    if resource.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise Refused(400, "the namespace of the object does not match the namespace on the request")
    metadata |= {"name": name, "uid": uid_of(number), "creationTimestamp": timestamp(now)}
    for key in ("resourceVersion", "deletionTimestamp"):
        metadata.pop(key, None)
    result |= {"apiVersion": api_version(resource), "kind": resource.kind}
    if resource in (PODS, CLAIMS) and not inside(result, "status", "phase"):
        result["status"] = {**mapping(result.get("status")), **_PENDING}
    return result


def api_version(resource: Resource) -> str:
    """The `apiVersion` of a resource's objects."""
    return f"{resource.group}/{resource.version}" if resource.group else resource.version


def uid_of(number: int) -> str:
    """A uid made of a number, so that two runs of one scenario are alike."""
    return f"00000000-0000-4000-8000-{number:012x}"


def timestamp(seconds: float) -> str:
    """A moment (s since 1970) as the API server writes it."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def missing_claims(
    pod: Mapping[str, Any],
    labels: Mapping[str, str],
    stateful_set: Mapping[str, Any] | None,
    storage_classes: tuple[Manifest, ...],
) -> Iterator[Manifest]:
    """The claims that a StatefulSet's pod names, as its controller creates them before the pod.

    They are the set's claim templates where the set is known, else one request of 1Gi; `labels` (the set's
    matchLabels) are added as the controller does. A claim without a class gets the default class.
    """
    name = text(inside(pod, "metadata", "name"))
    templates = {
        f"{text(inside(template, 'metadata', 'name'))}-{name}": mapping(template)
        for template in items(inside(stateful_set, "spec", "volumeClaimTemplates"))
    }
    for volume in items(inside(pod, "spec", "volumes")):
        claim_name = text(inside(volume, "persistentVolumeClaim", "claimName"))
        if claim_name:
            yield _claim(claim_name, templates.get(claim_name, {}), labels, _default_class(storage_classes))


def _claim(name: str, template: Mapping[str, Any], labels: Mapping[str, str], default_class: str) -> Manifest:
    spec = dict(mapping(template.get("spec"))) or deepcopy(_ANY_CLAIM)
    if default_class and spec.get("storageClassName") is None:
        spec["storageClassName"] = default_class
    metadata = {
        "name": name,
        "labels": {**texts(inside(template, "metadata", "labels")), **labels},
        "annotations": dict(texts(inside(template, "metadata", "annotations"))),
    }
    return {"metadata": metadata, "spec": spec}


def _suffix(number: int) -> str:
    letters = []
    for _ in range(5):
        number, position = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[position])
    return "".join(letters)


def _default_class(storage_classes: tuple[Manifest, ...]) -> str:
    names = (
        text(inside(found, "metadata", "name"))
        for found in storage_classes
        if texts(inside(found, "metadata", "annotations")).get(_DEFAULT_CLASS) == "true"
    )
    return next(names, "")
