"""What a pod and a node say about each other: readiness, cordons, taints, node affinity, the topology label.

(The scheduler's NodeUnschedulable, TaintToleration and NodeAffinity.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from webhook.core.filtering import Filter, same_everywhere
from webhook.core.memo import Memo
from webhook.core.node_index import NodeIndex
from webhook.core.objects import Node, NodeSelector, Pod, Taint, Toleration
from webhook.core.selectors import tolerates

NodeTest = Callable[[Node], bool]

# NotReady nodes are kept free by a taint, which comes some seconds later than the condition.
NOT_READY: Final = "node(s) were not ready"
UNSCHEDULABLE: Final = "node(s) were unschedulable"
UNTOLERATED: Final = "node(s) had untolerated taint(s)"
NOT_NAMED: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
CONFLICT: Final = "pod affinity terms conflict"
NO_MATCH: Final = "node(s) didn't match Pod's node affinity/selector"

TOO_MANY_TERMS: Final = "the pod's node affinity has too many terms for so many nodes"


def _any_node(_: Node) -> bool:
    return True


ANY_NODE: Final[NodeTest] = _any_node
"""Of a pod that no node is forbidden to."""

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
# Taints that say how a node is, not whom it is for; so they do not make its domain ineligible.
CONDITION_TAINTS: Final = "node.kubernetes.io/"
REPELLING: Final = ("NoSchedule", "NoExecute")

FEW_TOLERATIONS: Final = 8


def node_filters(pod: Pod, topology_key: str, *, selects: NodeTest, tolerated: NodeTest) -> Iterator[Filter]:
    """The filters, in the scheduler's order. `selects`, `tolerated`: of `selecting` and `tolerating`."""
    no_label = f"node(s) had no label {topology_key}"
    yield Filter("readiness", lambda node, _: None if node.ready else NOT_READY)
    if not tolerates(pod.tolerations, CORDON):
        yield Filter("NodeUnschedulable", lambda node, _: UNSCHEDULABLE if node.unschedulable else None)
    yield Filter("TaintToleration", lambda node, _: None if tolerated(node) else UNTOLERATED)
    if selects is not ANY_NODE:
        yield Filter("NodeAffinity", lambda node, _: None if selects(node) else NO_MATCH)
    yield Filter("topology label", lambda node, _: None if node.labels.get(topology_key) else no_label)


def names_filter(pod: Pod) -> Filter | None:
    """Where every term names nodes the scheduler looks at no other; None where one names none."""
    terms = pod.node_affinity.terms if pod.node_affinity else ()
    names = [[set(found.values) for found in term.match_fields if found.operator == "In"] for term in terms]
    if not names or not all(names):
        return None
    named = set().union(*(set.intersection(*each) for each in names))
    if not named:
        return same_everywhere("NodeAffinity", CONFLICT)
    return Filter("NodeAffinity", lambda node, _: None if node.name in named else NOT_NAMED)


def is_for_others(pod: Pod, node: Node) -> bool:
    """Whether the node's taints are for others than the pod, apart from those that say how the node is."""
    return not all(
        taint.key.startswith(CONDITION_TAINTS) or _tolerates(pod, taint)
        for taint in node.taints
        if taint.effect in REPELLING
    )


def size_filter(pod: Pod, index: NodeIndex) -> Filter | None:
    """Keeps a pod off every node whose node affinity cannot be looked at in time."""
    return None if _can_compare(pod, index) else same_everywhere("NodeAffinity", TOO_MANY_TERMS)


def tolerating(pod: Pod) -> NodeTest:
    """Whether the pod tolerates all of a node's taints that repel."""

    def tolerated(node: Node) -> bool:
        return not node.taints or all(_tolerates(pod, taint) for taint in node.taints if taint.effect in REPELLING)

    return tolerated


def selecting(pod: Pod, index: NodeIndex) -> NodeTest:
    """Whether nodeSelector and required node affinity allow a node; of many terms few concern any one node."""
    if pod.node_affinity is None and not pod.node_selector:
        return ANY_NODE
    if pod.node_affinity is None:
        return lambda node: _has_selected_labels(pod, node)
    affinity = (pod.node_affinity,) if _can_compare(pod, index) else (NodeSelector(()),)

    @cache
    def allowed() -> frozenset[str]:
        return frozenset(node.name for node in index.matching(affinity))

    return lambda node: _has_selected_labels(pod, node) and node.name in allowed()


class _Tolerance(dict[Taint, bool]):
    """Whether very many tolerations tolerate a taint, looked at once for all nodes that have it."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        super().__init__()
        self._tolerations = tolerations

    def __missing__(self, taint: Taint) -> bool:
        self[taint] = tolerates(self._tolerations, taint)
        return self[taint]


_tolerance_of: Final = Memo(_Tolerance)


def _tolerates(pod: Pod, taint: Taint) -> bool:
    if len(pod.tolerations) <= FEW_TOLERATIONS:
        return tolerates(pod.tolerations, taint)
    return _tolerance_of(pod.tolerations)[taint]


def _can_compare(pod: Pod, index: NodeIndex) -> bool:
    return pod.node_affinity is None or index.can_compare((pod.node_affinity,))


def _has_selected_labels(pod: Pod, node: Node) -> bool:
    return all(node.labels.get(key) == value for key, value in pod.node_selector.items())
