"""Members whose data is somewhere already."""

from __future__ import annotations

import pytest
from builders import (
    LOCAL_VOLUMES,
    ZONAL_NODES,
    ZONE,
    bound_claim,
    guarded_pod,
    label_in,
    make_claim,
    make_class,
    make_desired,
    make_group,
    make_node,
    make_nodes,
    make_placing,
    make_pod,
    make_room,
    make_snapshot,
    make_volume,
    member,
    running_members,
    running_pod,
)

from webhook.core.messages import event_message
from webhook.core.model import Decision
from webhook.core.outcomes import Cause, Outcome
from webhook.core.placement import decide
from webhook.core.texts import HOME_IS_FULL, HOME_IS_TAKEN, TEXTS, text_of

CORDONED = "node(s) were unschedulable"


def decided(placing=None, **snapshot) -> Decision:
    return decide(make_snapshot(**{"volumes": LOCAL_VOLUMES} | snapshot), placing or make_placing())


def test_within_the_cap_it_is_an_ordinary_placement():
    found = decided(claims=[bound_claim("on-n2")], pods=running_members("n1", "n3"))

    assert (found.outcome, found.node, found.above_cap) == (Outcome.PINNED, "n2", False)
    assert found.passed_over.keys() == {"n1", "n3"}


def test_above_the_cap_it_goes_back_to_its_data_without_a_guard():
    found = decided(claims=[bound_claim("on-n1")], pods=[*running_members("n1", "n1"), make_pod(member(7))])

    assert (found.outcome, found.node, found.domain) == (Outcome.RETURNED, "n1", "n1")
    assert (found.above_cap, found.guard_too, found.counts) == (True, False, {"n1": 2})
    assert found.detail == "its data is in domain n1 only, so it goes back: now 3 of 1"


def test_three_stacked_stores_survive_a_rolling_restart():
    claims = [bound_claim("on-n1", ordinal) for ordinal in range(3)]
    for ordinal in range(3):
        others = [running_pod(member(other), "n1") for other in range(3) if other != ordinal]
        found = decided(make_placing(member(ordinal)), claims=claims, pods=others)

        assert (found.outcome, found.node) == (Outcome.RETURNED, "n1")


def test_a_member_that_cannot_be_located_holds_no_return_back():
    found = decided(claims=[bound_claim("on-n2")], pods=running_members("n9"))

    assert (found.outcome, found.node, found.above_cap) == (Outcome.RETURNED, "n2", False)


def test_beside_an_open_member_it_is_guarded_too_where_it_is_alone():
    found = decided(claims=[bound_claim("on-n2")], pods=[make_pod(member(1)), *running_members("n3", first=2)])

    assert (found.outcome, found.node, found.guard_too) == (Outcome.PINNED, "n2", True)


def test_beside_an_open_member_it_goes_back_unguarded_where_it_is_not_alone():
    pods = [make_pod(member(1)), *running_members("n1", "n2", "n3", first=2)]
    found = decided(desired=make_desired(6), claims=[bound_claim("on-n2")], pods=pods)

    assert (found.outcome, found.node, found.guard_too, found.above_cap) == (Outcome.RETURNED, "n2", False, False)
    assert "so it goes back: now 2 of 2; domain n2 holds a member" in found.detail
    assert found.detail.endswith("could join it (db-tikv-1): kubectl delete pod db-tikv-1")
    assert "claim" not in event_message(found, make_pod(member(0)), make_group())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nodes": [make_node("n1"), make_node("n2", unschedulable=True)]}, TEXTS[Outcome.RETURNED_WAITING]),
        ({"rooms": {"n2": make_room(cpu=8)}}, HOME_IS_FULL),
        ({"pods": [guarded_pod(member(1), node_name="n2")]}, HOME_IS_TAKEN),
    ],
    ids=["cordoned", "full", "taken by a guarded sibling"],
)
def test_what_to_do_for_one_that_waits_follows_from_what_is_in_the_way_of_its_data(changes, text):
    found = decided(claims=[bound_claim("on-n2")], **changes)

    assert (found.outcome, text_of(found)) == (Outcome.RETURNED_WAITING, text)


