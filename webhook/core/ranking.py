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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from webhook.core.case import Case
from webhook.core.ladder import digest, free_share
from webhook.core.objects import Node

Rank = tuple[bool, int, int, int, bool, float, int]
"""How the rules above judge a node, the least first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that is possible and safe for the pod. `guard_too`: safe only with the guard besides the pin.

    `in_the_way`: what would have to be preempted there, "" where there is room.
    """

    node: Node
    domain: str
    guard_too: bool = False
    in_the_way: str = ""


class Ranking:
    """Ranks nodes for one pod."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._same_round = _round_counts(case)
        self.preferred = _preferred_nodes(case)
        self.member = digest(f"{case.placing.pod.namespace}/{case.placing.pod.name}")

    def of(self, node: Node, domain: str, *, preempting: bool = False) -> Rank:
        """The rank of a node of the domain."""
        case = self._case
        return (
            preempting,
            self.preferred.get(node.name, len(self.preferred)),
            self._same_round.get(domain, 0),
            case.census.count(domain),
            node.name not in case.snapshot.confirmed,
            -free_share(node, case.question.occupancy.asked_of(node.name), case.placing.requests),
            self.member ^ digest(node.name),
        )

    def of_others(self, share: float, number: int) -> Rank:
        """The rank of a node of which nothing is known but these last two, as `Ladder.down` gives them."""
        return (False, len(self.preferred), 0, 0, True, share, number)


def best(case: Case, candidates: Iterable[Candidate]) -> Candidate:
    """The first in rank of at least one candidate."""
    ranking = Ranking(case)
    return min(candidates, key=lambda each: ranking.of(each.node, each.domain, preempting=bool(each.in_the_way)))


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
