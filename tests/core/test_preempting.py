"""Nodes that are possible only by preempting pods of lower priority: a second choice."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import (
    NAMESPACE,
    make_claim,
    make_desired,
    make_group,
    make_node,
    make_nodes,
    make_placing,
    make_room,
    make_snapshot,
    running_members,
)

from webhook.core.objects import HostPort, LabelSelector, PodAffinityTerm, PodOnNode, SpreadConstraint
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide

OWN = LabelSelector(dict(make_group().selector))
BATCH = LabelSelector({"app": "batch"})


def batch(node: str = "n1", *, priority: int = -1, cpu: int = 8, **changes) -> PodOnNode:
    """A pod of another application that takes the whole node."""
    requests = {"cpu": Decimal(cpu), "pods": Decimal(1)}
    pod = PodOnNode("other", f"batch-{node}", node, {"app": "batch"}, requests, priority)
    return replace(pod, **changes)


def decided(*pods: PodOnNode, placing=None, nodes=None, **snapshot):
    placed = {node.name: tuple(pod for pod in pods if pod.node_name == node.name) for node in make_nodes(3)}
    rooms = {name: make_room(cpu=sum(int(pod.requests["cpu"]) for pod in found)) for name, found in placed.items()}
    given = make_snapshot(nodes=nodes or make_nodes(1), rooms=rooms, **snapshot)
    return decide(replace(given, placed_pods=placed), placing or make_placing())


def test_a_full_node_is_possible_if_enough_would_be_preempted_and_it_is_said():
    found = decided(batch())

    assert (found.outcome, found.node) == (Outcome.PINNED, "n1")
    assert found.detail == (
        "domain n1 holds 0 member(s), at most 1; room is made by preempting pods of lower priority (Insufficient cpu)"
    )


def test_a_node_with_room_goes_first():
    for free in ("n1", "n2", "n3"):
        full = [batch(node.name) for node in make_nodes(3) if node.name != free]

        found = decided(*full, nodes=make_nodes(3))
        assert (found.node, "preempting" in found.detail) == (free, False)


def test_a_domain_with_more_members_goes_before_one_that_must_be_cleared():
    pods = running_members("n1", "n2", "n2", "n3")
    found = decided(batch(), batch("n3"), nodes=make_nodes(3), pods=pods, desired=make_desired(9))

    assert (found.node, found.counts) == ("n2", {"n1": 1, "n2": 2, "n3": 1})


@pytest.mark.parametrize(
    ("victim", "placing"),
    [
        pytest.param(batch(priority=0), {}, id="of the same priority"),
        pytest.param(batch(priority=9), {}, id="of higher priority"),
        pytest.param(batch(), {"preempts": False}, id="by a pod that never preempts"),
        pytest.param(batch(bound=False), {}, id="not bound yet"),
        pytest.param(batch(cpu=8), {"requests": {"cpu": 9}}, id="the node is too small"),
    ],
)
def test_nobody_is_preempted(victim, placing):
    found = decided(victim, placing=make_placing(**placing))

    assert (found.outcome, found.passed_over) == (Outcome.GUARDED, {"n1": "Insufficient cpu"})


def test_those_that_stay_must_leave_enough():
    staying = batch(name="staying", priority=0, cpu=4)
    going = batch(name="going", cpu=4)

    assert decided(staying, going, placing=make_placing(requests={"cpu": 4})).node == "n1"
    assert decided(staying, going, placing=make_placing(requests={"cpu": 5})).node == ""


PORT = (HostPort(20160),)
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("victim", "placing"),
    [
        pytest.param({"host_ports": PORT}, {"host_ports": PORT}, id="a port"),
        pytest.param({"anti_affinity": (PodAffinityTerm(HOST, OWN, (NAMESPACE,)),)}, {}, id="its anti-affinity"),
        pytest.param({}, {"anti_affinity": (PodAffinityTerm(HOST, BATCH, ("other",)),)}, id="our anti-affinity"),
        pytest.param(
            {"namespace": NAMESPACE}, {"spread": (SpreadConstraint(HOST, 0, BATCH, min_domains=9),)}, id="a spread"
        ),
        pytest.param({"namespace": NAMESPACE, "claim_names": ("tikv-db-tikv-0",)}, {}, id="a claim in use"),
    ],
)
def test_whatever_else_is_in_the_way_may_go_too(victim, placing):
    single = [make_claim(access_modes=("ReadWriteOncePod",))]
    found = decided(batch(cpu=0, **victim), placing=make_placing(**placing), claims=single)
    same = decided(batch(cpu=0, priority=0, **victim), placing=make_placing(**placing), claims=single)

    assert (found.node, "preempting" in found.detail) == ("n1", True)
    assert same.outcome is Outcome.GUARDED


def test_what_no_preempting_can_mend_is_the_reason():
    cordoned = make_node("n1", unschedulable=True)

    assert decided(batch(), nodes=[cordoned]).passed_over == {"n1": "node(s) were unschedulable"}


def test_a_pod_that_must_be_beside_the_victim_cannot_preempt_it():
    beside = PodAffinityTerm(HOST, BATCH, ("other",))
    found = decided(batch(), placing=make_placing(affinity=(beside,)))

    assert found.passed_over == {"n1": "Insufficient cpu"}
