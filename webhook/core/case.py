"""One pod and everything that was found out for deciding on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from webhook.core.caps import cap, quorum_problem, width
from webhook.core.counting import Census, take_census
from webhook.core.feasibility import (
    Failure,
    Question,
    can_be_cleared,
    eligible,
    filters_for,
    first_failure,
    question_for,
)
from webhook.core.filtering import Filter
from webhook.core.model import Decision, MemberClass, Placing, Snapshot
from webhook.core.node_index import index_of
from webhook.core.objects import Node
from webhook.core.outcomes import Outcome
from webhook.core.volumes import VolumeVerdict
from webhook.core.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Survey:
    """Which of some nodes the scheduler would accept.

    `feasible`: those that it would; `infeasible`: its reason for each other one, by name. `preempting`: what is in the
    way on those of the feasible ones that are possible only by preempting pods of lower priority.
    """

    feasible: tuple[Node, ...]
    infeasible: Mapping[str, str]
    preempting: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A pod to be placed, the group without it, what its filters know, and the numbers of the rule.

    `width`: the k of `caps.py`. `judged`: what was found out of nodes so far, by name.
    """

    question: Question
    filters: Sequence[Filter]
    census: Census
    width: int
    cap: int | None
    judged: dict[str, Failure | None] = field(default_factory=dict)

    def failure(self, node: Node) -> Failure | None:
        """Why the scheduler would not accept the node as it is, None if it would."""
        if node.name not in self.judged:
            self.judged[node.name] = first_failure(self.filters, node)
        return self.judged[node.name]

    @cached_property
    def survey(self) -> Survey:
        """All nodes, each looked at once."""
        judged = [(node, self.failure(node)) for node in self.where.index.by_name.values()]
        refused = [(node, failure) for node, failure in judged if failure is not None]
        preempting = {
            node.name: failure.reason
            for node, failure in refused
            if can_be_cleared(self.question, self.filters, node, failure)
        }
        return Survey(
            feasible=tuple(node for node, failure in judged if failure is None or node.name in preempting),
            infeasible={node.name: failure.reason for node, failure in refused if node.name not in preempting},
            preempting=preempting,
        )

    @property
    def placing(self) -> Placing:
        """The pod to be placed."""
        return self.question.placing

    @property
    def where(self) -> Whereabouts:
        """The snapshot with its look-ups."""
        return self.question.where

    @property
    def verdict(self) -> VolumeVerdict:
        """What the pod's volumes allow."""
        return self.question.verdict

    @property
    def snapshot(self) -> Snapshot:
        """What everything here was found out from."""
        return self.where.snapshot

    @property
    def topology_key(self) -> str:
        """The label whose values are the domains."""
        return self.where.topology_key

    def domain_of(self, node: Node) -> str:
        """The node's domain, "" if it is in none."""
        return node.labels.get(self.topology_key, "")

    def decision(self, outcome: Outcome) -> Decision:
        """A decision with what all decisions on this case say."""
        return Decision(
            outcome=outcome,
            topology_key=self.topology_key,
            replicas=self.snapshot.desired.replicas,
            cap=self.cap,
            counts={domain: len(members) for domain, members in self.census.members.items()},
            problems=self._problems(),
        )

    def _problems(self) -> tuple[str, ...]:
        desired, group = self.snapshot.desired, self.snapshot.group
        quorum = quorum_problem(group, desired.replicas, self.cap, desired.options.min_domains)
        return desired.options_of(self.placing.pod.name).problems + self.census.problems + ((quorum,) if quorum else ())


def case_for(snapshot: Snapshot, placing: Placing) -> Case:
    """Find out what has to be known of the group and the pod; no node is looked at for it without need."""
    where = Whereabouts.of(snapshot, index_of(snapshot.nodes))
    census = take_census(where, placing)
    question = question_for(where, placing)
    domains = _domains(question, census)
    group, replicas, options = snapshot.group, snapshot.desired.replicas, snapshot.desired.options
    return Case(
        question=question,
        filters=filters_for(question),
        census=census,
        width=width(
            group.member_class,
            replicas,
            domains=domains,
            copies=options.copies,
            min_domains=options.min_domains,
        ),
        cap=cap(
            group.member_class,
            replicas,
            domains=domains,
            in_use=census.in_use,
            copies=options.copies,
            min_domains=options.min_domains,
        ),
    )


def _domains(question: Question, census: Census) -> int:
    """How many domains are in use or eligible; it is not asked how many more than there are copies."""
    where = question.where
    options, member_class = where.snapshot.desired.options, where.snapshot.group.member_class
    enough = options.copies if member_class is MemberClass.REPLICATED and not options.min_domains else 0
    found = set(census.members)
    for node in where.index.by_name.values() if len(found) < enough else ():
        if eligible(question, node):
            found.add(node.labels[where.topology_key])
            if len(found) >= enough:
                break
    return len(found)
