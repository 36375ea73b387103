"""Which of several safe nodes: the rule by which each difference is looked at only where all before it tie.

1. a node with room before one that has room only by preempting;
2. the node where the member's live entry is, the newest first;
3. the domain with the fewest members of the same round, so that scaling in from the top keeps every prefix even;
4. the domain with the fewest members;
5. a node that was read once more after it had been chosen, if it still is as good as any by the rules above;
6. the node with the most room left: the smaller of the shares of its CPU and memory that stay free;
7. rendezvous hashing of member and node: stable, and different members do not all prefer the same node.

No rule looks at the order in which anything was listed, so the same snapshot gives the same node everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final

from webhook.core.case import Case
from webhook.core.model import Placing
from webhook.core.objects import Node

SHARED_RESOURCES: Final = ("cpu", "memory")
NONE: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that is possible and safe for the pod. `guard_too`: safe only with the guard besides the pin."""

    node: Node
    domain: str
    guard_too: bool = False


def best(case: Case, candidates: Sequence[Candidate]) -> Candidate:
    """The first in rank of at least one candidate."""
    preferred = _preferred_nodes(case)
    same_round = _round_counts(case)
    rules: tuple[Callable[[Candidate], Any], ...] = (
        lambda candidate: candidate.node.name in case.preempting,
        lambda candidate: preferred.get(candidate.node.name, len(preferred)),
        lambda candidate: same_round.get(candidate.domain, 0),
        lambda candidate: case.census.count(candidate.domain),
        lambda candidate: candidate.node.name not in case.snapshot.confirmed,
        lambda candidate: -_free_share(case, candidate.node),
        lambda candidate: _rendezvous(case.placing, candidate.node),
    )
    for rule in rules:
        ranks = [rule(candidate) for candidate in candidates]
        least = min(ranks)
        candidates = [candidate for candidate, rank in zip(candidates, ranks, strict=True) if rank == least]
    return candidates[0]


def _preferred_nodes(case: Case) -> Mapping[str, int]:
    """Nodes that were promised to this very member, with their rank; another life of it does not count."""
    claims = case.where.claims_of(case.placing.pod)
    uids = {claim.uid for claim in claims} or {""}
    own = [
        entry for entry in case.snapshot.entries if entry.member == case.placing.pod.name and entry.claim_uid in uids
    ]
    own.sort(key=lambda entry: (-entry.time, entry.token))
    nodes = dict.fromkeys(entry.node for entry in own if entry.node)
    return {node: rank for rank, node in enumerate(nodes)}


def _round_counts(case: Case) -> Mapping[str, int]:
    """How many members of the pod's own round each domain has; nothing where its position is not known."""
    rounds = {name: position // case.width for position, name in enumerate(case.snapshot.desired.members or ())}
    own = rounds.get(case.placing.pod.name)
    if own is None:
        return {}
    return {domain: sum(rounds.get(name) == own for name in names) for domain, names in case.census.members.items()}


def _free_share(case: Case, node: Node) -> Decimal:
    """What stays free of the scarcer of CPU and memory, as a share of the node; 0 where the node does not say."""
    asked, wanted = case.question.occupancy.asked_of(node.name), case.placing.requests
    shares = [
        (offered - asked.get(name, NONE) - wanted.get(name, NONE)) / offered
        for name in SHARED_RESOURCES
        if (offered := node.allocatable.get(name, NONE)) > 0
    ]
    return min(shares, default=NONE)


def _rendezvous(placing: Placing, node: Node) -> bytes:
    """The same everywhere, and unlike that of any other member or node."""
    return blake2b(f"{placing.pod.namespace}/{placing.pod.name}\0{node.name}".encode(), digest_size=16).digest()
