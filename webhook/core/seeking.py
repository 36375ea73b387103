"""The first in rank, without a look at every node: in a large cluster most nodes would do.

As the scheduler itself does there, it stops at an answer. Nodes come in their rank: the few of which more is known
than how full they are (members, promises and the like) one by one, all others as they stand on a ladder. What none
of that finds, and a place that has to be cleared first, is left to who looks at all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Final

from webhook.core import keys
from webhook.core.case import Case
from webhook.core.ladder import ladder_of
from webhook.core.objects import Node
from webhook.core.ranking import Candidate, Rank, Ranking
from webhook.core.safety import guard_reason, standings

MANY: Final = 100
"""Nodes. Up to so many all are looked at, so that there is a reason for each; the scheduler has the same number."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What was found: the first in rank, and the reason for each node before it, by name."""

    candidate: Candidate
    passed_over: dict[str, str]


def seek(case: Case) -> Sought | None:
    """The first in rank of the safe nodes with room; None if there is none, or if all nodes should be looked at."""
    if len(case.where.index.by_name) <= MANY or case.topology_key != keys.HOSTNAME:
        return None
    standing_of = standings(case.census, case.cap)
    passed_over: dict[str, str] = {}
    for node in _in_rank(case):
        domain = case.domain_of(node)
        standing = standing_of(domain)
        failure = case.failure(node)
        reason = failure.reason if failure is not None else standing.reason or guard_reason(case.census, node)
        if not reason:
            return Sought(Candidate(node, domain, standing.guard_too), passed_over)
        passed_over[node.name] = reason
    return None


def _in_rank(case: Case) -> Iterator[Node]:
    """All nodes that may be possible, the first in rank first."""
    by_name, ranking = case.where.index.by_name, Ranking(case)
    allowed = case.verdict.nodes
    special = _special(case, ranking) if allowed is None else allowed
    ranked = sorted(
        (ranking.of(by_name[name], case.domain_of(by_name[name])), name) for name in special if name in by_name
    )
    others = _others(case, ranking, special) if allowed is None else iter(())
    return (by_name[name] for _, name in merge(ranked, others))


def _special(case: Case, ranking: Ranking) -> frozenset[str]:
    """The nodes whose rank is not only a matter of how full they are."""
    domains = case.census.members.keys() | case.census.occupied
    hosts = (node.name for domain in domains for node in case.where.index.labelled(case.topology_key, domain))
    return frozenset((*hosts, *ranking.preferred, *case.snapshot.confirmed, *case.question.occupancy.touched))


def _others(case: Case, ranking: Ranking, special: frozenset[str]) -> Iterator[tuple[Rank, str]]:
    ladder = ladder_of(case.where.index, case.snapshot.rooms)
    for share, number, name in ladder.down(case.placing.requests, ranking.member):
        if name not in special:
            yield ranking.of_others(share, number), name
