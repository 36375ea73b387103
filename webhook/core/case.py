"""One pod and everything that was found out for deciding on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core.caps import cap, width
from webhook.core.counting import Census, take_census
from webhook.core.feasibility import eligible, filters_for, first_reason
from webhook.core.model import Decision, Outcome, Placing, Snapshot
from webhook.core.objects import Node
from webhook.core.volumes import NodeIndex, VolumeVerdict, volume_verdict
from webhook.core.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Case:
    """A pod to be placed, the group without it, what its claims allow, and the numbers of the rule.

    `width`: the k of `caps.py`. `feasible`: the nodes that the scheduler would accept, by name; `infeasible`:
    its reason for each other one.
    """

    placing: Placing
    where: Whereabouts
    census: Census
    verdict: VolumeVerdict
    width: int
    cap: int | None
    feasible: tuple[Node, ...]
    infeasible: Mapping[str, str]

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
    verdict = volume_verdict(where.claims_of(placing.pod), snapshot.volumes, index)
    filters = filters_for(placing, snapshot, verdict)
    judged = [(node, first_reason(filters, node)) for node in index.by_name.values()]
    domains = len(census.members.keys() | _eligible_domains(where, placing))
    group, replicas, options = snapshot.group, snapshot.desired.replicas, snapshot.desired.options
    return Case(
        placing=placing,
        where=where,
        census=census,
        verdict=verdict,
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
        feasible=tuple(node for node, reason in judged if reason is None),
        infeasible={node.name: reason for node, reason in judged if reason is not None},
    )


def _eligible_domains(where: Whereabouts, placing: Placing) -> set[str]:
    key = where.topology_key
    return {node.labels[key] for node in where.index.by_name.values() if eligible(placing, node, key)}
