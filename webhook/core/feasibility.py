"""The nodes that the default scheduler would accept for a pod, with its own words for each it would not.

One small filter for each thing that the scheduler looks at (Kubernetes 1.36), in its order; the first reason stands.
Where pods of lower priority are in the way, a node is possible too, as a second choice: the scheduler makes room by
preempting them, also for a pinned pod.

Not looked at: devices (dynamic resource allocation), disks named in the pod itself (iscsi, rbd), volumes of
in-tree drivers by the labels of their successors, features that nodes declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webhook.core import groups
from webhook.core.attaching import limits_filter, use_filter, zones_filter
from webhook.core.binding import (
    Member,
    binding_filter,
    expected_volumes,
    size_problem,
    unbound_problem,
    waiting_claims,
)
from webhook.core.filtering import AND, Filter, Victims, same_everywhere
from webhook.core.interpod import interpod_filter
from webhook.core.model import Placing, Snapshot
from webhook.core.node_filters import (
    NodeTest,
    is_for_others,
    names_filter,
    node_filters,
    selecting,
    size_filter,
    tolerating,
)
from webhook.core.node_index import NodeIndex, index_of
from webhook.core.objects import Claim, Node, Pod
from webhook.core.occupancy import Occupancy, occupancy_for
from webhook.core.ports import ports_filter
from webhook.core.resources import resources_filter
from webhook.core.spreading import spreading_filter
from webhook.core.volumes import VolumeVerdict, claims_of_pod, volume_verdict
from webhook.core.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Question:
    """What filters are made of: the pod, who is where, its claims, and what its volumes allow.

    `selects`: whether its nodeSelector and required node affinity allow a node; `tolerates`: whether it tolerates
    all of a node's taints.
    """

    placing: Placing
    where: Whereabouts
    occupancy: Occupancy
    verdict: VolumeVerdict
    claims: tuple[Claim, ...]
    selects: NodeTest
    tolerates: NodeTest

    @property
    def pod(self) -> Pod:
        """The pod to be placed."""
        return self.placing.pod


@dataclass(frozen=True, slots=True)
class Failure:
    """The first filter that a node fails, and its reason."""

    filter: Filter
    reason: str


def question_for(where: Whereabouts, placing: Placing) -> Question:
    """Find out what the filters of this pod need to know."""
    claims = _claims_to_place(where, placing.pod)
    verdict = volume_verdict(claims, where.snapshot.volumes, where.index)
    return Question(
        placing=placing,
        where=where,
        occupancy=occupancy_for(where, placing),
        verdict=verdict,
        claims=claims,
        selects=selecting(placing.pod, where.index),
        tolerates=tolerating(placing.pod),
    )


def infeasible_reason(placing: Placing, node: Node, snapshot: Snapshot) -> str | None:
    """Why the scheduler would not accept the node for the pod, not even by preempting; None if it would.

    For one node; for several make the filters once.
    """
    nodes = {each.name: each for each in (*snapshot.nodes, node)}
    question = question_for(Whereabouts.of(snapshot, NodeIndex(nodes.values())), placing)
    filters = filters_for(question)
    failure = first_failure(filters, node)
    return None if failure is None or can_be_cleared(question, filters, node, failure) else failure.reason


def first_failure(filters: Sequence[Filter], node: Node, victims: Victims = ()) -> Failure | None:
    """Why the scheduler would not accept the node if these pods were not there; None if it would."""
    for each in filters:
        reason = each.judge(node, victims)
        if reason is not None:
            return Failure(each, reason)
    return None


def can_be_cleared(question: Question, filters: Sequence[Filter], node: Node, failure: Failure) -> bool:
    """Whether the scheduler would accept a node that fails so if it preempted pods of lower priority there."""
    victims = _victims(question, node) if failure.filter.resolvable else ()
    return bool(victims) and first_failure(filters, node, victims) is None


def filters_for(question: Question) -> tuple[Filter, ...]:
    """The filters of one pod, in the scheduler's order after what holds for all nodes alike; ours are unnamed there."""
    pod, index, claims = question.pod, question.where.index, question.claims
    snapshot, occupancy = question.where.snapshot, question.occupancy
    selects, tolerated = question.selects, question.tolerates
    made = (
        _claims_filter(question),
        names_filter(pod),
        size_filter(pod, index),
        *node_filters(pod, question.where.topology_key, selects=selects, tolerated=tolerated),
        ports_filter(pod, occupancy),
        resources_filter(question.placing, occupancy),
        use_filter(pod, claims, occupancy),
        limits_filter(claims, snapshot.volumes, occupancy),
        _volumes_filter(question),
        zones_filter(claims, snapshot.volumes),
        spreading_filter(pod, occupancy, index, selects=selects, tolerates=tolerated),
        interpod_filter(pod, snapshot, occupancy, index),
    )
    return tuple(each for each in made if each is not None)


