"""Dry runs, and pods that come with a decision of ours."""

from __future__ import annotations

import json

import pytest
from cluster_objects import SPACE, a_claim, a_node, a_pod, a_set, a_v1_world, a_volume, claims, nodes, pinned
from stand import Stand

from webhook.cluster.door import CLAIMS, NODES, PODS
from webhook.core import keys
from webhook.errors import Forbidden, UnknownOutcome

NO_ANSWER = UnknownOutcome("list", "pods", detail="connection reset")
FORBIDDEN = Forbidden("list", "persistentvolumeclaims", status=403)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


# --- dry run


def test_a_dry_run_gets_the_same_answer_and_writes_remembers_and_tells_nothing() -> None:
    stand = Stand(*a_v1_world())
    dry = stand.review(a_pod(), dryRun=True)
    assert stand.door.writes == []
    assert stand.records() == {}
    assert "token" not in dry.record
    wet = stand.review(a_pod())
    assert (dry.outcome, dry.node) == (wet.outcome, wet.node)


def test_a_dry_run_sends_no_event() -> None:
    stand = Stand(*a_v1_world(node_count=1))
    stand.admit(a_pod())
    answer = stand.review(a_pod("db-tikv-1"), dryRun=True)
    assert (answer.outcome, len(answer.warnings), stand.notices) == ("guarded", 1, [])


def test_the_answer_of_a_dry_run_is_taken_as_it_stands_in_a_dry_run_only() -> None:
    stand = Stand(*a_v1_world())
    dry = stand.review(a_pod(), dryRun=True)
    stand.door.calls.clear()
    again = stand.review(dry.pod, dryRun=True)
    assert (again.outcome, again.operations, stand.door.calls) == ("unchanged", [], [])
    wet = stand.review(dry.pod)
    assert (wet.outcome, wet.record["token"]) == ("pinned", "token000001")


# --- called again


def test_our_own_answer_fed_back_is_left_as_it_stands_and_nothing_is_written() -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    stand.door.calls.clear()
    again = stand.review(first.pod, uid="another")
    assert (again.outcome, again.operations, again.audit["node"]) == ("unchanged", [], first.node)
    assert stand.door.writes == []


def test_another_replica_leaves_our_answer_as_it_stands_too() -> None:
    stand = Stand(*a_v1_world())
    assert stand.another().review(stand.review(a_pod()).pod).outcome == "unchanged"


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (NO_ANSWER, "list persistentvolumeclaims"),
        (FORBIDDEN, "list persistentvolumeclaims"),
        (NO_ANSWER, "list pods"),
        (FORBIDDEN, "get statefulsets"),
    ],
)
def test_our_answer_is_left_as_it_stands_when_the_records_cannot_be_read(error: Exception, call: str) -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    stand.door.fails(call, error)
    again = stand.review(first.pod)
    assert (again.outcome, again.operations) == ("unchanged", [])


def test_our_answer_is_left_as_it_stands_by_a_replica_that_cannot_read_the_newer_records() -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    newer = {keys.LOCK: json.dumps({"v": 9, "entries": []})}
    stand.patch(CLAIMS, "tikv-db-tikv-0", {"metadata": {"annotations": newer}})
    assert stand.another().review(first.pod).outcome == "unchanged"


def test_a_guard_of_ours_is_left_as_it_stands_when_the_records_cannot_be_read() -> None:
    stand = Stand(*a_v1_world(node_count=1))
    stand.admit(a_pod())
    guarded = stand.review(a_pod("db-tikv-1"))
    stand.door.fails("list persistentvolumeclaims", FORBIDDEN)
    again = stand.review(guarded.pod)
    assert (again.outcome, again.operations) == ("unchanged", [])


