from __future__ import annotations

from decimal import Decimal

import pytest
from builders import (
    GIB,
    ZONE,
    label_in,
    make_claim,
    make_desired,
    make_node,
    make_placing,
    make_room,
    make_snapshot,
    make_volume,
    pinned_to,
)

from webhook.core import keys
from webhook.core.feasibility import eligible, infeasible_reason, question_for
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration
from webhook.core.volumes import NodeIndex
from webhook.core.whereabouts import Whereabouts

DEDICATED = Taint("dedicated", "tikv", "NoSchedule")
EVICTING = Taint("dedicated", "tikv", "NoExecute")
SOFT = Taint("dedicated", "tikv", "PreferNoSchedule")
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
TOLERATED = (Toleration("dedicated", "Exists"),)
EVERYTHING = (Toleration("", "Exists"),)

NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
MISMATCH = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"


def named(operator, *names):
    return NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", operator, names),)),))


NAMES_N1, NAMES_N2 = (pinned_to(name).terms[0].match_fields for name in ("n1", "n2"))


def reason(node=None, placing=None, **snapshot):
    return infeasible_reason(placing or make_placing(), node or make_node(), make_snapshot(**snapshot))


def test_a_ready_node_with_room_is_possible():
    assert reason() is None


@pytest.mark.parametrize(
    ("node", "pod", "expected"),
    [
        pytest.param({"ready": False}, {}, "node(s) were not ready", id="not ready"),
        pytest.param({"ready": False}, {"tolerations": EVERYTHING}, "node(s) were not ready", id="nor tolerable"),
        pytest.param({"unschedulable": True}, {}, "node(s) were unschedulable", id="cordoned"),
        pytest.param(
            {"unschedulable": True, "taints": (CORDON,)}, {}, "node(s) were unschedulable", id="cordoned and tainted so"
        ),
        pytest.param(
            {"unschedulable": True, "taints": (CORDON,)},
            {"tolerations": (Toleration("node.kubernetes.io/unschedulable", "Exists"),)},
            None,
            id="cordoned, and tolerated as the scheduler does",
        ),
        pytest.param({"unschedulable": True}, {"tolerations": EVERYTHING}, None, id="cordoned, everything tolerated"),
        pytest.param({"taints": (DEDICATED,)}, {}, TAINTED, id="NoSchedule"),
        pytest.param({"taints": (EVICTING,)}, {}, TAINTED, id="NoExecute"),
        pytest.param({"taints": (SOFT,)}, {}, None, id="PreferNoSchedule is only a wish"),
        pytest.param({"taints": (DEDICATED, EVICTING)}, {"tolerations": TOLERATED}, None, id="tolerated"),
        pytest.param({"taints": (DEDICATED, CORDON)}, {"tolerations": TOLERATED}, TAINTED, id="one of two tolerated"),
        pytest.param({}, {"node_selector": {"disk": "ssd"}}, MISMATCH, id="nodeSelector"),
        pytest.param({}, {"node_selector": {keys.HOSTNAME: "n1"}}, None, id="nodeSelector matches"),
        pytest.param({}, {"node_affinity": pinned_to("n2")}, NOT_NAMED, id="affinity by name"),
        pytest.param({"unschedulable": True}, {"node_affinity": pinned_to("n2")}, NOT_NAMED, id="not even looked at"),
        pytest.param({}, {"node_affinity": named("NotIn", "n1")}, MISMATCH, id="affinity by another name"),
        pytest.param(
            {},
            {"node_affinity": NodeSelector((*pinned_to("n2").terms, *label_in("disk", "ssd").terms))},
            MISMATCH,
            id="affinity by name or label",
        ),
        pytest.param(
            {},
            {"node_affinity": NodeSelector((NodeSelectorTerm(match_fields=(*NAMES_N1, *NAMES_N2)),))},
            "pod affinity terms conflict",
            id="two names at once",
        ),
        pytest.param({}, {"node_affinity": label_in(keys.HOSTNAME, "n2", "n1")}, None, id="affinity matches"),
        pytest.param(
            {},
            {"node_selector": {"disk": "ssd"}, "node_affinity": pinned_to("n1")},
            MISMATCH,
            id="nodeSelector and affinity",
        ),
        pytest.param({"labels": {}}, {}, "node(s) had no label kubernetes.io/hostname", id="no topology label"),
        pytest.param(
            {"labels": {keys.HOSTNAME: ""}}, {}, "node(s) had no label kubernetes.io/hostname", id="empty label"
        ),
        pytest.param(
            {"ready": False, "unschedulable": True}, {}, "node(s) were not ready", id="the first reason stands"
        ),
    ],
)
def test_a_node_that_the_scheduler_would_refuse_is_told_in_its_words(node, pod, expected):
    assert reason(make_node(**node), make_placing(**pod)) == expected


