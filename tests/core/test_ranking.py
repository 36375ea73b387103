"""Which of several safe nodes is taken."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import (
    GIB,
    LOCAL_VOLUMES,
    NOW,
    make_claim,
    make_desired,
    make_entry,
    make_node,
    make_nodes,
    make_placing,
    make_room,
    make_snapshot,
    make_volume,
    member,
    running_members,
    running_pod,
)

from webhook.core.model import Decision
from webhook.core.objects import PodOnNode
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide


def decided(placing=None, **snapshot) -> Decision:
    return decide(make_snapshot(**{"volumes": LOCAL_VOLUMES} | snapshot), placing or make_placing())


def test_a_live_entry_of_the_same_claim_keeps_its_node():
    for node in ("n1", "n2", "n3"):
        assert decided(entries=[make_entry(member(0), node)]).node == node


def test_the_newest_of_several_goes_first():
    entries = [
        make_entry(member(0), "n1", token="a", time=NOW - 9),
        make_entry(member(0), "n2", token="b", time=NOW - 1),
        make_entry(member(0), "n3", token="c", time=NOW - 5),
    ]

    assert decided(entries=entries).node == "n2"
    assert decided(entries=entries, pods=running_members("n2")).node == "n3"


def test_an_entry_of_another_claim_says_nothing():
    fresh = decided().node
    others = [node.name for node in make_nodes(3) if node.name != fresh]

    assert all(decided(entries=[make_entry(member(0), node, claim_uid="old")]).node == fresh for node in others)


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param({"nodes": [make_node("n1", unschedulable=True), *make_nodes(3)[1:]]}, id="cordoned since"),
        pytest.param({"pods": running_members("n1")}, id="taken since"),
    ],
)
def test_an_entry_whose_node_is_no_longer_right_is_not_followed(spoilt):
    found = decided(entries=[make_entry(member(0), "n1")], **spoilt)

    assert (found.outcome, found.node == "n1") == (Outcome.PINNED, False)


def test_once_the_volume_is_made_its_own_affinity_says_where():
    made = make_claim("tikv-db-tikv-0", volume_name="anywhere", selected_node="n1")
    pods = running_members("n1", "n2", "n3")
    everywhere = make_volume("anywhere")

    assert decided(claims=[made], volumes=[everywhere], desired=make_desired(6), pods=pods[:1]).node != "n1"
    assert decided(claims=[made], volumes=[everywhere], desired=make_desired(6), pods=pods[1:]).node == "n1"


def test_the_domain_without_a_member_of_the_same_round_goes_first():
    # Round 1 is ordinals 3 to 5: n1 has one of it, n2 and n3 have two of round 0 between them.
    pods = [running_pod(member(4), "n1"), running_pod(member(0), "n2"), running_pod(member(1), "n3")]

    assert decided(make_placing(member(3)), desired=make_desired(6), pods=pods).node in ("n2", "n3")


def test_then_the_domain_with_the_fewest_members():
    pods = [running_pod(member(i), node) for i, node in enumerate(("n1", "n2", "n3", "n1", "n2"))]

    assert decided(make_placing(member(5)), desired=make_desired(6), pods=pods).node == "n3"


@pytest.mark.parametrize("members", [None, ("db-tikv-7",)], ids=["random names", "a name not desired"])
def test_without_a_position_there_are_no_rounds(members):
    pods = [] if members else [running_pod("db-tikv-a", "n1"), running_pod("db-tikv-b", "n2")]

    found = decided(desired=make_desired(6, members=members), pods=pods, claims=[make_claim("tikv-db-tikv-0")])

    assert found.node in (("n1", "n2", "n3") if members else ("n3",))


def test_then_the_node_with_the_greatest_share_left():
    nodes = [make_node("n1", cpu=8), make_node("n2", cpu=64), make_node("n3", cpu=16)]

    assert decided(nodes=nodes).node == "n2"
    assert decided(nodes=nodes, rooms={"n2": make_room(cpu=60)}).node == "n3"


def test_the_scarcer_resource_decides():
    rooms = {"n1": make_room(cpu=1, memory=28 * GIB), "n2": make_room(cpu=4, memory=16 * GIB)}

    assert decided(nodes=make_nodes(2), rooms=rooms).node == "n2"


def test_a_node_that_reports_neither_comes_last():
    nodes = [make_node("n1", allocatable={"pods": Decimal(9)}), make_node("n2")]

    assert decided(make_placing(requests={}), nodes=nodes, rooms={"n2": make_room(cpu=6)}).node == "n2"


def test_a_promise_to_another_group_is_room_that_is_gone():
    snapshot = make_snapshot(nodes=make_nodes(2), volumes=LOCAL_VOLUMES)
    promised = replace(snapshot, promised={"n1": {"cpu": Decimal(2)}})

    assert decide(promised, make_placing()).node == "n2"
    assert decide(replace(snapshot, promised={"n2": {"cpu": Decimal(2)}}), make_placing()).node == "n1"


def test_a_node_with_room_goes_before_one_that_has_room_only_by_preempting():
    nodes = [make_node("n1", cpu=64), make_node("n2", cpu=2)]
    lesser = PodOnNode("other", "batch", "n1", requests={"cpu": Decimal(64)}, priority=-1)
    snapshot = replace(
        make_snapshot(nodes=nodes, rooms={"n1": make_room(cpu=64)}, volumes=LOCAL_VOLUMES),
        placed_pods={"n1": (lesser,)},
    )

    assert decide(snapshot, make_placing()).node == "n2"
    assert decide(replace(snapshot, nodes=tuple(nodes[:1])), make_placing()).node == "n1"


def test_alike_nodes_are_shared_out_by_hash():
    nodes = make_nodes(6)
    chosen = {decided(make_placing(f"db{i}-tikv-0", claim_names=()), nodes=nodes).node for i in range(60)}

    assert chosen == {node.name for node in nodes}
