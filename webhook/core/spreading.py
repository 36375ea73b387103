"""Topology spread constraints that forbid (the scheduler's PodTopologySpread)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from webhook.core.filtering import MOST_COMPARISONS, Filter, Victims, same_everywhere
from webhook.core.node_filters import ANY_NODE, NodeTest
from webhook.core.node_index import NodeIndex
from webhook.core.objects import LabelSelector, Node, Pod, PodOnNode, SpreadConstraint
from webhook.core.occupancy import Occupancy
from webhook.core.selectors import is_usable, matches_labels, size_of

SKEWED: Final = "node(s) didn't match pod topology spread constraints"
NO_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
PIN_SKEWS: Final = "node(s) didn't match pod topology spread constraints once pinned (minDomains)"
TOO_MANY: Final = "the pod has too many topology spread constraints for so many nodes and pods"
UNUSABLE: Final = "a topology spread constraint cannot be used: its label selector is not valid"


@dataclass(frozen=True, slots=True)
class _Spread:
    """A constraint with what it counts on the nodes that are part of it: pods that it selects, by domain and by node.

    `pinned`: whether a pin leaves it fewer domains than it asks for. Then the scheduler takes the least of them as 0.
    """

    constraint: SpreadConstraint
    counts: Mapping[str, int]
    least: int
    own: int
    counted: Collection[str]
    on_node: Mapping[str, int]
    pinned: bool


def spreading_filter(
    pod: Pod, occupancy: Occupancy, index: NodeIndex, *, selects: NodeTest, tolerates: NodeTest
) -> Filter | None:
    """The filter for a pod with constraints; None for any other.

    `selects`, `tolerates`: whether the pod could use a node by its node affinity, and for all its taints.
    """
    if not pod.spread:
        return None
    if any(each.selector is not None and not is_usable(each.selector) for each in pod.spread):
        return same_everywhere("PodTopologySpread", UNUSABLE)
    everybody = len(index.by_name) + occupancy.crowd.size
    if sum(size_of(each.selector) for each in pod.spread) * everybody > MOST_COMPARISONS:
        return same_everywhere("PodTopologySpread", TOO_MANY)
    # A node that lacks one of the keys counts for none of the constraints.
    nodes = index.having([each.topology_key for each in pod.spread])
    spreads = [_counted(each, pod, nodes, occupancy, selects, tolerates) for each in pod.spread]

    def judge(node: Node, victims: Victims) -> str | None:
        for spread in spreads:
            value = node.labels.get(spread.constraint.topology_key)
            if value is None:
                return NO_LABEL
            if _skew(spread, pod, node, value, victims) > spread.constraint.max_skew:
                return SKEWED
            if spread.pinned and _skew_once_pinned(spread, pod, node, victims) > spread.constraint.max_skew:
                return PIN_SKEWS
        return None

    return Filter("PodTopologySpread", judge, resolvable=True)


def _counted(
    constraint: SpreadConstraint,
    pod: Pod,
    nodes: Mapping[str, Node],
    occupancy: Occupancy,
    selects: NodeTest,
    tolerates: NodeTest,
) -> _Spread:
    key = constraint.topology_key
    counted = nodes
    if constraint.honors_affinity and selects is not ANY_NODE:
        counted = {name: node for name, node in counted.items() if selects(node)}
    if constraint.honors_taints:
        counted = {name: node for name, node in counted.items() if tolerates(node)}
    counts = dict.fromkeys((node.labels[key] for node in counted.values()), 0)
    on_node: Counter[str] = Counter()
    for other in occupancy.crowd.in_namespace(pod.namespace):
        if other.node_name in counted and _counts(constraint, pod, other):
            counts[counted[other.node_name].labels[key]] += 1
            on_node[other.node_name] += 1
    least = min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0
    own = int(matches_labels(constraint.selector, pod.labels))
    pinned = constraint.honors_affinity and constraint.min_domains > 1
    return _Spread(constraint, counts, least, own, counted.keys(), on_node, pinned)


def _counts(constraint: SpreadConstraint, pod: Pod, other: PodOnNode) -> bool:
    """Whether the constraint counts the pod: the scheduler counts nobody for a selector that selects everybody."""
    if other.deleting or other.namespace != pod.namespace or constraint.selector == LabelSelector():
        return False
    return matches_labels(constraint.selector, other.labels)


def _gone(spread: _Spread, pod: Pod, node: Node, victims: Victims) -> int:
    """How many of the victims the constraint counts."""
    return sum(_counts(spread.constraint, pod, victim) for victim in victims) if node.name in spread.counted else 0


def _skew(spread: _Spread, pod: Pod, node: Node, value: str, victims: Victims) -> int:
    gone = _gone(spread, pod, node, victims)
    found = spread.counts.get(value, 0) - gone
    return found + spread.own - min(spread.least, found if gone else spread.least)


def _skew_once_pinned(spread: _Spread, pod: Pod, node: Node, victims: Victims) -> int:
    """The same where our pin leaves the constraint this node alone, which is fewer domains than it asks for."""
    return spread.on_node.get(node.name, 0) - _gone(spread, pod, node, victims) + spread.own