def volumes_to_take(snapshot: Snapshot, placing: Placing, node_name: str) -> frozenset[str]:
    """The volumes that are there already and that the pod will take if it goes to this node."""
    question = question_for(Whereabouts.of(snapshot, index_of(snapshot.nodes)), placing)
    node, volumes = question.where.index.by_name.get(node_name), snapshot.volumes
    if node is None or not waiting_claims(question.claims, volumes):
        return frozenset()
    coming = _coming(question)
    with_it = expected_volumes([*coming, Member(node, question.claims)], volumes)
    return with_it - expected_volumes(coming, volumes)


def eligible(question: Question, node: Node) -> bool:
    """Whether the node makes its domain eligible for the pod (docs/design.md, section 2).

    Cordon, readiness, room and volumes do not enter: a domain that is down for an hour is still one.
    """
    return (
        bool(node.labels.get(question.where.topology_key))
        and question.selects(node)
        and not is_for_others(question.pod, node)
    )


def _claims_to_place(where: Whereabouts, pod: Pod) -> tuple[Claim, ...]:
    """The pod's claims in its order. Those of its ephemeral volumes are made after it, whatever is there before."""
    made = {claim.name: claim for claim in pod.ephemeral_claims}
    known = {**made, **where.claims} if pod.uid else {**where.claims, **made}
    return claims_of_pod(pod, known)


def _victims(question: Question, node: Node) -> Victims:
    """The pods of the node that the pod may preempt."""
    if not question.pod.preempts:
        return ()
    priority = question.pod.priority
    return [pod for pod in question.occupancy.on(node.name) if pod.bound and pod.priority < priority]


def _claims_filter(question: Question) -> Filter | None:
    """What of the pod's claims keeps it off every node."""
    known = {claim.name for claim in question.claims}
    missing = next((name for name in question.pod.claim_names if name not in known), "")
    problem = (
        (f'persistentvolumeclaim "{missing}" not found' if missing else "")
        or question.verdict.problem
        or unbound_problem(question.claims, question.where.snapshot.volumes)
        or size_problem(question.claims, question.where.snapshot.volumes, len(question.where.index.by_name))
    )
    return same_everywhere("VolumeBinding", problem) if problem else None


def _volumes_filter(question: Question) -> Filter:
    """What the pod's bound claims and those that are still to be bound say of a node: the scheduler tells both."""
    verdict = question.verdict
    unbound = binding_filter(question.claims, question.where.snapshot.volumes, _coming(question))

    def judge(node: Node, victims: Victims) -> str | None:
        found = (verdict.reason(node.name), unbound.judge(node, victims) if unbound else None)
        return AND.join(filter(None, found)) or None

    return Filter("VolumeBinding", judge)


def _coming(question: Question) -> list[Member]:
    """The pods that are not bound yet, with the claims for which they will take volumes before this one."""
    claims, index = question.where.claims, question.where.index
    found = []
    for pod in question.occupancy.coming:
        named = tuple(claims[name] for name in pod.claim_names if name in claims)
        found.append((pod.node_name, named or groups.claims_of(pod.name, None, tuple(claims.values()))))
    found += sorted(question.where.snapshot.volumes.promised.items())
    return [Member(index.by_name[name], brought) for name, brought in found if name in index.by_name]
