"""What a pod gets by its user's options, its scheduler, its generic set, and its requester's own fields."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    a_claim,
    a_generic_pod,
    a_pod,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    generic_world,
    options,
    with_floor,
)
from stand import Stand, is_free

from webhook.cluster.door import NODES, Manifest
from webhook.core import keys
from webhook.core.outcomes import Cause, Outcome
from webhook.errors import ApiError, Forbidden, OutOfTime, TooManyRequests, UnknownOutcome

NO_ANSWER = UnknownOutcome("list", "pods", detail="connection reset")
FORBIDDEN = Forbidden("list", "persistentvolumeclaims", status=403)
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


# --- options


@pytest.mark.parametrize("pod", [a_pod, a_v2_pod], ids=["v1", "v2"])
@pytest.mark.parametrize("name", ["skip", "tikv.skip"])
def test_skip_on_the_pod_needs_nobody_to_be_asked_and_leaves_a_record(pod: Any, name: str) -> None:
    stand = Stand(*a_v1_world())
    answer = stand.review(pod(annotations={keys.PREFIX + name: "true"}))
    assert (answer.outcome, answer.cause, answer.warnings) == ("untouched", "SkipOption", [])
    assert (answer.record["cause"], stand.door.calls, stand.notices) == ("SkipOption", [], [])


def test_skip_takes_the_floors_guard_off() -> None:
    pod = with_floor(a_pod(annotations=options(skip="true")))
    answer = Stand(*a_v1_world()).review(pod)
    assert is_free(answer)
    assert keys.GUARD not in answer.annotations


def test_skip_on_the_cluster_is_skip_for_a_pod_that_says_nothing() -> None:
    stand = Stand(*a_v1_world(skip="true"))
    assert stand.review(a_pod()).cause == "SkipOption"
    assert stand.review(a_pod(annotations=options(skip="false"))).outcome == "pinned"
    assert len(stand.ledger()) == 1


@pytest.mark.parametrize("on_set", [True, False], ids=["set", "pod"])
def test_a_generic_pods_options_are_on_itself_or_on_its_set(on_set: bool) -> None:
    annotated = options(placement="Guard")
    stand = Stand(*generic_world(annotations=annotated if on_set else {}))
    answer = stand.review(a_generic_pod(annotations=None if on_set else annotated))
    assert (answer.outcome, answer.cause, answer.guarded) == ("guarded", "GuardOption", True)


def test_placement_guard_is_the_guard_without_a_warning_or_an_entry() -> None:
    stand = Stand(*a_v1_world(placement="Guard"))
    answer = stand.review(a_pod())
    assert (answer.outcome, answer.cause, answer.guarded, answer.node) == ("guarded", "GuardOption", True, "")
    assert (answer.warnings, stand.ledger(), stand.notices) == ([], [], [])


@pytest.mark.parametrize(
    ("value", "allowed", "outcome", "guarded"),
    [("Guard", True, "guarded", True), ("Deny", False, "denied", False), ("Admit", True, "admitted", False)],
)
@pytest.mark.parametrize("on_pod", [True, False], ids=["pod", "cluster"])
def test_a_pod_without_a_safe_node_gets_what_its_user_chose(
    on_pod: bool, value: str, allowed: bool, outcome: str, guarded: bool
) -> None:
    chosen = options(when_unplaceable=value)
    world = a_v1_world(node_count=1, **({} if on_pod else {"when_unplaceable": value}))
    stand = Stand(*world)
    stand.admit(a_pod())
    answer = stand.review(with_floor(a_pod("db-tikv-1", annotations=chosen if on_pod else None)))
    assert (answer.allowed, answer.outcome, answer.cause) == (allowed, outcome, "NoSafeNode")
    if allowed:
        assert answer.guarded is guarded
        assert len(answer.warnings) == 1
    assert len(stand.notices) == 1


def test_a_denial_is_403_and_says_why() -> None:
    stand = Stand(*a_v1_world(node_count=1, when_unplaceable="Deny"))
    stand.admit(a_pod())
    status = stand.review(a_pod("db-tikv-1")).response["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert "db-tikv-1 of shop/db/tikv is refused" in status["message"]
    assert "n1" in status["message"]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (FORBIDDEN, "ApiForbidden"),
        (NO_ANSWER, "ApiTrouble"),
        (TooManyRequests("list", "persistentvolumeclaims", retry_after=3.0), "ApiTrouble"),
        (OutOfTime("nothing left"), "BudgetUsedUp"),
    ],
    ids=["forbidden", "no answer", "busy", "out of time"],
)
@pytest.mark.parametrize(
    ("value", "outcome"), [("", "guarded"), ("Guard", "guarded"), ("Deny", "denied"), ("Admit", "admitted")]
)
def test_in_trouble_with_the_api_the_pods_own_choice_counts(
    error: Exception, cause: str, value: str, outcome: str
) -> None:
    stand = Stand(*a_v1_world(when_unplaceable="Deny"))
    stand.door.fails("list persistentvolumeclaims", error)
    answer = stand.review(a_pod(annotations=options(when_unplaceable=value) if value else None))
    assert (answer.outcome, answer.cause) == (outcome, cause)


@pytest.mark.parametrize(
    ("value", "outcome"), [("", "denied"), ("Guard", "guarded"), ("Deny", "denied"), ("Admit", "admitted")]
)
def test_in_trouble_the_pods_own_choice_goes_before_what_was_last_read_of_its_owners(value: str, outcome: str) -> None:
    stand = Stand(*a_v1_world(when_unplaceable="Deny", copies="5"))
    assert stand.review(a_pod()).outcome == "pinned"
    stand.door.fails("list persistentvolumeclaims", FORBIDDEN)
    answer = stand.review(a_pod("db-tikv-1", annotations=options(when_unplaceable=value) if value else None))
    assert (answer.outcome, answer.cause) == (outcome, "ApiForbidden")


def test_a_dry_run_remembers_nothing_of_the_owners_options() -> None:
    stand = Stand(*a_v1_world(when_unplaceable="Deny"))
    stand.review(a_pod(), dryRun=True)
    stand.door.fails("list persistentvolumeclaims", FORBIDDEN)
    assert stand.review(a_pod()).outcome == "guarded"


def test_a_guard_that_was_asked_for_is_no_reason_to_deny_in_trouble() -> None:
    stand = Stand(*a_v1_world())
    stand.door.fails("list persistentvolumeclaims", FORBIDDEN)
    answer = stand.review(a_pod(annotations=options(placement="Guard", when_unplaceable="Deny")))
    assert (answer.outcome, answer.guarded) == ("guarded", True)


@pytest.mark.parametrize("trouble", [False, True])
def test_an_option_that_cannot_be_used_is_warned_of_and_told_in_an_event(trouble: bool) -> None:
    stand = Stand(*a_v1_world())
    if trouble:
        stand.door.fails("list persistentvolumeclaims", FORBIDDEN)
    answer = stand.review(a_pod(annotations=options(placement="Gard")))
    assert answer.warnings[-1] == (
        'db-tikv-0 of shop/db/tikv: annotation placement of the pod is "Gard": Pin or Guard is right, Pin is used'
    )
    assert [len(text) <= 120 for text in answer.warnings] == [True] * (2 if trouble else 1)
    assert 'annotation tidb-ha-webhook.io/placement of the pod is "Gard"' in stand.notices[0].message


# --- other schedulers


def test_a_pod_of_tidb_scheduler_is_left_alone_with_a_warning_and_without_our_guard() -> None:
    stand = Stand(*a_v1_world())
    answer = stand.review(with_floor(a_pod(schedulerName="tidb-scheduler")))
    assert (answer.outcome, answer.cause, answer.guarded) == ("untouched", "TidbScheduler", False)
    assert is_free(answer)
    assert answer.warnings == [
        "db-tikv-0 of shop/db/tikv is left alone: tidb-scheduler places it; use one of the two",
    ]
    assert (stand.door.calls, len(stand.notices)) == ([], 1)


def test_a_pod_of_another_scheduler_is_guarded_only() -> None:
    stand = Stand(*a_v1_world(), other_schedulers=("custom",))
    answer = stand.review(a_pod(schedulerName="custom"))
    assert (answer.outcome, answer.cause, answer.guarded, answer.node) == ("guarded", "OtherScheduler", True, "")
    assert stand.ledger() == []


def test_a_pod_of_an_unknown_scheduler_is_pinned() -> None:
    assert Stand(*a_v1_world()).review(a_pod(schedulerName="custom")).outcome == "pinned"


# --- generic sets


@pytest.mark.parametrize("error", [NO_ANSWER, FORBIDDEN, OutOfTime("late")], ids=["no answer", "forbidden", "late"])
def test_a_generic_pod_whose_set_cannot_be_read_is_left_to_the_failure_policy(error: Exception) -> None:
    stand = Stand(*generic_world())
    stand.door.fails("get statefulsets", error)
    with pytest.raises((ApiError, OutOfTime)):
        stand.review(a_generic_pod())


@pytest.mark.parametrize(
    ("changes", "cause", "told"),
    [
        ({"annotations": options(skip="true")}, Cause.SKIP_OPTION, False),
        ({"annotations": {keys.PREFIX + "quorum.skip": "true"}}, Cause.SKIP_OPTION, False),
        ({"schedulerName": "tidb-scheduler"}, Cause.TIDB_SCHEDULER, True),
    ],
    ids=["skip", "its class's skip", "tidb-scheduler"],
)
def test_a_generic_pod_that_is_left_alone_anyway_is_so_too_when_its_set_cannot_be_read(
    changes: dict[str, Any], cause: Cause, told: bool
) -> None:
    stand = Stand(*generic_world())
    stand.door.fails("get statefulsets", NO_ANSWER)
    answer = stand.review(a_generic_pod(**changes))
    assert (answer.allowed, answer.operations, bool(answer.warnings)) == (True, [], told)
    assert stand.figures.reviews == [(Outcome.UNTOUCHED, cause, "")]


def test_a_generic_pods_set_is_read_once_before_the_decision() -> None:
    stand = Stand(*generic_world())
    stand.review(a_generic_pod())
    before = stand.door.calls[: stand.door.calls.index("list persistentvolumeclaims")]
    assert before == ["get statefulsets raft"]


@pytest.mark.parametrize(
    ("pod", "world", "said"),
    [
        pytest.param(
            a_generic_pod(owner={"apiVersion": "apps/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}),
            generic_world(),
            "raft-0 in shop: its controller is Job j of apps, not a StatefulSet",
            id="no set",
        ),
        pytest.param(
            a_generic_pod(),
            generic_world(spec={"replicas": 3, "selector": {"matchExpressions": []}}),
            "raft-0 in shop is left alone: its set's selector has no matchLabels; add some",
            id="no matchLabels",
        ),
    ],
)
def test_a_pod_that_asks_for_what_cannot_be_done_is_untouched_warned_of_and_told_in_an_event(
    pod: Manifest, world: list[Manifest], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stand = Stand(*world)
    answer = stand.review(pod)
    assert (answer.allowed, answer.operations, answer.warnings) == (True, [], [said])
    assert (len(stand.notices), len(caplog.records)) == (1, 1)
    stand.review(pod, dryRun=True)
    assert len(stand.notices) == 1


def test_a_generic_pod_of_a_class_that_is_none_is_never_pinned_and_never_stacked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand(*generic_world())
    answer = stand.review(a_generic_pod(member_class="Quorum"))
    assert (answer.outcome, answer.guarded) == ("guarded", True)
    assert answer.warnings == [
        'raft-0 of shop/raft/quorum: the label class is "Quorum": quorum or replicated is right, only the guard is used'
    ]
    assert len(stand.notices) == 1


# --- what the requester's own fields leave


FOREIGN_TERM = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "other"}}}
ZONE_ONLY = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "Exists"}]}]}}
}


def test_a_v2_pod_that_cannot_be_pinned_is_guarded_and_holds_no_node() -> None:
    stand = Stand(*a_v2_world())
    pod = a_v2_pod(affinity=ZONE_ONLY, nodeSelector={"kubernetes.io/os": "linux"})
    for number in (1, 2, 3):
        stand.patch(NODES, f"n{number}", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    answer = stand.review(pod)
    assert (answer.outcome, answer.cause, answer.guarded) == ("guarded", "RequesterFields", True)
    assert answer.pod["spec"]["affinity"]["nodeAffinity"] == ZONE_ONLY["nodeAffinity"]
    assert (stand.ledger(), stand.door.writes) == ([], [])


def test_a_v2_pod_with_an_affinity_of_its_own_is_pinned_by_its_hosts_label() -> None:
    stand = Stand(*a_v2_world())
    answer = stand.review(a_v2_pod(affinity=ZONE_ONLY))
    assert answer.outcome == "pinned"
    assert answer.pod["spec"]["nodeSelector"] == {HOST: answer.audit["node"]}
    assert len(stand.ledger()) == 1


def test_a_v2_pod_that_can_neither_be_pinned_nor_guarded_is_asked_to_come_again() -> None:
    stand = Stand(*a_v2_world())
    stand.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    pod = a_v2_pod(affinity={**ZONE_ONLY, "podAntiAffinity": {REQUIRED: [FOREIGN_TERM]}}, nodeSelector={HOST: "n2"})
    answer = stand.review(pod)
    status = answer.response["status"]
    assert (answer.allowed, status["code"], status["reason"]) == (False, 429, "TooManyRequests")
    assert status["details"] == {"retryAfterSeconds": 1}
    assert (answer.outcome, answer.cause, stand.ledger()) == ("denied", "RequesterFields", [])


def test_a_v2_pod_that_would_need_a_guard_beside_its_pin_and_can_hold_none_holds_no_node() -> None:
    stand = Stand(*a_v2_world(), a_claim("data-other", {}))
    # Admitted while we were away: neither node nor pin nor guard, so it could land anywhere.
    stand.cluster.admit(a_v2_pod("d4e5f6"), namespace=SPACE)
    answer = stand.review(a_v2_pod(affinity={"podAntiAffinity": {REQUIRED: [FOREIGN_TERM]}}))
    assert (answer.response["status"]["code"], stand.door.writes) == (429, [])


@pytest.mark.parametrize(("value", "code"), [("Deny", 403), ("Admit", None)])
def test_a_v2_pod_that_cannot_be_pinned_gets_what_its_user_chose(value: str, code: int | None) -> None:
    stand = Stand(*a_v2_world(annotations=options(when_unplaceable=value)))
    stand.patch(NODES, "n2", {"metadata": {"labels": {"disk": "fast"}}})
    pod = a_v2_pod(affinity=ZONE_ONLY, nodeSelector={"disk": "fast"})
    answer = stand.review(pod)
    assert (answer.response.get("status", {}).get("code"), answer.cause) == (code, "RequesterFields")
