"""From Kubernetes objects as the API server writes them to the frozen values of `model.py`.

The one place that knows where a field lies inside an object. Every constructor takes any JSON and never
raises: what is absent or of a wrong type becomes the field's empty value. Where that leaves a choice, the
value is the one that promises less: a requirement that cannot be read matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from webhook.core.objects import (
    NO_QUANTITIES,
    Claim,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    PersistentVolume,
    Pod,
    PodAffinityTerm,
    Requirement,
    StorageClass,
    Taint,
    Toleration,
)
from webhook.core.shapes import inside, items, mapping, strings, text, texts

# Set by the scheduler on an unbound claim of a class that waits for its first consumer.
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
# The class annotation of before storageClassName; Kubernetes still lets it win on claims.
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_from(manifest: Mapping[str, Any], *, namespace: str = "") -> Pod:
    """A Pod object's value; `namespace` (that of the request) wins over the object's own when given.

    A pod that only has a generateName gets the name "".
    """
    metadata, spec, status = _parts(manifest)
    return Pod(
        namespace=namespace or text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        labels=texts(metadata.get("labels")),
        annotations=texts(metadata.get("annotations")),
        owner=_controller(metadata),
        node_name=text(spec.get("nodeName")),
        nominated_node_name=text(status.get("nominatedNodeName")),
        phase=text(status.get("phase")),
        deleting=bool(metadata.get("deletionTimestamp")),
        ready=_is_ready(status),
        scheduler_name=text(spec.get("schedulerName")),
        node_selector=texts(spec.get("nodeSelector")),
        node_affinity=node_selector_from(inside(spec, "affinity", "nodeAffinity", REQUIRED)),
        anti_affinity=_affinity_terms(inside(spec, "affinity", "podAntiAffinity", REQUIRED)),
        tolerations=tuple(_toleration(raw) for raw in items(spec.get("tolerations"))),
        claim_names=tuple(dict.fromkeys(_claim_names(text(metadata.get("name")), spec))),
    )


def claim_from(manifest: Mapping[str, Any]) -> Claim:
    """A PersistentVolumeClaim object's value."""
    metadata, spec, status = _parts(manifest)
    annotations = texts(metadata.get("annotations"))
    return Claim(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        labels=texts(metadata.get("labels")),
        annotations=annotations,
        created=text(metadata.get("creationTimestamp")),
        deleting=bool(metadata.get("deletionTimestamp")),
        phase=text(status.get("phase")) or "Pending",
        volume_name=text(spec.get("volumeName")),
        storage_class=annotations.get(BETA_STORAGE_CLASS) or text(spec.get("storageClassName")),
        selected_node=annotations.get(SELECTED_NODE, ""),
    )


def volume_from(manifest: Mapping[str, Any]) -> PersistentVolume:
    """A PersistentVolume object's value."""
    metadata, spec, _ = _parts(manifest)
    return PersistentVolume(
        name=text(metadata.get("name")),
        node_affinity=node_selector_from(inside(spec, "nodeAffinity", "required")),
    )


def storage_class_from(manifest: Mapping[str, Any]) -> StorageClass:
    """A StorageClass object's value; its fields lie beside the metadata, not in a spec."""
    top = mapping(manifest)
    topologies = items(top.get("allowedTopologies"))
    return StorageClass(
        name=text(inside(top, "metadata", "name")),
        provisioner=text(top.get("provisioner")),
        waits=top.get("volumeBindingMode") == "WaitForFirstConsumer",
        allowed_topologies=NodeSelector(tuple(_topology_term(raw) for raw in topologies)) if topologies else None,
    )


def node_from(manifest: Mapping[str, Any], parse_quantity: Callable[[object], Decimal | None]) -> Node:
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


def node_selector_from(raw: object) -> NodeSelector | None:
    """A NodeSelector (`nodeSelectorTerms`), None where there is none; an unreadable term matches no node."""
    if not isinstance(raw, Mapping):
        return None
    terms = items(raw.get("nodeSelectorTerms"))
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                match_expressions=_requirements(mapping(term).get("matchExpressions")),
                match_fields=_requirements(mapping(term).get("matchFields")),
            )
            for term in terms
        )
    )


def label_selector_from(raw: object) -> LabelSelector | None:
    """A LabelSelector, None where there is none (which is not the same as an empty one)."""
    if not isinstance(raw, Mapping):
        return None
    return LabelSelector(texts(raw.get("matchLabels")), _requirements(raw.get("matchExpressions")))


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


def _claim_names(pod_name: str, spec: Mapping[str, Any]) -> Iterator[str]:
    for raw in items(spec.get("volumes")):
        claim_name = text(inside(raw, "persistentVolumeClaim", "claimName"))
        volume_name = text(mapping(raw).get("name"))
        if claim_name:
            yield claim_name
        elif isinstance(mapping(raw).get("ephemeral"), Mapping) and pod_name and volume_name:
            # The name that Kubernetes gives the claim of a generic ephemeral volume.
            yield f"{pod_name}-{volume_name}"


def _affinity_terms(raw: object) -> tuple[PodAffinityTerm, ...]:
    return tuple(_affinity_term(mapping(term)) for term in items(raw))


def _affinity_term(raw: Mapping[str, Any]) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=text(raw.get("topologyKey")),
        selector=label_selector_from(raw.get("labelSelector")),
        namespaces=strings(raw.get("namespaces")),
        namespace_selector=label_selector_from(raw.get("namespaceSelector")),
    )


def _toleration(raw: object) -> Toleration:
    fields = mapping(raw)
    return Toleration(
        key=text(fields.get("key")),
        operator=text(fields.get("operator")) or "Equal",
        value=text(fields.get("value")),
        effect=text(fields.get("effect")),
    )


def _taint(raw: object) -> Taint:
    fields = mapping(raw)
    return Taint(text(fields.get("key")), text(fields.get("value")), text(fields.get("effect")))


def _requirements(raw: object) -> tuple[Requirement, ...]:
    return tuple(_requirement(mapping(item)) for item in items(raw))


def _requirement(raw: Mapping[str, Any]) -> Requirement:
    return Requirement(text(raw.get("key")), text(raw.get("operator")), strings(raw.get("values")))


def _topology_term(raw: object) -> NodeSelectorTerm:
    expressions = [mapping(item) for item in items(mapping(raw).get("matchLabelExpressions"))]
    return NodeSelectorTerm(
        tuple(Requirement(text(item.get("key")), "In", strings(item.get("values"))) for item in expressions)
    )


def _quantities(raw: object, parse_quantity: Callable[[object], Decimal | None]) -> Mapping[str, Decimal]:
    found = {}
    for name, value in mapping(raw).items():
        amount = parse_quantity(value)
        if isinstance(name, str) and amount is not None:
            found[name] = amount
    return found or NO_QUANTITIES