def test_it_waits_for_a_cordoned_node():
    nodes = [make_node("n1"), make_node("n2", unschedulable=True)]
    found = decided(claims=[bound_claim("on-n2")], nodes=nodes)

    assert (found.outcome, found.node, found.domain, found.hostname) == (Outcome.RETURNED_WAITING, "", "n2", "")
    assert found.detail == "its data is in domain n2 only, where no node is possible now: 1 " + CORDONED


def test_it_waits_for_a_node_that_is_gone():
    found = decided(claims=[bound_claim("on-n3")], nodes=make_nodes(2))

    assert (found.outcome, found.domain) == (Outcome.RETURNED_WAITING, "n3")
    assert found.detail == "its data is in domain n3 only, where no node is possible now: no such node is there"


def test_it_waits_above_the_cap_too():
    nodes = [make_node("n1", unschedulable=True), make_node("n2")]
    found = decided(claims=[bound_claim("on-n1")], nodes=nodes, pods=running_members("n1"))

    assert (found.outcome, found.above_cap) == (Outcome.RETURNED_WAITING, True)


def test_where_its_volumes_allow_several_domains_the_cap_applies():
    volumes = [make_volume("regional", ZONE, "za", "zb")]
    zonal = {"desired": make_desired(3, topology_key=ZONE), "nodes": ZONAL_NODES, "volumes": volumes}
    claims = [bound_claim("regional")]

    assert decided(claims=claims, pods=running_members("za1"), **zonal).domain == "zb"
    held = decided(claims=claims, pods=running_members("za1", "zb1"), **zonal)
    assert (held.outcome, held.cause) == (Outcome.GUARDED, Cause.NO_SAFE_NODE)


def test_it_takes_the_better_host_of_its_zone():
    volumes = [make_volume("zonal", ZONE, "za")]
    found = decided(
        claims=[bound_claim("zonal")],
        volumes=volumes,
        nodes=ZONAL_NODES,
        desired=make_desired(6, topology_key=ZONE),
        pods=running_members("za1"),
    )

    assert (found.outcome, found.node, found.above_cap) == (Outcome.RETURNED, "za2", True)
    assert found.passed_over["za1"] == "node already holds a member, and another node in za does not"


def test_volumes_without_a_node_in_common_are_named():
    claims = [bound_claim("on-n1"), make_claim("wal-db-tikv-0", volume_name="on-n2")]
    placing = make_placing(claim_names=("tikv-db-tikv-0", "wal-db-tikv-0"))
    found = decided(placing, claims=claims)

    assert (found.outcome, found.cause) == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert "the volumes of tikv-db-tikv-0, wal-db-tikv-0 allow no node" in found.detail
    assert found.passed_over.keys() == {"n1", "n2", "n3"}


def test_the_bound_one_of_two_claims_decides():
    claims = [make_claim("tikv-db-tikv-0"), make_claim("wal-db-tikv-0", volume_name="on-n2")]
    placing = make_placing(claim_names=("tikv-db-tikv-0", "wal-db-tikv-0"))

    assert decided(placing, claims=claims, pods=running_members("n2")).outcome is Outcome.RETURNED


def test_a_volume_that_is_not_known_allows_no_pin():
    found = decided(claims=[bound_claim("unread")])

    assert found.outcome is Outcome.GUARDED
    assert set(found.passed_over.values()) == {
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    }


def test_the_topologies_of_an_unbound_claim_are_no_data():
    zonal = make_class("zonal", provisioner="ebs.csi.aws.com", allowed_topologies=label_in(ZONE, "za"))
    found = decided(
        claims=[make_claim("tikv-db-tikv-0", storage_class="zonal")],
        classes=[zonal],
        nodes=ZONAL_NODES,
        desired=make_desired(3, topology_key=ZONE),
        pods=running_members("za1"),
    )

    assert found.outcome is Outcome.GUARDED