@pytest.mark.parametrize(
    ("allocatable", "requested", "asked", "expected"),
    [
        pytest.param({"cpu": 8}, {"cpu": 7}, {"cpu": 1}, None, id="fits exactly"),
        pytest.param({"cpu": 8}, {"cpu": 8}, {"cpu": 1}, "Insufficient cpu", id="cpu"),
        pytest.param({"memory": GIB}, {}, {"memory": 2 * GIB}, "Insufficient memory", id="memory"),
        pytest.param(
            {"ephemeral-storage": GIB}, {}, {"ephemeral-storage": 2 * GIB}, "Insufficient ephemeral-storage", id="disk"
        ),
        pytest.param({"pods": 2}, {"pods": 2}, {}, "Too many pods", id="pod slots"),
        pytest.param({"pods": 2}, {"pods": 1}, {}, None, id="the last pod slot"),
        pytest.param({"pods": 0}, {}, {}, "Too many pods", id="a slot is needed even where nothing is asked"),
        pytest.param(
            {"pods": 0, "cpu": 0}, {}, {"cpu": 1}, "Too many pods; Insufficient cpu", id="all that lacks is told"
        ),
        pytest.param({"cpu": 1}, {"cpu": 3}, {"cpu": 0}, None, id="nothing asked of an overcommitted node"),
        pytest.param({"vendor/gpu": 1}, {}, {"vendor/gpu": 1}, None, id="an extended resource"),
        pytest.param({"vendor/gpu": 1}, {}, {"vendor/gpu": 2}, "Insufficient vendor/gpu", id="too few"),
        pytest.param({"cpu": 8}, {}, {"vendor/gpu": 1}, "Insufficient vendor/gpu", id="not there"),
        pytest.param({"cpu": 8}, {}, {"memory": GIB}, "Insufficient memory", id="not reported, so not there"),
    ],
)
def test_a_node_needs_room_for_what_the_pod_requests(allocatable, requested, asked, expected):
    node = make_node(allocatable={name: Decimal(value) for name, value in ({"pods": 9} | allocatable).items()})
    placing = make_placing(requests=asked)

    assert reason(node, placing, rooms={"n1": make_room(**requested)}) == expected


def test_a_node_that_reports_nothing_has_no_room():
    assert reason(make_node(allocatable={})) == "Too many pods; Insufficient cpu; Insufficient memory"


@pytest.mark.parametrize(("node", "possible"), [("n1", False), ("n2", True)])
def test_a_node_must_be_one_of_the_volume_s(node, possible):
    told = reason(
        make_node(node),
        claims=[make_claim(volume_name="pv-1")],
        volumes=[make_volume("pv-1", keys.HOSTNAME, "n2")],
    )

    assert told == (None if possible else "node(s) didn't match PersistentVolume's node affinity")


def test_the_topology_label_is_that_of_the_group():
    zonal = make_desired(topology_key=ZONE)

    assert reason(make_node(zone="za"), desired=zonal) is None
    assert reason(make_node(), desired=zonal) == f"node(s) had no label {ZONE}"


@pytest.mark.parametrize(
    ("node", "pod", "expected"),
    [
        pytest.param({}, {}, True, id="any node"),
        pytest.param({"labels": {}}, {}, False, id="no topology label"),
        pytest.param({"taints": (DEDICATED,)}, {}, False, id="an untolerated taint"),
        pytest.param({"taints": (DEDICATED,)}, {"tolerations": TOLERATED}, True, id="a tolerated taint"),
        pytest.param({"taints": (SOFT,)}, {}, True, id="a taint that is only a wish"),
        pytest.param({"taints": (CORDON, UNREACHABLE)}, {}, True, id="taints that say how the node is"),
        pytest.param({"taints": (CORDON, DEDICATED)}, {}, False, id="one of two taints disqualifies"),
        pytest.param({}, {"node_selector": {"disk": "ssd"}}, False, id="nodeSelector"),
        pytest.param({}, {"node_affinity": pinned_to("n2")}, False, id="required affinity"),
        pytest.param({"ready": False, "unschedulable": True}, {}, True, id="cordon and readiness do not enter"),
        pytest.param({"allocatable": {"cpu": Decimal(0)}}, {}, True, id="room does not enter"),
    ],
)
def test_a_domain_is_eligible_by_what_it_is_for_not_by_how_it_is(node, pod, expected):
    snapshot = make_snapshot(nodes=[make_node(**node)])
    question = question_for(Whereabouts.of(snapshot, NodeIndex(snapshot.nodes)), make_placing(**pod))

    assert eligible(question, snapshot.nodes[0]) is expected
