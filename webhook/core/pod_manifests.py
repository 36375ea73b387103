"""The parts of a pod's spec that a scheduler reads, from plain dicts; see `manifests.py`.

Values are as the scheduler will see them: what the API server only works in after admission (matchLabelKeys)
or fills in (the host ports of a pod in its node's network) is there already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.core.objects import ALL_ADDRESSES, Claim, HostPort, PodAffinityTerm, SpreadConstraint, Toleration
from webhook.core.selector_manifests import label_selector_from, with_label_keys
from webhook.core.shapes import inside, integer, items, mapping, strings, text
from webhook.core.storage_manifests import claim_from

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_terms_from(spec: Mapping[str, Any], kind: str, labels: Mapping[str, str]) -> tuple[PodAffinityTerm, ...]:
    """The required terms of a pod's `kind` of affinity (podAffinity, podAntiAffinity); `labels` are its own."""
    terms = items(inside(spec, "affinity", kind, REQUIRED))
    return tuple(_affinity_term(mapping(term), labels) for term in terms)


def spread_constraints_from(spec: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """A pod's topology spread constraints, without those that are only a wish; `labels` are its own."""
    constraints = [mapping(raw) for raw in items(spec.get("topologySpreadConstraints"))]
    return tuple(
        _spread_constraint(raw, labels) for raw in constraints if raw.get("whenUnsatisfiable") != "ScheduleAnyway"
    )


def tolerations_from(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """A pod's tolerations."""
    return tuple(_toleration(mapping(raw)) for raw in items(spec.get("tolerations")))


def host_ports_from(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """The ports of its node that a pod takes for all its life: those of its containers and sidecars."""
    sidecars = [raw for raw in items(spec.get("initContainers")) if mapping(raw).get("restartPolicy") == "Always"]
    in_node_network = spec.get("hostNetwork") is True
    found = []
    for container in (*sidecars, *items(spec.get("containers"))):
        for raw in items(mapping(container).get("ports")):
            port = _host_port(mapping(raw), in_node_network)
            if port is not None:
                found.append(port)
    return tuple(dict.fromkeys(found))


def claim_names_from(pod_name: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The claims that a pod's volumes name, in their order, each once; those of ephemeral volumes among them."""
    return tuple(dict.fromkeys(_claim_names(pod_name, spec)))


def ephemeral_claims_from(pod_name: str, namespace: str, spec: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The claims that will be made for a pod's generic ephemeral volumes; how much they ask for is not read."""
    return tuple(
        claim_from({"metadata": {"namespace": namespace, "name": name}, "spec": inside(raw, *_TEMPLATE_SPEC)})
        for raw in items(spec.get("volumes"))
        if (name := _ephemeral_claim_name(pod_name, mapping(raw)))
    )


_TEMPLATE_SPEC: Final = ("ephemeral", "volumeClaimTemplate", "spec")


def _claim_names(pod_name: str, spec: Mapping[str, Any]) -> Iterator[str]:
    for raw in items(spec.get("volumes")):
        name = text(inside(raw, "persistentVolumeClaim", "claimName"))
        if name or (name := _ephemeral_claim_name(pod_name, mapping(raw))):
            yield name


def _ephemeral_claim_name(pod_name: str, volume: Mapping[str, Any]) -> str:
    """The name that Kubernetes gives the claim of a generic ephemeral volume, "" if the volume is none."""
    volume_name = text(volume.get("name"))
    if isinstance(volume.get("ephemeral"), Mapping) and pod_name and volume_name:
        return f"{pod_name}-{volume_name}"
    return ""


def _affinity_term(raw: Mapping[str, Any], labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = label_selector_from(raw.get("labelSelector"))
    selector = with_label_keys(selector, "In", strings(raw.get("matchLabelKeys")), labels)
    selector = with_label_keys(selector, "NotIn", strings(raw.get("mismatchLabelKeys")), labels)
    return PodAffinityTerm(
        topology_key=text(raw.get("topologyKey")),
        selector=selector,
        namespaces=strings(raw.get("namespaces")),
        namespace_selector=label_selector_from(raw.get("namespaceSelector")),
    )


def _spread_constraint(raw: Mapping[str, Any], labels: Mapping[str, str]) -> SpreadConstraint:
    selector = label_selector_from(raw.get("labelSelector"))
    return SpreadConstraint(
        topology_key=text(raw.get("topologyKey")),
        max_skew=integer(raw.get("maxSkew")) or 0,
        selector=with_label_keys(selector, "In", strings(raw.get("matchLabelKeys")), labels),
        min_domains=1 if (found := integer(raw.get("minDomains"))) is None else found,
        honors_affinity=raw.get("nodeAffinityPolicy") != "Ignore",
        honors_taints=raw.get("nodeTaintsPolicy") == "Honor",
    )


def _host_port(raw: Mapping[str, Any], in_node_network: bool) -> HostPort | None:
    number = integer(raw.get("hostPort")) or (integer(raw.get("containerPort")) if in_node_network else None)
    if number is None or number <= 0:
        return None
    return HostPort(number, text(raw.get("protocol")) or "TCP", text(raw.get("hostIP")) or ALL_ADDRESSES)


def _toleration(fields: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=text(fields.get("key")),
        operator=text(fields.get("operator")) or "Equal",
        value=text(fields.get("value")),
        effect=text(fields.get("effect")),
    )
