"""The nodes that a pod's volumes allow, and the one domain to which data ties a member.

A bound claim allows what its PersistentVolume's node affinity allows, by any key and operator. Its matchFields are
kept to as well, though the scheduler does not look at them: they say where the data is. What claims without a
volume allow is in `binding.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.core.model import Snapshot
from webhook.core.objects import Claim, Node, NodeSelector, NodeSelectorTerm, Pod, Requirement
from webhook.core.selectors import matches_node
from webhook.core.storage import Volumes

# The scheduler's own words.
AFFINITY_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
# Operators that no node without the label can satisfy.
NEED_THE_LABEL: Final = ("Exists", "Gt", "Lt")
NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True)
class VolumeVerdict:
    """What a pod's claims allow.

    `bound`: one of them has its data already. `nodes`: the nodes that all of them allow, None where they
    restrict nothing; `reasons`: the reason for each other node. `problem`: why no node at all can do, or "".
    `data`: the node affinities of the bound volumes.
    """

    bound: bool = False
    nodes: frozenset[str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    data: tuple[NodeSelector, ...] = ()


class NodeIndex:
    """Nodes by name and by label, so that a volume's nodes are found without looking at every node."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """`nodes` in any order; of two with one name the later stands."""
        self.by_name: Mapping[str, Node] = {node.name: node for node in nodes}
        self._by_label: dict[str, dict[str, list[Node]]] = {}

    def matching(self, selectors: Sequence[NodeSelector]) -> Iterator[Node]:
        """The nodes that every one of the selectors allows, each once; all nodes where there is none."""
        if not selectors:
            yield from self.by_name.values()
            return
        seen: set[str] = set()
        for term in dict.fromkeys(selectors[0].terms):
            for node in self._narrowed(term):
                if node.name not in seen and all(matches_node(selector, node) for selector in selectors):
                    seen.add(node.name)
                    yield node

    def comparisons(self, selector: NodeSelector) -> int:
        """How many times a node is compared with a term to find those that the selector allows."""
        return sum(len(self._narrowed(term)) for term in dict.fromkeys(selector.terms))

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

    def _by_value(self, key: str) -> Mapping[str, Sequence[Node]]:
        if key not in self._by_label:
            by_value: dict[str, list[Node]] = {}
            for node in self.by_name.values():
                if key in node.labels:
                    by_value.setdefault(node.labels[key], []).append(node)
            self._by_label[key] = by_value
        return self._by_label[key]


def volume_verdict(pod_claims: Sequence[Claim], volumes: Volumes, nodes: Iterable[Node] | NodeIndex) -> VolumeVerdict:
    """What the claims allow of these nodes. A claim that cannot be used, or whose volume is gone, allows none."""
    index = nodes if isinstance(nodes, NodeIndex) else NodeIndex(nodes)
    bound = any(claim.bound for claim in pod_claims)
    data = data_affinities(pod_claims, volumes)
    problem = next(filter(None, (_problem(claim, volumes) for claim in pod_claims)), "")
    if problem:
        reasons = dict.fromkeys(index.by_name, problem)
        return VolumeVerdict(bound, frozenset(), reasons, problem, data)
    affinities = _volume_affinities(pod_claims, volumes)
    if not affinities:
        return VolumeVerdict(bound)
    allowed = frozenset(node.name for node in index.matching(affinities))
    reasons = {name: AFFINITY_CONFLICT for name in index.by_name if name not in allowed}
    return VolumeVerdict(bound, allowed, reasons, "", data)


def claims_by_name(snapshot: Snapshot) -> Mapping[str, Claim]:
    """Every claim of the snapshot; one that was read again for its volume stands as it was read last."""
    return {claim.name: claim for claim in snapshot.claims} | dict(snapshot.volumes.claims)


def claims_of_pod(pod: Pod, claims: Mapping[str, Claim]) -> tuple[Claim, ...]:
    """The pod's claims that exist."""
    return tuple(claims[name] for name in pod.claim_names if name in claims)


def data_affinities(claims: Iterable[Claim], volumes: Volumes) -> tuple[NodeSelector, ...]:
    """The node affinities of the claims' bound volumes, as far as these are known and have one."""
    return _volume_affinities((claim for claim in claims if claim.bound), volumes)


def sole_domain(affinities: Sequence[NodeSelector], index: NodeIndex, topology_key: str) -> str:
    """The one domain that the volumes allow, "" if they allow several, any, or none that has a name.

    A domain that all the volumes name counts even if it has no node now: a regional disk does not become a
    zonal one when the last node of its other zone goes, and local data is not forgotten with its node.
    """
    if not affinities:
        return ""
    found: set[str] = set()
    for node in index.matching(affinities):
        found.update(filter(None, (node.labels.get(topology_key),)))
        if len(found) > 1:
            return ""
    named = [domains for affinity in affinities if (domains := _named_domains(affinity, topology_key))]
    if named and (not found or len(named) == len(affinities)):
        found |= set.intersection(*named)
    return found.pop() if len(found) == 1 else ""


def _problem(claim: Claim, volumes: Volumes) -> str:
    """Why a pod with this claim cannot be scheduled anywhere, in the scheduler's words, "" if it can."""
    if claim.phase == "Lost":
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    if claim.deleting:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if claim.volume_name and claim.volume_name not in volumes.persistent_volumes:
        return NO_VOLUME
    return ""


def _volume_affinities(claims: Iterable[Claim], volumes: Volumes) -> tuple[NodeSelector, ...]:
    """Those of the volumes that the claims name; one that is only about to be bound restricts just the same."""
    found = (volumes.persistent_volumes.get(claim.volume_name) for claim in claims)
    return tuple(volume.node_affinity for volume in found if volume and volume.node_affinity)


def _named_domains(affinity: NodeSelector, topology_key: str) -> set[str]:
    """The domains that the affinity names in every term, empty if a term names none."""
    named: set[str] = set()
    for term in affinity.terms:
        values = [
            set(requirement.values) for requirement in term.match_expressions if _names(requirement, topology_key)
        ]
        if not values:
            return set()
        named |= set.intersection(*values)
    return named


def _names(requirement: Requirement, topology_key: str) -> bool:
    return requirement.key == topology_key and requirement.operator == "In"
