"""The pods of a StatefulSet, as its controller creates them and the API server hands them to admission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from webhook.core.desired import ADVANCED_API_GROUP, DELETE_SLOTS, NAMED_MEMBERS, desired_ordinals, slots_in
from webhook.core.shapes import inside, integer, items, mapping, text, texts
from webhook.errors import WebhookError

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
LONGEST_NAME: Final = 253
"""Characters of the name of a pod or claim."""


class SetError(WebhookError):
    """A StatefulSet has no pods that can be made; the text names the field."""


def pods_of(stateful_set: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods that a StatefulSet wants, by ordinal; their claims are named, not made.

    The set needs its name; with its uid, as stored, the pods name their owner in full. Raises SetError.
    """
    name = text(inside(stateful_set, "metadata", "name"))
    template = inside(stateful_set, "spec", "template")
    if not isinstance(inside(template, "spec"), dict):
        raise SetError("spec.template.spec: must be an object: the pods are made from it")
    for ordinal in _ordinals(stateful_set):
        spec = _spec(stateful_set, template["spec"], f"{name}-{ordinal}")
        _check_names(f"{name}-{ordinal}", spec)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": _metadata(stateful_set, mapping(template), f"{name}-{ordinal}", ordinal),
            "spec": spec,
        }


def _check_names(pod: str, spec: Mapping[str, Any]) -> None:
    """Raises SetError for names that follow from the set's and are longer than an API server takes."""
    claims = (text(inside(volume, "persistentVolumeClaim", "claimName")) for volume in spec["volumes"])
    for kind, name in (("a pod", pod), *(("a claim", claim) for claim in claims)):
        if len(name) > LONGEST_NAME:
            raise SetError(
                f"metadata.name: too long: the name of {kind} of it, ..{name[-20:]}, would have {len(name)} characters;"
                f" {LONGEST_NAME} are the most"
            )


def _ordinals(stateful_set: Mapping[str, Any]) -> tuple[int, ...]:
    spec = mapping(stateful_set.get("spec"))
    replicas = 1 if spec.get("replicas") is None else integer(spec["replicas"])
    if replicas is None or not 0 <= replicas <= NAMED_MEMBERS:
        raise SetError(f"spec.replicas: must be a number from 0 to {NAMED_MEMBERS}, is {spec['replicas']!r:.40}")
    start = max(0, integer(inside(spec, "ordinals", "start")) or 0)
    slots = None
    if text(stateful_set.get("apiVersion")).startswith(ADVANCED_API_GROUP):
        # Kubernetes' own controller ignores them.
        slots = slots_in(texts(inside(stateful_set, "metadata", "annotations")).get(DELETE_SLOTS, ""))
    return desired_ordinals(replicas, start, slots or ())


def _metadata(stateful_set: Mapping[str, Any], template: Mapping[str, Any], name: str, ordinal: int) -> dict[str, Any]:
    owner = mapping(stateful_set.get("metadata"))
    return {
        "name": name,
        "generateName": f"{owner.get('name')}-",
        "namespace": owner.get("namespace"),
        "labels": {**texts(inside(template, "metadata", "labels")), NAME_LABEL: name, INDEX_LABEL: str(ordinal)},
        "annotations": dict(texts(inside(template, "metadata", "annotations"))),
        "ownerReferences": [
            {
                "apiVersion": stateful_set.get("apiVersion"),
                "kind": "StatefulSet",
                "name": owner.get("name"),
                "uid": owner.get("uid"),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def _spec(stateful_set: Mapping[str, Any], template: Mapping[str, Any], name: str) -> dict[str, Any]:
    claims = [
        text(inside(found, "metadata", "name")) for found in items(inside(stateful_set, "spec", "volumeClaimTemplates"))
    ]
    volumes: list[Any] = [
        {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims if claim
    ]
    # A claim template goes before a volume of the same name.
    volumes += [volume for volume in items(template.get("volumes")) if inside(volume, "name") not in claims]
    spec: dict[str, Any] = {"schedulerName": "default-scheduler", **deepcopy(dict(template)), "hostname": name}
    return {**spec, "volumes": volumes}
