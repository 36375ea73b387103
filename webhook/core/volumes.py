"""The nodes that a pod's volumes allow, and the one domain to which data ties a member.

A bound claim allows what its PersistentVolume's node affinity allows, by any key and operator. Its matchFields are
kept to as well, though the scheduler does not look at them: they say where the data is. What claims without a
volume allow is in `binding.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.core.model import Snapshot
from webhook.core.node_index import NodeIndex as NodeIndex
from webhook.core.objects import Claim, Node, NodeSelector, Pod, Requirement
from webhook.core.storage import Volumes

# The scheduler's own words.
AFFINITY_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
# Ours.
TOO_MANY_TERMS: Final = "the node affinity of the pod's volumes has too many terms for so many nodes"


@dataclass(frozen=True, slots=True)
class VolumeVerdict:
    """What a pod's claims allow.

    `bound`: one of them has its data already. `nodes`: the nodes that all of them allow, None where they
    restrict nothing. `problem`: why no node at all can do, or "". `data`: the node affinities of the bound volumes.
    """

    bound: bool = False
    nodes: frozenset[str] | None = None
    problem: str = ""
    data: tuple[NodeSelector, ...] = ()

    def reason(self, node_name: str) -> str | None:
        """Why the node is not allowed, None if it is."""
        return self.problem or (None if self.nodes is None or node_name in self.nodes else AFFINITY_CONFLICT)


def volume_verdict(pod_claims: Sequence[Claim], volumes: Volumes, nodes: Iterable[Node] | NodeIndex) -> VolumeVerdict:
    """What the claims allow of these nodes. A claim that cannot be used, or whose volume is gone, allows none."""
    index = nodes if isinstance(nodes, NodeIndex) else NodeIndex(nodes)
    bound = any(claim.bound for claim in pod_claims)
    data = data_affinities(pod_claims, volumes)
    problem = next(filter(None, (_problem(claim, volumes) for claim in pod_claims)), "")
    if problem:
        return VolumeVerdict(bound, frozenset(), problem, data)
    affinities = _volume_affinities(pod_claims, volumes)
    if not affinities:
        return VolumeVerdict(bound)
    if not index.can_compare(affinities):
        return VolumeVerdict(bound, frozenset(), TOO_MANY_TERMS, data)
    return VolumeVerdict(bound, frozenset(node.name for node in index.matching(affinities)), "", data)


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
    if not affinities or not index.can_compare(affinities):
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
