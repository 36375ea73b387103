"""The use case end to end over the embedded cluster: what a pod gets, what is written, said, counted and logged."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    a_claim,
    a_cluster,
    a_generic_pod,
    a_pod,
    a_set,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    a_volume,
    an_object,
    claims,
    generic_world,
    labels_v1,
    nodes,
    pinned,
    with_floor,
)
from stand import Stand, a_review, answered, is_free

from webhook.admission import Admission, Collaborators
from webhook.cluster.door import CLAIMS, PODS, STATEFUL_SETS, Manifest
from webhook.cluster.quantities import requests_of
from webhook.core import keys
from webhook.core.affinity import PatchError
from webhook.core.model import Decision, Group
from webhook.core.outcomes import Cause, Outcome
from webhook.deadline import Deadline
from webhook.errors import Forbidden, ReviewError, UnknownOutcome
from webhook.locking.protocol import Answer, Request

HOST = "kubernetes.io/hostname"


# --- members


def test_what_a_round_logs_names_its_reviews(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stand = Stand(*a_v1_world())
    stand.door.fails("list persistentvolumeclaims", UnknownOutcome("list", "persistentvolumeclaims"), times=1)
    stand.review(a_pod(), uid="review-7")
    assert any("deciding shop/db/tikv (reviews review-7) anew" in line for line in caplog.messages)


def test_the_pods_claim_is_told_what_its_owner_is_told() -> None:
    stand = Stand(*a_v1_world(node_count=2))
    for ordinal in range(3):
        stand.admit(a_pod(f"db-tikv-{ordinal}"))
    assert [(notice.reason, notice.claim) for notice in stand.notices] == [("NoSafeNode", "tikv-db-tikv-2")]


def test_a_members_node_is_pinned_recorded_and_counted() -> None:
    stand = Stand(*a_v1_world())
    answer = stand.review(a_pod())
    assert (answer.outcome, answer.guarded, answer.warnings) == ("pinned", False, [])
    assert answer.node in ("n1", "n2", "n3")
    assert answer.annotations[keys.ASSIGNED_NODE] == answer.node
    assert answer.audit == {"outcome": "pinned", "group": "shop/db/tikv", "node": answer.node}
    assert [entry["token"] for entry in stand.ledger()] == [answer.record["token"]]
    assert stand.figures.reviews == [(Outcome.PINNED, Cause.NONE, "tikv")]
    assert stand.figures.decisions == [(1, 0, 0)]
    assert stand.notices == []


def test_the_members_of_a_set_get_a_node_each() -> None:
    stand = Stand(*a_v1_world())
    assert {stand.admit(a_pod(f"db-tikv-{ordinal}")).node for ordinal in range(3)} == {"n1", "n2", "n3"}


@pytest.mark.parametrize("component", ["pd", "tikv"])
def test_members_whose_pods_are_not_listed_yet_are_kept_apart_by_their_entries(component: str) -> None:
    stand = Stand(*a_v1_world(component=component))
    first, second = (stand.review(a_pod(f"db-{component}-{ordinal}")) for ordinal in range(2))
    assert first.node != second.node


def test_a_v2_pod_is_pinned_by_a_field_that_its_operator_does_not_set() -> None:
    stand = Stand(*a_v2_world())
    answer = stand.admit(a_v2_pod(nodeSelector={HOST: "n2"}))
    assert (answer.outcome, answer.node) == ("pinned", "n2")
    assert answer.pod["spec"]["nodeSelector"] == {HOST: "n2"}


def test_pods_of_a_daemon_set_that_wait_for_room_take_none_from_members() -> None:
    """They ask for more than is left of each node, so the scheduler turned them away; it would take the member."""
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    container = {"name": "main", "resources": {"requests": {"cpu": "9"}}}
    waiting = [
        an_object(PODS, f"agent-{name}", spec={"containers": [container], "affinity": pinned(name)}, status=status)
        for name in ("n1", "n2", "n3")
    ]
    assert Stand(*a_v1_world(), *waiting).review(a_pod()).outcome == "pinned"


def test_a_generic_member_is_found_by_its_sets_selector() -> None:
    stand = Stand(*generic_world())
    answer = stand.review(a_generic_pod())
    assert (answer.outcome, answer.audit["group"]) == ("pinned", "shop/raft/quorum")
    assert stand.door.calls[0] == "get statefulsets raft"


def test_the_requests_namespace_counts_whatever_the_object_says() -> None:
    pod = a_pod()
    del pod["metadata"]["namespace"]
    assert Stand(*a_v1_world()).review(pod).audit["group"] == "shop/db/tikv"


def test_a_pod_whose_name_has_253_characters_is_placed_and_told_of() -> None:
    cluster = "c" * (253 - len("-tikv-0"))
    name = f"{cluster}-tikv-0"
    stand = Stand(*nodes(1), a_set(replicas=3, cluster=cluster), a_claim("tikv-claim"))
    pinned_one = stand.admit(a_pod(name, claim="tikv-claim"))
    guarded = stand.review(a_pod(f"{cluster}-tikv-1", claim="tikv-claim"))
    assert (len(name), pinned_one.outcome, pinned_one.record["member"]) == (253, "pinned", name)
    assert (guarded.outcome, [len(text) <= 120 for text in guarded.warnings]) == ("guarded", [True])
    assert len(stand.notices[0].message) <= 1024


def test_a_set_of_one_gets_a_record_and_nothing_else() -> None:
    stand = Stand(*a_v1_world(replicas=1))
    answer = stand.review(with_floor(a_pod()))
    assert (answer.outcome, answer.cause, answer.warnings) == ("untouched", "SetOfOne", [])
    assert answer.record["outcome"] == "untouched"
    assert list(answer.annotations) == [keys.DECISION]
    assert is_free(answer)
    assert stand.door.writes == []


# --- what is not ours


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("web-0", labels={"app": "web"}), id="no labels of ours"),
        pytest.param(a_pod("db-tidb-0", labels=labels_v1("tidb")), id="a component that may lie together"),
        pytest.param(a_pod(annotations={keys.MIRROR_POD: "abc"}), id="mirror"),
        pytest.param(a_pod(nodeName="n1"), id="with a node"),
        pytest.param(with_floor(a_pod(nodeName="n1")), id="with a node and the floor's guard"),
    ],
)
def test_a_pod_that_is_not_ours_is_not_touched_at_all_and_nobody_is_asked(pod: Manifest) -> None:
    stand = Stand(*a_v1_world())
    answer = stand.review(pod)
    assert answer.response == {"uid": "review-1", "allowed": True}
    assert stand.door.calls == []
    assert stand.figures.reviews == [(Outcome.UNTOUCHED, Cause.NOT_A_MEMBER, "")]


def test_a_member_whose_name_is_made_after_admission_is_not_touched() -> None:
    pod = a_pod()
    del pod["metadata"]["name"]
    assert Stand(*a_v1_world()).review(pod).response == {"uid": "review-1", "allowed": True}


@pytest.mark.parametrize(
    "request_of",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT", "subResource": "exec"},
        {"subResource": "eviction"},
        {"subResource": "binding"},
    ],
    ids=["update", "delete", "exec", "eviction", "binding"],
)
def test_only_the_create_of_a_pod_is_looked_at(request_of: dict[str, Any]) -> None:
    stand = Stand(*a_v1_world())
    assert stand.review(a_pod(), **request_of).response == {"uid": "review-1", "allowed": True}
    assert (stand.door.calls, stand.figures.reviews) == ([], [])


def test_what_is_no_review_is_said_to_be_none() -> None:
    with pytest.raises(ReviewError):
        Stand().admission.review(b"[]", Deadline.after(1))


# --- trouble


def test_without_a_claim_to_lock_on_a_pod_is_guarded() -> None:
    stand = Stand(*nodes(), a_set(), a_cluster())
    answer = stand.review(a_pod(claim=""))
    assert (answer.outcome, answer.cause, answer.guarded) == ("guarded", "NoLockClaim", True)


def test_a_missing_stateful_set_is_trouble_and_no_set_of_one() -> None:
    stand = Stand(*nodes(), *claims(3))
    answer = stand.review(a_pod())
    assert (answer.outcome, answer.cause) == ("guarded", "ApiTrouble")


def test_the_verb_that_is_forbidden_is_named_in_the_event() -> None:
    stand = Stand(*a_v1_world())
    stand.door.fails("patch persistentvolumeclaims", Forbidden("patch", "persistentvolumeclaims", status=403))
    answer = stand.review(a_pod())
    assert (answer.cause, len(stand.notices)) == ("ApiForbidden", 1)
    notice = stand.notices[0]
    assert (notice.owner.name, notice.namespace, notice.reason) == ("db-tikv", SPACE, "ApiForbidden")
    assert "not allowed to patch persistentvolumeclaims" in notice.message


def test_an_outcome_that_warns_without_a_cause_gives_the_event_its_name() -> None:
    world = [*nodes(), a_set("pd"), a_claim("pd-db-pd-0", labels_v1("pd"), volume="a"), a_volume("a", "n1")]
    world += [a_claim("pd-db-pd-1", labels_v1("pd"), volume="b"), a_volume("b", "n1")]
    stand = Stand(*world)
    stand.cluster.admit(a_pod("db-pd-1", nodeName="n1"), namespace=SPACE)
    answer = stand.review(a_pod("db-pd-0"))
    assert (answer.outcome, answer.node, stand.notices[0].reason) == ("returned", "n1", "PodReturned")


class Pinning:
    """A placer with a defect: its pin names no node."""

    def place(self, group: Group, request: Request) -> Answer:
        return Answer(Decision(Outcome.PINNED))

    look = place


def test_a_patch_that_cannot_be_made_goes_up() -> None:
    stand = Stand(*a_v1_world())
    notify, requests = stand.notices.append, requests_of
    defect = Admission(Collaborators(stand.store, Pinning(), stand.figures, notify, requests))
    with pytest.raises(PatchError):
        defect.review(a_review(a_pod()), Deadline.after(9))
    assert stand.notices == []


def test_a_lost_swap_and_an_unknown_outcome_are_counted() -> None:
    stand = Stand(*a_v1_world())
    stand.door.fails("patch persistentvolumeclaims", UnknownOutcome("patch", "persistentvolumeclaims"), times=1)
    assert stand.review(a_pod()).outcome == "pinned"
    assert stand.figures.decisions == [(2, 0, 1)]


# --- what is said


def test_each_decision_is_one_log_line_with_the_reviews_uid(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stand = Stand(*a_v1_world())
    stand.review(a_pod(), uid="u-77")
    lines = [record for record in caplog.records if record.name == "webhook.admission"]
    assert len(lines) == 1
    fields = vars(lines[0])["tidb_ha_fields"]
    assert fields.pop("lock_wait_ms") == round(1000 * stand.clock.elapsed, 1)
    assert fields == {
        "uid": "u-77",
        "namespace": SPACE,
        "pod": "db-tikv-0",
        "group": "shop/db/tikv",
        "node": stand.ledger()[0]["node"],
        "outcome": "pinned",
        "cause": "",
        "rounds": 1,
    }


def test_a_pod_of_no_group_is_a_debug_line_with_the_reviews_uid(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Stand().review(a_pod("web-0", labels={}), uid="u-78")
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]
    assert "u-78" in caplog.text


@pytest.mark.parametrize("world", [a_v1_world(), a_v1_world(node_count=1), []], ids=["pinned", "guarded", "trouble"])
def test_nothing_of_a_pods_content_is_logged_or_told(world: list[Manifest], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stand = Stand(*world)
    secret = {"name": "PASSWORD", "value": "s3cr3t"}
    pod = a_pod("db-tikv-1", annotations={"other.io/token": "s3cr3t"}, containers=[{"name": "main", "env": [secret]}])
    stand.admit(a_pod())
    answer = stand.review(pod)
    said = json.dumps([answer.warnings, answer.audit, answer.record, [str(notice) for notice in stand.notices]])
    assert "s3cr3t" not in caplog.text + said + json.dumps(stand.records())


def test_the_same_guard_is_told_in_the_same_words_each_time() -> None:
    stand = Stand(*a_v1_world(node_count=1))
    stand.admit(a_pod())
    for uid in ("a", "b"):
        stand.review(a_pod("db-tikv-1"), uid=uid)
    assert len(stand.notices) == 2
    assert len(set(stand.notices)) == 1


def test_a_pod_without_an_owner_that_asks_for_what_cannot_be_done_gets_the_warning_but_no_event() -> None:
    pod = a_generic_pod()
    pod["metadata"]["ownerReferences"] = []
    stand = Stand()
    assert stand.review(pod).warnings == ["raft-0 in shop: its controller is nobody, not a StatefulSet"]
    assert stand.notices == []


def test_the_answer_has_the_same_uid_and_is_an_admission_review_of_v1() -> None:
    stand = Stand(*a_v1_world())
    answer = stand.admission.review(a_review(a_pod(), uid="u-5"), Deadline.after(9, stand.clock.monotonic))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert (answer["response"]["uid"], answered(a_pod(), answer).outcome) == ("u-5", "pinned")


def test_a_set_that_grows_from_one_is_kept_apart_from_then_on() -> None:
    stand = Stand(*a_v1_world(replicas=1))
    stand.admit(a_pod())
    stand.bind("db-tikv-0", "n1")
    stand.patch(STATEFUL_SETS, "db-tikv", {"spec": {"replicas": 3}})
    stand.cluster.create(CLAIMS, a_claim("tikv-db-tikv-1"), namespace=SPACE, timeout=1)
    assert stand.admit(a_pod("db-tikv-1")).node in ("n2", "n3")


def test_an_unchanged_answer_is_counted_as_such() -> None:
    stand = Stand(*a_v1_world())
    stand.review(stand.review(a_pod()).pod)
    assert stand.figures.reviews[1] == (Outcome.UNCHANGED, Cause.NONE, "tikv")
    assert len(stand.figures.decisions) == 1
    assert Decision(Outcome.UNCHANGED).cause is Cause.NONE


def test_a_generic_sets_owner_is_asked_for_again_where_no_answer_came() -> None:
    stand = Stand(*generic_world())
    stand.door.fails("get statefulsets", UnknownOutcome("get", "statefulsets", "raft"), times=2)
    assert stand.review(a_generic_pod()).outcome == "pinned"


@pytest.mark.parametrize(
    "error", [UnknownOutcome("get", "statefulsets", "raft"), Forbidden("get", "statefulsets", "raft", status=403)]
)
def test_a_generic_sets_owner_that_cannot_be_read_is_left_to_the_failure_policy(error: Exception) -> None:
    stand = Stand(*generic_world())
    stand.door.fails("get statefulsets", error)
    with pytest.raises(type(error)):
        stand.review(a_generic_pod())
    assert stand.clock.pauses == []


def test_an_api_server_that_has_just_started_does_not_get_a_generic_sets_pod_refused() -> None:
    """It forbids all until it has read the roles; that the right is there was seen before."""
    stand = Stand(*generic_world())
    stand.admit(a_generic_pod())
    stand.door.fails("get statefulsets", Forbidden("get", "statefulsets", "raft", status=403), times=4)
    assert stand.review(a_generic_pod(1)).outcome == "pinned"


@pytest.mark.parametrize(("budget", "waited"), [(9.0, 3.0), (1.2, 1.0)])
def test_what_stays_forbidden_of_a_generic_set_is_left_to_the_failure_policy_in_time(
    budget: float, waited: float
) -> None:
    stand = Stand(*generic_world())
    stand.admit(a_generic_pod())
    stand.door.fails("get statefulsets", Forbidden("get", "statefulsets", "raft", status=403))
    with pytest.raises(Forbidden):
        stand.review(a_generic_pod(1), budget=budget)
    assert sum(stand.clock.pauses) == waited
