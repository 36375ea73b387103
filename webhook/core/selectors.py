"""Label and node selectors, tolerations and pins, as the scheduler evaluates them.

A requirement that the API server would refuse (an unknown operator, In without values, Gt of a word) never
matches: read so, a selector promises less, never more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from webhook.core.objects import (
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Taint,
    Toleration,
)

# The one field by which a node can be selected.
NAME_FIELD: Final = "metadata.name"

# Labels are compared by Gt and Lt as 64-bit integers; Python's int() would also take "1_000" and " 1".
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels: an empty one selects all, None (no selector) none."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        # Gt and Lt are for nodes only.
        requirement.operator not in ("Gt", "Lt") and _matches(requirement, labels)
        for requirement in selector.match_expressions
    )


def matches_node(selector: NodeSelector | None, node: Node) -> bool:
    """Whether a node selector selects the node; None (no restriction) does, one without terms does not."""
    return selector is None or any(_matches_term(term, node) for term in selector.terms)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations tolerates the taint; an empty effect is every effect."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def pinned_node(pod: Pod) -> str:
    """The one node that the pod's required node affinity names by matchFields in every term, else "".

    Terms without requirements match no node, so they do not count: a pin is never put into one.
    """
    if pod.node_affinity is None:
        return ""
    named = [_named_nodes(term) for term in pod.node_affinity.terms if not _is_empty(term)]
    nodes = set().union(*named)
    return nodes.pop() if len(nodes) == 1 and all(named) else ""


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _named_nodes(term: NodeSelectorTerm) -> set[str]:
    """The node that the term names ("In" takes exactly one); more than one if its fields contradict each other."""
    return {
        requirement.values[0]
        for requirement in term.match_fields
        if requirement.key == NAME_FIELD and requirement.operator == "In" and len(requirement.values) == 1
    }


def _matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    if _is_empty(term):
        return False
    return all(_matches_field(requirement, node) for requirement in term.match_fields) and all(
        _matches(requirement, node.labels) for requirement in term.match_expressions
    )


def _matches_field(requirement: Requirement, node: Node) -> bool:
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return False
    if requirement.operator == "In":
        return requirement.values[0] == node.name
    return requirement.operator == "NotIn" and requirement.values[0] != node.name


def _matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return bool(values) and labels.get(key) not in values
        case "Exists":
            return not values and key in labels
        case "DoesNotExist":
            return not values and key not in labels
        case "Gt" | "Lt":
            return len(values) == 1 and _compares(labels.get(key, ""), requirement.operator, values[0])
        case _:
            return False


def _compares(label: str, operator: str, value: str) -> bool:
    left, right = _integer(label), _integer(value)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _integer(text: str) -> int | None:
    """A 64-bit integer, None if the text is none."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key == "":
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)
