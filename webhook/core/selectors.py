"""Label and node selectors, tolerations and pins, as the scheduler evaluates them.

A requirement that the scheduler cannot use (an unknown operator, In without values, Gt of a word, a value that
no label can have) never matches, whatever it forbids. The API server does not refuse all of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
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

# More requirements, or values of one, than anybody needs who has not made them by a program.
PARTS: Final = 16
VALUES: Final = 16

# Labels are compared by Gt and Lt as 64-bit integers of any length; Python's int() would also take "1_000" and " 1".
_INTEGER: Final = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)
_NAME: Final = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_PREFIX: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels: an empty one selects all, None (no selector) none."""
    if selector is None:
        return False
    return (
        all(labels.get(key) == value for key, value in selector.match_labels.items())
        and all(_matches(requirement, labels) for requirement in selector.match_expressions)
        # Last, because it is rarely asked for then: of many pods few are selected.
        and is_usable(selector)
    )


def is_usable(selector: LabelSelector) -> bool:
    """Whether the scheduler can use a label selector; with one that it cannot, it does not place the pod at all."""
    return all(_is_key(key) and _is_value(value) for key, value in selector.match_labels.items()) and all(
        # Gt and Lt are for nodes only.
        requirement.operator not in ("Gt", "Lt") and _is_usable(requirement)
        for requirement in selector.match_expressions
    )


def matches_node(selector: NodeSelector | None, node: Node) -> bool:
    """Whether a node selector selects the node; None (no restriction) does, one without terms does not."""
    return selector is None or any(matches_term(term, node) for term in selector.terms)


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether one term of a node selector selects the node."""
    if _is_empty(term):
        return False
    return all(_matches_field(requirement, node) for requirement in term.match_fields) and all(
        _matches(requirement, node.labels) and _is_usable(requirement) for requirement in term.match_expressions
    )


def size_of(selector: NodeSelectorTerm | LabelSelector | None) -> int:
    """How many ordinary comparisons one comparison with it may take: 1, unless it has very many parts."""
    if selector is None:
        return 1
    fields = selector.match_fields if isinstance(selector, NodeSelectorTerm) else ()
    labels = 0 if isinstance(selector, NodeSelectorTerm) else len(selector.match_labels)
    parts = labels + sum(1 + len(each.values) // VALUES for each in (*selector.match_expressions, *fields))
    return 1 + parts // PARTS


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


def _matches_field(requirement: Requirement, node: Node) -> bool:
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return False
    if requirement.operator == "In":
        return requirement.values[0] == node.name
    return requirement.operator == "NotIn" and requirement.values[0] != node.name


@lru_cache(maxsize=8192)
def _is_usable(requirement: Requirement) -> bool:
    """What apimachinery's labels.NewRequirement accepts."""
    values, operator = requirement.values, requirement.operator
    if not _is_key(requirement.key) or not all(map(_is_value, values)):
        return False
    match operator:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
        case _:
            return False


@lru_cache(maxsize=8192)
def _is_value(value: str) -> bool:
    return value == "" or bool(_NAME.fullmatch(value))


@lru_cache(maxsize=8192)
def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or bool(_PREFIX.fullmatch(prefix)))


def _matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """What the requirement says, were it usable."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return len(values) == 1 and _compares(labels.get(key, ""), requirement.operator, values[0])


def _compares(label: str, operator: str, value: str) -> bool:
    left, right = _integer(label), _integer(value)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


@lru_cache(maxsize=8192)
def _integer(text: str) -> int | None:
    """A 64-bit integer, None if the text is none."""
    if not _INTEGER.fullmatch(text):
        return None
    # Without the zeros, of which int() takes not every number.
    number = int(text.lstrip("+-").lstrip("0") or "0") * (-1 if text.startswith("-") else 1)
    return number if -(2**63) <= number < 2**63 else None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    # Lt and Gt are behind a feature gate that is off.
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)