def test_a_guarded_pod_that_comes_again_gets_its_place_as_soon_as_there_is_one() -> None:
    stand = Stand(*a_v1_world(node_count=1))
    stand.admit(a_pod())
    guarded = stand.review(a_pod("db-tikv-1"))
    assert stand.review(guarded.pod).operations == []
    stand.cluster.create(NODES, a_node("n9"), timeout=1)
    again = stand.review(guarded.pod)
    assert (again.node, again.guarded) == ("n9", False)


@pytest.mark.parametrize("changed", ["pin", "all affinity", "another pin"])
def test_a_pin_that_another_webhook_took_off_is_put_in_again(changed: str) -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    pod = json.loads(json.dumps(first.pod))
    pod["spec"]["affinity"] = {"pin": {"nodeAffinity": {}}, "all affinity": None, "another pin": pinned("n9")}[changed]
    again = stand.review(pod)
    assert again.outcome == ("pinned" if changed != "another pin" else "guarded")
    if changed != "another pin":
        assert again.node == first.node


def test_a_guard_beside_a_pin_that_another_webhook_took_off_is_put_in_again() -> None:
    stand = Stand(*a_v1_world())
    stand.cluster.admit(a_pod("db-tikv-1"), namespace=SPACE)
    first = stand.review(a_pod())
    assert (bool(first.node), first.guarded) == (True, True)
    assert stand.review(first.pod).outcome == "unchanged"
    pod = json.loads(json.dumps(first.pod))
    del pod["spec"]["affinity"]["podAntiAffinity"]
    again = stand.review(pod)
    assert (again.node, again.guarded) == (first.node, True)


def test_the_pin_of_a_copied_template_is_stale_and_replaced_in_place() -> None:
    stand = Stand(*a_v1_world())
    template = stand.admit(a_pod()).pod
    copied = a_pod("db-tikv-1", annotations=template["metadata"]["annotations"], affinity=template["spec"]["affinity"])
    answer = stand.review(copied)
    terms = answer.pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert answer.outcome == "pinned"
    assert answer.node not in ("", template["metadata"]["annotations"][keys.ASSIGNED_NODE])
    assert [len(term["matchFields"]) for term in terms] == [1]


def test_the_pin_of_an_earlier_life_is_stale() -> None:
    stand = Stand(*a_v1_world())
    earlier = stand.admit(a_pod())
    stand.delete(PODS, "db-tikv-0")
    stand.patch(NODES, earlier.node, {"spec": {"unschedulable": True}})
    answer = stand.review(earlier.pod)
    assert answer.outcome == "pinned"
    assert answer.node != earlier.node


def test_a_node_that_is_not_possible_any_more_is_replaced() -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    stand.patch(NODES, first.node, {"spec": {"unschedulable": True}})
    again = stand.review(first.pod)
    assert again.outcome == "pinned"
    assert again.node != first.node
    assert len(stand.ledger()) == 2


def test_a_member_that_waits_for_its_nodes_repair_is_left_as_it_stands_until_then() -> None:
    bound = a_claim("tikv-db-tikv-0", volume="disk")
    stand = Stand(*nodes(), a_set(), bound, *claims(3)[1:], a_volume("disk", "n2"))
    stand.patch(NODES, "n2", {"spec": {"unschedulable": True}})
    first = stand.review(a_pod())
    assert (first.outcome, first.node, len(stand.ledger())) == ("returned-waiting", "", 1)
    assert stand.review(first.pod).outcome == "unchanged"
    stand.patch(NODES, "n2", {"spec": {"unschedulable": None}})
    assert stand.review(first.pod).node == "n2"


def test_rubbish_in_our_annotations_on_a_pod_is_replaced() -> None:
    stand = Stand(*a_v1_world())
    pod = a_pod(annotations={keys.DECISION: "{]", keys.ASSIGNED_NODE: "n1", keys.GUARD: "x"})
    answer = stand.review(pod)
    assert answer.outcome == "pinned"
    assert (answer.annotations[keys.ASSIGNED_NODE], answer.record["member"]) == (answer.node, "db-tikv-0")
    assert keys.GUARD not in answer.annotations
