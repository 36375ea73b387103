"""One pod and everything that was found out for deciding on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core.caps import cap, width
from webhook.core.counting import Census, take_census
from webhook.core.feasibility import Question, eligible, filters_for, possibility, question_for
from webhook.core.model import Decision, Outcome, Placing, Snapshot
from webhook.core.objects import Node
from webhook.core.volumes import NodeIndex, VolumeVerdict
from webhook.core.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Case:
    """A pod to be placed, the group without it, what its filters know, and the numbers of the rule.

    `width`: the k of `caps.py`. `feasible`: the nodes that the scheduler would accept, by name; `infeasible`:
    its reason for each other one. `preempting`: what is in the way on those of the feasible ones that are possible
    only by preempting pods of lower priority.
    """

    question: Question
    census: Census
    width: int
    cap: int | None
    feasible: tuple[Node, ...]
    infeasible: Mapping[str, str]
    preempting: Mapping[str, str]

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
            passed_over=self.infeasible,
            problems=self.snapshot.desired.options_of(self.placing.pod.name).problems + self.census.problems,
        )


def case_for(snapshot: Snapshot, placing: Placing) -> Case:
    """Find out everything; each node is looked at once."""
    index = NodeIndex(sorted(snapshot.nodes, key=lambda node: node.name))
    where = Whereabouts.of(snapshot, index)
    census = take_census(where, placing)
    question = question_for(where, placing)
    filters = filters_for(question)
    judged = [(node, possibility(question, filters, node)) for node in index.by_name.values()]
    domains = len(census.members.keys() | _eligible_domains(question))
    group, replicas, options = snapshot.group, snapshot.desired.replicas, snapshot.desired.options
    return Case(
        question=question,
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
            in_use=len(census.members),
            copies=options.copies,
            min_domains=options.min_domains,
        ),
        feasible=tuple(node for node, found in judged if not found.reason),
        infeasible={node.name: found.reason for node, found in judged if found.reason},
        preempting={node.name: found.preempts for node, found in judged if found.preempts},
    )


def _eligible_domains(question: Question) -> set[str]:
    where = question.where
    return {node.labels[where.topology_key] for node in where.index.by_name.values() if eligible(question, node)}
