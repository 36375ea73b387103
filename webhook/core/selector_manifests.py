"""Node and label selectors from the plain dicts that Kubernetes objects hold; see `manifests.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.core.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from webhook.core.shapes import items, mapping, strings, text, texts


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


def topologies_from(raw: object) -> NodeSelector | None:
    """A class's `allowedTopologies`, None where there are none, which restricts nothing."""
    terms = items(raw)
    return NodeSelector(tuple(_topology_term(term) for term in terms)) if terms else None


def with_label_keys(
    selector: LabelSelector | None, operator: str, label_keys: Iterable[str], labels: Mapping[str, str]
) -> LabelSelector | None:
    """The selector with a requirement for each of the pod's own labels that are named by key.

    That is what the API server makes of matchLabelKeys ("In") and mismatchLabelKeys ("NotIn"), after admission.
    Keys that the pod does not have are ignored; no selector stays none.
    """
    added = tuple(Requirement(key, operator, (labels[key],)) for key in label_keys if key in labels)
    if selector is None or not added:
        return selector
    return LabelSelector(selector.match_labels, (*selector.match_expressions, *added))


def _requirements(raw: object) -> tuple[Requirement, ...]:
    return tuple(_requirement(mapping(item)) for item in items(raw))


def _requirement(raw: Mapping[str, Any]) -> Requirement:
    return Requirement(text(raw.get("key")), text(raw.get("operator")), strings(raw.get("values")))


def _topology_term(raw: object) -> NodeSelectorTerm:
    expressions = [mapping(item) for item in items(mapping(raw).get("matchLabelExpressions"))]
    return NodeSelectorTerm(
        tuple(Requirement(text(item.get("key")), "In", strings(item.get("values"))) for item in expressions)
    )
