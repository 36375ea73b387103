"""From Kubernetes objects as the API server writes them to the frozen values of `objects.py` and `storage.py`.

This and its siblings `pod_manifests.py`, `selector_manifests.py` and `storage_manifests.py` know where a field lies
inside an object. Every constructor takes any JSON and never
raises: what is absent or of a wrong type becomes the field's empty value. Where that leaves a choice, the
value is the one that promises less: a requirement that cannot be read matches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from webhook.core import keys
from webhook.core.objects import NO_QUANTITIES, Node, OwnerReference, Pod, PodOnNode, Taint
from webhook.core.pod_manifests import (
    REQUIRED,
    affinity_terms_from,
    claim_names_from,
    ephemeral_claims_from,
    host_ports_from,
    spread_constraints_from,
    tolerations_from,
)
from webhook.core.selector_manifests import label_selector_from, node_selector_from
from webhook.core.shapes import inside, integer, items, mapping, text, texts
from webhook.core.storage_manifests import (
    BETA_STORAGE_CLASS,
    SELECTED_NODE,
    ParseQuantity,
    attach_limits_from,
    capacity_from,
    claim_from,
    publishes_capacity,
    storage_class_from,
    volume_from,
)

__all__ = [
    "BETA_STORAGE_CLASS",
    "SELECTED_NODE",
    "ParseQuantity",
    "as_counted",
    "attach_limits_from",
    "capacity_from",
    "claim_from",
    "label_selector_from",
    "node_from",
    "node_selector_from",
    "placed_pod_from",
    "pod_from",
    "publishes_capacity",
    "storage_class_from",
    "volume_from",
]

# A resource with a finer unit than a whole one.
_FINER: Final[Mapping[str, Decimal]] = {"cpu": Decimal("0.001")}


def pod_from(manifest: Mapping[str, Any], *, namespace: str = "") -> Pod:
    """A Pod object's value; `namespace` (that of the request) wins over the object's own when given.

    A pod that only has a generateName gets the name "".
    """
    metadata, spec, status = _parts(manifest)
    namespace, name = namespace or text(metadata.get("namespace")), text(metadata.get("name"))
    labels = texts(metadata.get("labels"))
    return Pod(
        namespace=namespace,
        name=name,
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        labels=labels,
        annotations=texts(metadata.get("annotations")),
        owner=_controller(metadata),
        node_name=text(spec.get("nodeName")),
        nominated_node_name=text(status.get("nominatedNodeName")),
        phase=text(status.get("phase")),
        created=text(metadata.get("creationTimestamp")),
        deleting=bool(metadata.get("deletionTimestamp")),
        ready=_is_ready(status),
        scheduler_name=text(spec.get("schedulerName")),
        node_selector=texts(spec.get("nodeSelector")),
        node_affinity=node_selector_from(inside(spec, "affinity", "nodeAffinity", REQUIRED)),
        anti_affinity=affinity_terms_from(spec, "podAntiAffinity", labels),
        tolerations=tolerations_from(spec),
        claim_names=claim_names_from(name, spec),
        affinity=affinity_terms_from(spec, "podAffinity", labels),
        spread=spread_constraints_from(spec, labels),
        host_ports=host_ports_from(spec),
        priority=integer(spec.get("priority")) or 0,
        preempts=spec.get("preemptionPolicy") != "Never",
        ephemeral_claims=ephemeral_claims_from(name, namespace, spec),
    )


def placed_pod_from(manifest: Mapping[str, Any], node_name: str, requests: Mapping[str, Decimal]) -> PodOnNode:
    """A Pod object's value as a pod that takes a place on this node; it is bound there, or will be in a moment.

    `requests` are what it asks of the node. Only what a filter may need is kept, so that many can be.
    """
    metadata, spec, _ = _parts(manifest)
    name, labels = text(metadata.get("name")), texts(metadata.get("labels"))
    return PodOnNode(
        namespace=text(metadata.get("namespace")),
        name=name,
        node_name=node_name,
        labels=labels,
        requests=requests,
        priority=integer(spec.get("priority")) or 0,
        bound=text(spec.get("nodeName")) == node_name,
        deleting=bool(metadata.get("deletionTimestamp")),
        host_ports=host_ports_from(spec),
        anti_affinity=affinity_terms_from(spec, "podAntiAffinity", labels),
        claim_names=claim_names_from(name, spec),
        guard=texts(metadata.get("annotations")).get(keys.GUARD, ""),
    )


def node_from(manifest: Mapping[str, Any], parse_quantity: ParseQuantity) -> Node:
    """A Node object's value; `parse_quantity` gives base units, or None for what it cannot read (left out).

    A node that reports no Ready condition is not ready.
    """
    metadata, spec, status = _parts(manifest)
    return Node(
        name=text(metadata.get("name")),
        labels=texts(metadata.get("labels")),
        taints=tuple(_taint(raw) for raw in items(spec.get("taints"))),
        unschedulable=spec.get("unschedulable") is True,
        ready=_is_ready(status),
        allocatable=_quantities(status.get("allocatable"), parse_quantity),
    )


def _parts(manifest: object) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    top = mapping(manifest)
    return mapping(top.get("metadata")), mapping(top.get("spec")), mapping(top.get("status"))


def _controller(metadata: Mapping[str, Any]) -> OwnerReference | None:
    for raw in items(metadata.get("ownerReferences")):
        reference = mapping(raw)
        if reference.get("controller") is True:
            return OwnerReference(
                api_version=text(reference.get("apiVersion")),
                kind=text(reference.get("kind")),
                name=text(reference.get("name")),
                uid=text(reference.get("uid")),
            )
    return None


def _is_ready(status: Mapping[str, Any]) -> bool:
    conditions = [mapping(raw) for raw in items(status.get("conditions"))]
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _taint(raw: object) -> Taint:
    fields = mapping(raw)
    return Taint(text(fields.get("key")), text(fields.get("value")), text(fields.get("effect")))


def as_counted(name: str, amount: Decimal) -> Decimal:
    """The amount of a resource as the scheduler counts it: whole thousandths of a CPU, whole units of all else."""
    return amount.quantize(_FINER.get(name, Decimal(1)), ROUND_CEILING)


def _quantities(raw: object, parse_quantity: ParseQuantity) -> Mapping[str, Decimal]:
    found = {}
    for name, value in mapping(raw).items():
        amount = parse_quantity(value)
        if isinstance(name, str) and amount is not None:
            found[name] = as_counted(name, amount)
    return found or NO_QUANTITIES
