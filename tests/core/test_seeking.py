"""The first in rank among many nodes is the one that a look at all of them finds."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import (
    bound_claim,
    by_node,
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
    pod_on,
    running_members,
)
from core.test_placement_properties import PROPERTY, cases
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.objects import Taint
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide
from webhook.core.seeking import MANY

DEDICATED = Taint("dedicated", "other", "NoSchedule")
CROWD = tuple(make_node(f"m{number:03}") for number in range(MANY + 1))
FULL = make_room(cpu=8)


def both(snapshot, placing):
    """The decision, found quickly; it must be the one that a look at all nodes leads to."""
    quick, thorough = decide(snapshot, placing, thorough=False), decide(snapshot, placing)

    assert replace(quick, passed_over={}) == replace(thorough, passed_over={})
    if quick.node:
        assert quick.passed_over.keys() <= thorough.passed_over.keys()
        assert quick.node not in quick.passed_over
    else:
        assert quick.passed_over == thorough.passed_over
    return quick


def many(**snapshot):
    """A snapshot of n1, n2, n3 and many full nodes."""
    rooms = {node.name: FULL for node in CROWD} | snapshot.pop("rooms", {})
    return make_snapshot(nodes=[*make_nodes(3), *CROWD], rooms=rooms, **snapshot)


@PROPERTY
@given(case=cases(), data=st.data())
def test_the_decision_is_the_same_in_whatever_state_the_cluster_is(case, data):
    snapshot, placing = case
    shapes = data.draw(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8), st.booleans()), min_size=1, max_size=5))
    further, rooms = [], dict(snapshot.rooms)
    for number, node in enumerate(CROWD):
        cpu, asked, tainted = shapes[number % len(shapes)]
        further.append(replace(node, allocatable=make_node(cpu=cpu).allocatable, taints=(DEDICATED,) * tainted))
        rooms[node.name] = make_room(cpu=asked)

    both(replace(snapshot, nodes=(*snapshot.nodes, *further), rooms=rooms), placing)


def test_the_freest_node_is_taken_and_those_that_are_not_possible_before_it_have_their_reason():
    tainted = replace(CROWD[0], taints=(DEDICATED,))
    snapshot = many(rooms={name: make_room(cpu=cpu) for name, cpu in (("n1", 3), ("n2", 2), ("n3", 1), ("m000", 0))})
    snapshot = replace(snapshot, nodes=(*make_nodes(3), tainted, *CROWD[1:]))
    found = both(snapshot, make_placing())

    assert (found.outcome, found.node) == (Outcome.PINNED, "n3")
    assert found.passed_over == {"m000": "node(s) had untolerated taint(s)"}


def test_a_domain_with_members_comes_after_those_without():
    snapshot = many(pods=running_members("n1"), rooms={"n2": make_room(cpu=6), "n3": make_room(cpu=7)})

    assert both(snapshot, make_placing()).node == "n2"


def test_the_node_that_was_promised_comes_first():
    snapshot = many(entries=[make_entry(member(0), "n3")], rooms={"n3": make_room(cpu=7)})

    assert both(snapshot, make_placing()).node == "n3"


def test_what_is_promised_to_others_counts():
    snapshot = replace(
        many(), promised={name: {"cpu": Decimal(cpu)} for name, cpu in (("n1", 3), ("n2", 2), ("n3", 8))}
    )

    assert both(snapshot, make_placing()).node == "n2"


def test_where_there_is_no_room_at_all_every_node_has_its_reason():
    snapshot = many(rooms={node.name: FULL for node in make_nodes(3)})
    found = both(snapshot, make_placing())

    assert found.outcome is Outcome.GUARDED
    assert len(found.passed_over) == len(snapshot.nodes)


def test_a_place_that_must_be_cleared_is_found_where_there_is_none_with_room():
    batch = pod_on("m007", requests=FULL.requested, priority=-1)
    snapshot = replace(many(rooms={node.name: FULL for node in make_nodes(3)}), placed_pods=by_node(batch))
    found = both(snapshot, make_placing())

    assert (found.outcome, found.node) == (Outcome.PINNED, "m007")
    assert "preempting" in found.detail


@pytest.mark.parametrize(
    ("volume", "node"),
    [
        pytest.param(make_volume("v", "disk", "ssd"), "m005", id="several nodes"),
        pytest.param(make_volume("v", keys.HOSTNAME, "m004"), "m004", id="one"),
    ],
)
def test_a_member_with_data_goes_where_it_is(volume, node):
    snapshot = many(claims=[bound_claim("v")], volumes=[volume], rooms={"m004": make_room(cpu=1)})
    nodes = [
        replace(each, labels={**each.labels, "disk": "ssd"}) if each.name in ("m004", "m005") else each
        for each in snapshot.nodes
    ]
    rooms = {**snapshot.rooms, "m005": make_room()}

    assert both(replace(snapshot, nodes=tuple(nodes), rooms=rooms), make_placing()).node == node


def test_few_nodes_are_all_looked_at():
    snapshot = make_snapshot(nodes=make_nodes(3), rooms={"n1": FULL, "n2": FULL})

    assert decide(snapshot, make_placing(), thorough=False) == decide(snapshot, make_placing())


def test_a_set_of_many_with_claims_of_its_own_is_placed_alike():
    desired = make_desired(9)
    snapshot = many(desired=desired, pods=running_members("n1", "n2", "m001"), claims=[make_claim("tikv-db-tikv-4")])

    assert both(snapshot, make_placing(member(4))).outcome is Outcome.PINNED
