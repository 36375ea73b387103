"""Nodes by name and by label, so that nobody looks at every node for a few."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.core.filtering import MOST_COMPARISONS
from webhook.core.memo import Memo
from webhook.core.objects import Node, NodeSelector, NodeSelectorTerm
from webhook.core.selectors import matches_node, matches_term, size_of

# Operators that no node without the label can satisfy.
NEED_THE_LABEL: Final = ("Exists", "Gt", "Lt")
MOST_REMEMBERED: Final = 64
"""Sets of labels of which the nodes that have them are remembered; clusters use few."""


class NodeIndex:
    """Nodes by name and by label, so that a volume's nodes are found without looking at every node."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """`nodes` in any order; of two with one name the later stands."""
        self.by_name: Mapping[str, Node] = {node.name: node for node in nodes}
        self._by_label: dict[str, dict[str, list[Node]]] = {}
        self._having: dict[frozenset[str], Mapping[str, Node]] = {}
        self._keys: frozenset[str] | None = None

    def matching(self, selectors: Sequence[NodeSelector]) -> Iterator[Node]:
        """The nodes that every one of the selectors allows, each once; all nodes where there is none."""
        if not selectors:
            yield from self.by_name.values()
            return
        first, *others = selectors
        seen: set[str] = set()
        for term in dict.fromkeys(first.terms):
            for node in self._narrowed(term):
                if (
                    node.name not in seen
                    and matches_term(term, node)
                    and all(matches_node(other, node) for other in others)
                ):
                    seen.add(node.name)
                    yield node

    def can_compare(self, selectors: Sequence[NodeSelector]) -> bool:
        """Whether the nodes that every one of the selectors allows can be found in the time of a request."""
        terms = sum(size_of(term) for selector in selectors for term in selector.terms)
        return terms * len(self.by_name) <= MOST_COMPARISONS or self._comparisons(selectors) <= MOST_COMPARISONS

    def _comparisons(self, selectors: Sequence[NodeSelector]) -> int:
        first, *others = selectors
        beside = sum(size_of(term) for other in others for term in other.terms)
        return sum(len(self._narrowed(term)) * (size_of(term) + beside) for term in dict.fromkeys(first.terms))

    def _narrowed(self, term: NodeSelectorTerm) -> Collection[Node]:
        """Nodes among which are all that match the term."""
        for requirement in term.match_fields:
            if requirement.operator == "In":
                return [self.by_name[name] for name in set(requirement.values) if name in self.by_name]
        for requirement in term.match_expressions:
            if requirement.operator == "In":
                return [node for value in set(requirement.values) for node in self.labelled(requirement.key, value)]
        for requirement in term.match_expressions:
            if requirement.operator in NEED_THE_LABEL:
                return [node for nodes in self._by_value(requirement.key).values() for node in nodes]
        return self.by_name.values()

    def labelled(self, key: str, value: str) -> Sequence[Node]:
        """The nodes whose label `key` has this value."""
        return self._by_value(key).get(value, ())

    def having(self, keys: Iterable[str]) -> Mapping[str, Node]:
        """The nodes that have all of these labels, by name."""
        wanted = frozenset(keys)
        if not self._known(wanted):
            return {}
        if wanted not in self._having:
            if len(self._having) >= MOST_REMEMBERED:
                self._having.clear()
            found = (node for node in self.by_name.values() if wanted <= node.labels.keys())
            self._having[wanted] = {node.name: node for node in found}
        return self._having[wanted]

    def _by_value(self, key: str) -> Mapping[str, Sequence[Node]]:
        if not self._known((key,)):
            return {}
        if key not in self._by_label:
            by_value: dict[str, list[Node]] = {}
            for node in self.by_name.values():
                if key in node.labels:
                    by_value.setdefault(node.labels[key], []).append(node)
            self._by_label[key] = by_value
        return self._by_label[key]

    def _known(self, keys: Iterable[str]) -> bool:
        """Whether each of these labels is on a node: what is on none is not remembered, since anyone may ask for it."""
        if self._keys is None:
            self._keys = frozenset(key for node in self.by_name.values() for key in node.labels)
        return self._keys.issuperset(keys)


def _in_order(nodes: tuple[Node, ...]) -> NodeIndex:
    return NodeIndex(sorted(nodes, key=lambda node: node.name))


index_of: Final = Memo(_in_order)
"""The index of these nodes, by name; the same one while they are the same."""
