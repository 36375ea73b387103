"""Who takes a place on which node, as the filters of one pod see it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import (
    GIB,
    by_node,
    make_entry,
    make_group,
    make_placing,
    make_pod,
    make_room,
    make_snapshot,
    member,
    pinned_pod,
    pod_on,
    running_pod,
)

from webhook.core import keys
from webhook.core.decision_record import decision_annotation
from webhook.core.model import Decision
from webhook.core.occupancy import occupancy_for
from webhook.core.outcomes import Outcome
from webhook.core.volumes import NodeIndex
from webhook.core.whereabouts import Whereabouts

ONE = {"cpu": Decimal(1), "memory": Decimal(GIB), "pods": Decimal(1)}
TWO = {"cpu": Decimal(2), "memory": Decimal(GIB), "pods": Decimal(1)}
WEB = pod_on("n1", requests=ONE)


def occupancy(*pods, placing=None, promised=None, **snapshot):
    placed = by_node(*pods)
    rooms = {
        name: make_room(**{key: sum(int(pod.requests.get(key, 0)) for pod in found) for key in ONE})
        for name, found in placed.items()
    }
    given = replace(make_snapshot(rooms=rooms, **snapshot), placed_pods=placed, promised=promised or {})
    return occupancy_for(Whereabouts.of(given, NodeIndex(given.nodes)), placing or make_placing())


def brief(found):
    """Names and CPUs by node, where there is anybody."""
    nodes = {*found.crowd, *(name for name in (*found.rooms, *found.touched) if found.asked_of(name).get("cpu"))}
    return {
        name: ([pod.name for pod in found.on(name)], int(found.asked_of(name).get("cpu", 0))) for name in sorted(nodes)
    }


def test_what_was_read_of_other_applications_stands():
    assert brief(occupancy(WEB)) == {"n1": (["web-n1"], 1)}


def test_an_earlier_life_of_the_pod_itself_has_gone():
    earlier = pod_on("n1", member(0), requests=TWO)
    namesake = pod_on("n2", member(0), namespace="other", requests=TWO)

    assert brief(occupancy(WEB, earlier, namesake)) == {"n1": (["web-n1"], 1), "n2": ([member(0)], 2)}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        pytest.param(running_pod(member(1), "n1"), {"n1": (["web-n1", member(1)], 3)}, id="where it was read"),
        pytest.param(
            running_pod(member(1), "n2"), {"n1": (["web-n1"], 1), "n2": ([member(1)], 1)}, id="elsewhere since"
        ),
        pytest.param(pinned_pod(member(1), "n2"), {"n1": (["web-n1"], 1), "n2": ([member(1)], 1)}, id="pinned"),
        pytest.param(make_pod(member(1)), {"n1": (["web-n1"], 1)}, id="nowhere yet"),
        pytest.param(running_pod(member(1), "n1", phase="Failed"), {"n1": (["web-n1"], 1)}, id="finished"),
    ],
)
def test_a_visible_member_is_where_the_consistent_list_says(visible, expected):
    read = pod_on("n1", member(1), requests=TWO)

    assert brief(occupancy(WEB, read, pods=[visible])) == expected


def test_a_member_that_was_not_read_yet_asks_for_what_its_sibling_asks():
    placing = make_placing(host_ports=(), requests={"cpu": 3})

    assert brief(occupancy(WEB, placing=placing, pods=[pinned_pod(member(1), "n2")]))["n2"] == ([member(1)], 3)


def test_where_all_pods_were_not_read_the_visible_ones_are_in_the_rooms():
    given = make_snapshot(rooms={"n2": make_room(cpu=1)}, pods=[running_pod(member(1), "n2")])
    found = occupancy_for(Whereabouts.of(given, NodeIndex(given.nodes)), make_placing())

    assert brief(found) == {"n2": ([], 1)}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([make_entry(member(1), "n2")], {"n2": ([member(1)], 1)}, id="one"),
        pytest.param(
            [make_entry(member(1), "n2"), make_entry(member(1), "n2", token="b")], {"n2": ([member(1)], 1)}, id="twice"
        ),
        pytest.param(
            [make_entry(member(1), "n2"), make_entry(member(1), "n3", token="b")],
            {"n2": ([member(1)], 1), "n3": ([member(1)], 1)},
            id="at its worst",
        ),
        pytest.param([make_entry(member(1), "", domain="n2")], {}, id="no node"),
        pytest.param([make_entry(member(0), "n2")], {}, id="the pod itself"),
    ],
)
def test_a_member_in_flight_takes_its_place(entries, expected):
    found = occupancy(entries=entries)

    assert brief(found) == expected
    assert {pod.node_name for pod in found.coming} == expected.keys()


def test_a_member_that_is_seen_is_not_in_flight_as_well():
    entries = [make_entry(member(1), "n2")]

    assert brief(occupancy(WEB, entries=entries, pods=[pinned_pod(member(1), "n2")]))["n2"] == ([member(1)], 1)


def test_an_answer_that_a_visible_pod_carries_is_over():
    decision = Decision(Outcome.PINNED, node="n1", domain="n1")
    annotations = {keys.DECISION: decision_annotation(decision, member(1), "t1")}
    carried = pinned_pod(member(1), "n1", annotations=annotations)
    entries = [make_entry(member(1), "n2", token="t1"), make_entry(member(1), "n3", token="t2")]

    assert brief(occupancy(WEB, entries=entries, pods=[carried])) == {
        "n1": (["web-n1", member(1)], 2),
        "n3": ([member(1)], 1),
    }


def test_a_sibling_has_the_labels_of_its_template_but_not_the_pod_s_own():
    labels = {"statefulset.kubernetes.io/pod-name": member(0), "apps.kubernetes.io/pod-index": "0", "revision": "r1"}
    placing = make_placing(labels=dict(make_group().selector) | labels)
    [sibling] = occupancy(placing=placing, entries=[make_entry(member(1), "n2")]).coming

    assert sibling.labels == dict(make_group().selector) | {
        "statefulset.kubernetes.io/pod-name": member(1),
        "revision": "r1",
    }


def test_promises_to_other_groups_ask_too():
    assert brief(occupancy(WEB, promised={"n1": {"cpu": Decimal(4)}, "n3": {"cpu": Decimal(1)}})) == {
        "n1": (["web-n1"], 5),
        "n3": ([], 1),
    }


def test_members_that_are_bound_are_not_on_their_way():
    pods = [running_pod(member(1), "n1"), pinned_pod(member(2), "n2")]

    assert [pod.name for pod in occupancy(WEB, pods=pods).coming] == [member(2)]
