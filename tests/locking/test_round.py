"""A round over the embedded cluster: its steps, and what it does when calls fail, time runs out, claims change."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial

import pytest
from cluster_objects import SPACE, ZONE, a_claim, a_pod, a_set, a_v1_world, a_volume, an_object, claims, nodes
from locking.asking import LOCK, PVC, READS, SECOND, SECOND_WRITE, SWAP, ask
from stand import BUDGET, START, Stand

from webhook.cluster.door import CLAIMS, NODES, TIDB_CLUSTERS
from webhook.core import keys
from webhook.core.model import WhenUnplaceable
from webhook.core.outcomes import Cause, Outcome
from webhook.errors import Conflict, Forbidden, Invalid, NotFound, TooManyRequests, UnknownOutcome
from webhook.locking.protocol import Answer
from webhook.locking.settling import LONGEST_ADMISSION, UNBOUND_CLAIM
from webhook.locking.waiting import LEAST_LEFT
from webhook.locking.young_claims import YOUNG_CLAIM


@pytest.fixture
def stand() -> Stand:
    return Stand(*a_v1_world())


PINNED = (Outcome.PINNED, Cause.NONE)


# --- the seven steps


def test_a_round_reads_claims_then_pods_swaps_writes_again_and_confirms(stand: Stand) -> None:
    assert ask(stand).brief == PINNED
    calls = [call for call in stand.door.calls if PVC in call or call == "list pods"]
    # The second list of pods is of all of them, for what is requested on nodes.
    assert calls[0:2] == [f"list {PVC}", "list pods"]
    assert calls[-3:] == [SWAP, SECOND_WRITE, f"list {PVC}"]


def test_the_entry_is_in_the_ledger_and_once_more_on_another_claim(stand: Stand) -> None:
    answer = ask(stand).only
    [entry] = stand.ledger()
    assert (entry["token"], entry["member"], entry["node"]) == (answer.token, "db-tikv-0", answer.decision.node)
    assert stand.seconds() == [(SECOND, answer.token)]


def test_the_second_record_is_on_the_own_claim_of_a_member_of_the_round(stand: Stand) -> None:
    token = ask(stand, "db-tikv-2").only.token
    assert stand.seconds() == [("tikv-db-tikv-2", token)]


def test_a_group_with_one_claim_has_no_second_record() -> None:
    stand = Stand(*nodes(), a_set(), a_claim(LOCK))
    assert ask(stand).brief == PINNED
    assert (len(stand.ledger()), stand.seconds()) == (1, [])


def test_the_members_of_a_round_get_a_node_each_by_one_swap(stand: Stand) -> None:
    asked = ask(stand, "db-tikv-2", "db-tikv-0", "db-tikv-1")
    assert list(asked.answers) == ["db-tikv-0", "db-tikv-1", "db-tikv-2"]
    assert len({answer.decision.node for answer in asked.answers.values()}) == 3
    assert stand.door.writes.count(SWAP) == 1
    assert len(stand.door.writes) == 2


def test_a_swap_that_another_replica_won_is_decided_anew_on_what_is_there_now(stand: Stand) -> None:
    rival = stand.another()
    theirs: list[Answer] = []
    stand.door.happens(SWAP, lambda: theirs.append(ask(rival, "db-tikv-1").only))
    answer = ask(stand).only
    assert (answer.effort.attempts, answer.effort.conflicts) == (2, 1)
    assert answer.decision.node != theirs[0].decision.node
    assert {entry["token"] for entry in stand.ledger()} == {answer.token, theirs[0].token}


def test_a_foreign_write_on_the_lock_claim_costs_an_attempt_and_nothing_else(stand: Stand) -> None:
    foreign = {"metadata": {"annotations": {"other.io/key": "value"}}}
    stand.door.happens(SWAP, partial(stand.patch, CLAIMS, LOCK, foreign))
    assert ask(stand).only.effort.conflicts == 1
    assert stand.annotations_of(LOCK)["other.io/key"] == "value"


@pytest.mark.parametrize("erased", [LOCK, SECOND])
def test_a_record_that_is_gone_before_the_confirmation_is_written_anew(erased: str, stand: Stand) -> None:
    def erase() -> None:
        annotations = dict.fromkeys(stand.annotations_of(erased))
        stand.patch(CLAIMS, erased, {"metadata": {"annotations": annotations}})

    stand.door.happens(SECOND_WRITE, erase, after=True)
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.effort.attempts) == (Outcome.PINNED, 2)
    assert [entry["token"] for entry in stand.ledger()] == [answer.token]
    assert stand.seconds() == [(SECOND, answer.token)]


def test_an_answer_waits_for_an_entry_whose_writer_may_not_have_seen_it(stand: Stand) -> None:
    entry = {
        "v": 1,
        "token": "strangers1",
        "member": "db-tikv-2",
        "claim": "u",
        "node": "n9",
        "domain": "n9",
        "key": keys.HOSTNAME,
        "time": START,
    }
    strange = {"metadata": {"annotations": {keys.ENTRY_PREFIX + "strangers1": json.dumps(entry)}}}
    stand.door.happens(SECOND_WRITE, partial(stand.patch, CLAIMS, SECOND, strange), after=True)
    answer = ask(stand).only
    assert (answer.effort.attempts, answer.decision.counts) == (2, {"n9": 1})


# --- errors


@pytest.mark.parametrize("call", [*READS, SWAP, SECOND_WRITE])
def test_what_is_forbidden_is_the_guard_at_once_with_the_verb_named(call: str, stand: Stand) -> None:
    verb, resource = call.split()[:2]
    stand.door.fails(call, Forbidden(verb, resource, status=403))
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.decision.cause) == (Outcome.GUARDED, Cause.API_FORBIDDEN)
    assert answer.decision.detail == f"not allowed to {verb} {resource}"
    assert (answer.effort.attempts, answer.token, stand.clock.pauses) == (1, "", [])


@pytest.mark.parametrize("call", [*READS, SWAP, SECOND_WRITE])
def test_an_api_server_that_forbids_what_it_allowed_before_has_just_started_and_is_asked_again(
    call: str, stand: Stand
) -> None:
    first = stand.admit(a_pod())
    verb, resource = call.split()[:2]
    stand.door.fails(call, Forbidden(verb, resource, status=403), times=6)
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.outcome, answer.effort.attempts) == (Outcome.PINNED, 7)
    assert answer.decision.node != first.node


def test_what_stays_forbidden_until_no_time_is_left_is_told_as_such(stand: Stand) -> None:
    """Not as a failure of the API server: it is the role that has to be mended."""
    ask(stand)
    stand.door.fails(SWAP, Forbidden("patch", PVC, status=403))
    asked = ask(stand, "db-tikv-1", budgets=(3.0,))
    assert asked.brief == (Outcome.GUARDED, Cause.API_FORBIDDEN)
    assert asked.only.decision.detail == f"not allowed to patch {PVC}"


def test_what_stays_forbidden_that_was_allowed_before_is_the_guard_after_three_seconds(stand: Stand) -> None:
    stand.admit(a_pod())
    stand.door.fails(SWAP, Forbidden("patch", PVC, status=403))
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.cause, answer.decision.detail) == (Cause.API_FORBIDDEN, f"not allowed to patch {PVC}")
    assert stand.clock.pauses == [0.5] * 6


def test_a_swap_that_the_api_server_calls_invalid_is_the_guard_at_once(stand: Stand) -> None:
    stand.door.fails(SWAP, Invalid("patch", PVC, LOCK, status=422, detail="Too long"))
    answer = ask(stand).only
    assert (answer.decision.cause, answer.effort.attempts) == (Cause.API_TROUBLE, 1)
    assert "Too long" in answer.decision.detail


@pytest.mark.parametrize("error", [Invalid("patch", PVC, status=422), NotFound("patch", PVC, status=404)])
def test_a_second_record_for_a_claim_that_is_another_by_now_is_decided_anew(error: Exception, stand: Stand) -> None:
    stand.door.fails(SECOND_WRITE, error, times=1)
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.effort.attempts, answer.effort.conflicts) == (Outcome.PINNED, 2, 1)


def test_a_lock_claim_that_is_gone_is_a_lost_swap(stand: Stand) -> None:
    stand.door.happens(SWAP, partial(stand.delete, CLAIMS, LOCK))
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.outcome, answer.effort.conflicts) == (Outcome.PINNED, 1)
    assert SECOND in stand.records()


def test_a_stateful_set_that_is_not_there_is_the_guard_at_once() -> None:
    answer = ask(Stand(*nodes(), *claims(3))).only
    assert (answer.decision.cause, answer.effort.attempts) == (Cause.API_TROUBLE, 1)
    assert "statefulsets" in answer.decision.detail


@pytest.mark.parametrize("call", [*READS, SWAP, SECOND_WRITE])
def test_a_round_waits_as_long_as_it_is_asked_to(call: str, stand: Stand) -> None:
    stand.door.fails(call, TooManyRequests(*call.split()[:2], retry_after=2.0), times=2)
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.effort.attempts) == (Outcome.PINNED, 3)
    assert stand.clock.pauses == [2.0, 2.0]


def test_a_round_that_is_asked_to_wait_too_long_waits_no_longer_than_its_budget(stand: Stand) -> None:
    stand.door.fails(f"list {PVC}", TooManyRequests("list", PVC, retry_after=60.0))
    assert ask(stand).brief == (Outcome.GUARDED, Cause.API_TROUBLE)
    assert stand.clock.monotonic() <= BUDGET - LEAST_LEFT + 2 * stand.door.costs


@pytest.mark.parametrize("call", [*READS, SWAP, SECOND_WRITE])
def test_an_unknown_outcome_is_decided_anew(call: str, stand: Stand) -> None:
    stand.door.fails(call, UnknownOutcome(*call.split()[:2]), times=2)
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.effort.attempts, answer.effort.unknown) == (Outcome.PINNED, 3, 2)
    assert [entry["token"] for entry in stand.ledger()] == [answer.token]
    assert [token for _, token in stand.seconds()] == [answer.token]


@pytest.mark.parametrize("call", [SWAP, SECOND_WRITE])
def test_a_write_that_was_applied_although_its_answer_is_lost_holds_no_second_node(call: str, stand: Stand) -> None:
    def lost() -> None:
        raise UnknownOutcome("patch", PVC, detail="answer lost")

    stand.door.happens(call, lost, after=True)
    answer = ask(stand).only
    assert answer.decision.outcome is Outcome.PINNED
    assert [entry["token"] for entry in stand.ledger()] == [answer.token]
    assert [token for _, token in stand.seconds()] == [answer.token]


def test_trouble_that_does_not_end_is_the_guard_that_names_it_and_one_line_in_the_log(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "webhook.locking")
    stand.door.fails(f"list {PVC}", UnknownOutcome("list", PVC, detail="connection refused"))
    asked = ask(stand)
    assert asked.brief == (Outcome.GUARDED, Cause.API_TROUBLE)
    assert "connection refused" in asked.only.decision.detail
    assert asked.only.effort.unknown > 2
    assert len([record for record in caplog.records if record.name.startswith("webhook.locking")]) == 1


def test_trouble_that_ended_is_not_what_a_later_guard_is_for(stand: Stand) -> None:
    stand.door.fails(f"list {PVC}", UnknownOutcome("list", PVC), times=1)
    stand.door.fails(SWAP, Conflict("patch", PVC))
    assert ask(stand).brief == (Outcome.GUARDED, Cause.BUDGET_USED_UP)


def test_a_pod_in_trouble_is_guarded_by_the_groups_own_topology_key_once_that_is_known() -> None:
    stand = Stand(*a_v1_world(topology_key="rack"))
    for number in (1, 2, 3):
        stand.patch(NODES, f"n{number}", {"metadata": {"labels": {"rack": f"r{number}"}}})
    stand.door.fails(SWAP, Forbidden("patch", PVC, status=403))
    assert ask(stand).only.decision.topology_key == "rack"


# --- budget


def test_a_request_with_less_than_a_second_left_gets_the_guard_and_nobody_is_asked(stand: Stand) -> None:
    assert ask(stand, budgets=(0.99,)).brief == (Outcome.GUARDED, Cause.BUDGET_USED_UP)
    assert stand.door.calls == []


def test_a_request_with_less_than_a_second_left_is_not_in_the_swap_of_the_others(stand: Stand) -> None:
    asked = ask(stand, "db-tikv-0", "db-tikv-1", budgets=(0.99, BUDGET))
    assert asked.answers["db-tikv-0"].decision.cause is Cause.BUDGET_USED_UP
    assert asked.answers["db-tikv-1"].decision.outcome is Outcome.PINNED
    assert [entry["member"] for entry in stand.ledger()] == ["db-tikv-1"]


@pytest.mark.parametrize("call", ["list nodes", SWAP])
def test_no_write_is_sent_with_less_than_a_second_left(call: str, stand: Stand) -> None:
    def passes() -> None:
        stand.clock.elapsed += BUDGET - 0.5

    stand.door.happens(call, passes, after=True)
    asked = ask(stand)
    assert asked.brief == (Outcome.GUARDED, Cause.BUDGET_USED_UP)
    assert stand.door.writes == ([SWAP] if call == SWAP else [])
    assert asked.only.token == ""


def test_one_of_two_deadlines_in_a_round_ends_nothing_for_the_other(stand: Stand) -> None:
    def passes() -> None:
        stand.clock.elapsed += 3.0
        raise UnknownOutcome("list", "pods")

    stand.door.happens("list pods", passes)
    asked = ask(stand, "db-tikv-0", "db-tikv-1", budgets=(3.5, BUDGET))
    assert list(asked.answers) == ["db-tikv-0", "db-tikv-1"]
    assert asked.answers["db-tikv-0"].decision.cause is Cause.API_TROUBLE
    assert asked.answers["db-tikv-1"].decision.outcome is Outcome.PINNED
    assert [entry["member"] for entry in stand.ledger()] == ["db-tikv-1"]


def test_waiting_never_reaches_into_the_last_second(stand: Stand) -> None:
    stand.door.fails(f"list {PVC}", Conflict("patch", PVC, status=409))
    ask(stand)
    assert BUDGET - LEAST_LEFT < stand.clock.monotonic() < BUDGET - LEAST_LEFT + 2 * stand.door.costs


# --- the own claim


def test_an_own_claim_that_is_not_there_yet_is_waited_for() -> None:
    stand = Stand(*nodes(), a_set(), a_claim(LOCK))
    left = iter(range(3))

    def appears() -> None:
        if next(left, None) is None and f"{SECOND}" not in stand.records():
            made = a_claim(SECOND)
            stand.door.before.clear()
            stand.cluster.create(CLAIMS, made, namespace=SPACE, timeout=1)

    stand.door.before[f"list {PVC}"] = appears
    assert ask(stand, "db-tikv-1").brief == PINNED
    assert 0 < stand.clock.monotonic() < YOUNG_CLAIM


def test_an_own_claim_that_does_not_come_is_the_guard_after_a_second() -> None:
    stand = Stand(*nodes(), a_set(), a_claim(LOCK))
    assert ask(stand, "db-tikv-1").brief == (Outcome.GUARDED, Cause.NO_LOCK_CLAIM)
    assert YOUNG_CLAIM <= stand.clock.monotonic() < 2 * YOUNG_CLAIM
    assert stand.records() == {}


def test_a_member_whose_claim_is_not_there_yet_does_not_hold_up_the_others() -> None:
    stand = Stand(*nodes(), a_set(), a_claim(LOCK))
    asked = ask(stand, "db-tikv-1", "db-tikv-0")
    assert list(asked.answers) == ["db-tikv-0", "db-tikv-1"]
    assert [answer.decision.outcome for answer in asked.answers.values()] == [Outcome.PINNED, Outcome.GUARDED]
    assert asked.answers["db-tikv-0"].effort.attempts == 1


def test_an_own_claim_that_is_being_deleted_is_the_guard_at_once() -> None:
    going = a_claim(SECOND, finalizers=["kubernetes.io/pvc-protection"], deletionTimestamp="2026-01-01T00:00:00Z")
    stand = Stand(*nodes(), a_set(), a_claim(LOCK), going)
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.cause, answer.effort.attempts) == (Cause.NO_LOCK_CLAIM, 1)


@pytest.mark.parametrize("claim", ["", LOCK], ids=["no claim", "a claim without the labels"])
def test_a_group_without_a_labelled_claim_is_the_guard(claim: str) -> None:
    made = [a_claim(claim, {})] if claim else []
    stand = Stand(*nodes(), a_set(), *made)
    assert ask(stand, a_pod(claim=claim)).brief == (Outcome.GUARDED, Cause.NO_LOCK_CLAIM)
    assert stand.door.writes == []


def test_a_pod_without_a_claim_of_its_own_is_placed_by_its_groups_lock(stand: Stand) -> None:
    assert ask(stand, a_pod(claim="")).brief == PINNED


def test_an_own_claim_that_is_made_anew_during_the_round_leaves_it_and_the_others_go_on(stand: Stand) -> None:
    def made_anew() -> None:
        stand.delete(CLAIMS, "tikv-db-tikv-2")
        # Younger than the lock claim, as it is.
        stand.cluster.create(CLAIMS, a_claim("tikv-db-tikv-2"), namespace=SPACE, timeout=1)

    stand.door.happens(SECOND_WRITE, made_anew)
    asked = ask(stand, "db-tikv-1", "db-tikv-2")
    first, second = asked.answers["db-tikv-1"], asked.answers["db-tikv-2"]
    assert (first.effort.attempts, second.effort.attempts) == (1, 2)
    assert (first.decision.outcome, second.decision.outcome) == (Outcome.PINNED, Outcome.PINNED)
    uid = stand.cluster.get(CLAIMS, "tikv-db-tikv-2", namespace=SPACE, timeout=1)["metadata"]["uid"]
    assert {entry["claim"] for entry in stand.ledger() if entry["token"] == second.token} == {uid}
    assert first.decision.node != second.decision.node


def test_an_own_claim_that_is_deleted_during_the_round_is_the_guard_for_its_member_alone(stand: Stand) -> None:
    stand.door.happens(SECOND_WRITE, partial(stand.delete, CLAIMS, "tikv-db-tikv-2"))
    asked = ask(stand, "db-tikv-1", "db-tikv-2")
    assert asked.answers["db-tikv-1"].decision.outcome is Outcome.PINNED
    assert asked.answers["db-tikv-2"].decision.cause is Cause.NO_LOCK_CLAIM


def test_another_lock_claim_at_the_confirmation_sends_everybody_back() -> None:
    stand = Stand(*a_v1_world(), a_volume("disk", "n1"))
    bind = {"spec": {"volumeName": "disk"}, "status": {"phase": "Bound"}}
    stand.door.happens(SECOND_WRITE, partial(stand.patch, CLAIMS, "tikv-db-tikv-2", bind), after=True)
    answer = ask(stand).only
    assert answer.effort.attempts == 2
    assert keys.LOCK in stand.records()["tikv-db-tikv-2"]


IMMEDIATE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "at-once"},
    "provisioner": "example.test/disks",
    "volumeBindingMode": "Immediate",
}


def at_the_fourth_look(stand: Stand, change: Callable[[], None]) -> None:
    """Let something change just before the claims are listed for the fourth time."""
    looks = iter(range(3))

    def look() -> None:
        if next(looks, None) is None:
            stand.door.before.clear()
            change()

    stand.door.before[f"list {PVC}"] = look


def take_away(stand: Stand, token: str) -> None:
    """What the writer of a second record does whose attempt was lost."""
    stand.patch(CLAIMS, SECOND, {"metadata": {"annotations": {keys.ENTRY_PREFIX + token: None}}})


def an_immediate_stand() -> Stand:
    made = [a_claim(f"tikv-db-tikv-{ordinal}") for ordinal in range(2)]
    for claim in made:
        claim["spec"]["storageClassName"] = "at-once"
    volume = a_volume("pv-1", "n2")
    volume["spec"]["storageClassName"] = "at-once"
    return Stand(*nodes(), a_set(), IMMEDIATE, volume, *made)


def test_a_claim_of_a_class_that_binds_at_once_is_waited_for_and_its_volume_followed() -> None:
    stand = an_immediate_stand()
    bound = {"spec": {"volumeName": "pv-1"}, "status": {"phase": "Bound"}}
    at_the_fourth_look(stand, partial(stand.patch, CLAIMS, SECOND, bound))
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.outcome, answer.decision.node) == (Outcome.PINNED, "n2")
    assert 0 < stand.clock.monotonic() < UNBOUND_CLAIM


def test_a_claim_of_a_class_that_binds_at_once_and_does_not_is_the_guard_after_two_seconds() -> None:
    stand = an_immediate_stand()
    assert ask(stand, "db-tikv-1").brief == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert UNBOUND_CLAIM <= stand.clock.monotonic() < UNBOUND_CLAIM + 1


def test_a_claim_that_names_its_volume_before_it_is_bound_is_waited_for_where_it_would_mean_the_guard() -> None:
    beside = [a_claim(LOCK, volume="pv-0"), a_volume("pv-0", "n2"), a_volume("pv-1", "n2")]
    claim = a_claim(SECOND) | {"status": {"phase": "Pending"}}
    claim["spec"]["volumeName"] = "pv-1"
    stand = Stand(*nodes(), a_set(), *beside, claim, a_claim("tikv-db-tikv-2"), a_pod(nodeName="n2"))
    at_the_fourth_look(stand, partial(stand.patch, CLAIMS, SECOND, {"status": {"phase": "Bound"}}))
    answer = ask(stand, "db-tikv-1").only
    assert (answer.decision.outcome, answer.decision.node) == (Outcome.RETURNED, "n2")
    assert 0 < stand.clock.monotonic() < UNBOUND_CLAIM


def recorded(token: str, member: str, node: str, time: int = START) -> dict[str, str]:
    """The second record of another replica's entry."""
    entry = {"v": 1, "token": token, "member": member, "claim": f"uid-{member}", "node": node, "domain": node}
    return {keys.ENTRY_PREFIX + token: json.dumps({**entry, "key": keys.HOSTNAME, "time": time})}


def a_full_stand(time: int = START) -> Stand:
    """Three nodes for three members, of which one holds two: its entry of a lost attempt is not taken away yet."""
    made = claims()
    made[1]["metadata"]["annotations"] = {
        **recorded("rival0001", "db-tikv-1", "n1"),
        **recorded("rival0002", "db-tikv-2", "n2", time),
        **recorded("rival0003", "db-tikv-2", "n3"),
    }
    return Stand(*nodes(), a_set(), *made)


def test_a_pod_without_a_place_waits_for_a_sibling_that_holds_two_to_be_decided_anew() -> None:
    stand = a_full_stand()
    at_the_fourth_look(stand, partial(take_away, stand, "rival0003"))
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.decision.node) == (Outcome.PINNED, "n3")
    assert stand.clock.monotonic() < BUDGET / 2


def test_a_sibling_that_was_decided_anew_and_is_seen_already_is_waited_for_too() -> None:
    stand = a_full_stand()
    take_away(stand, "rival0002")
    stand.cluster.admit(a_pod("db-tikv-2", nodeName="n2"), namespace=SPACE)
    at_the_fourth_look(stand, partial(take_away, stand, "rival0003"))
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.decision.node) == (Outcome.PINNED, "n3")


def test_a_sibling_that_goes_on_holding_two_places_is_waited_for_half_the_budget() -> None:
    stand = a_full_stand()
    assert ask(stand).brief == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert BUDGET / 2 <= stand.clock.monotonic() < BUDGET / 2 + 1


def test_a_place_that_was_taken_longer_ago_than_any_admission_lasts_is_not_waited_for() -> None:
    stand = a_full_stand(time=START - LONGEST_ADMISSION - 1)
    assert ask(stand).brief == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert stand.clock.monotonic() < 1


def test_a_set_of_one_without_a_claim_is_not_touched() -> None:
    stand = Stand(*nodes(), a_set(replicas=1))
    assert ask(stand, a_pod(claim="")).brief == (Outcome.UNTOUCHED, Cause.SET_OF_ONE)


def test_without_a_claim_the_guard_keeps_to_the_groups_topology_key_and_its_options() -> None:
    options = {keys.PREFIX + keys.TOPOLOGY_KEY: ZONE, keys.PREFIX + keys.WHEN_UNPLACEABLE: "Deny"}
    cluster = an_object(TIDB_CLUSTERS, "db", annotations=options)
    stand = Stand(*nodes(), a_set(), cluster)
    answer = ask(stand, a_pod(claim="")).only
    assert (answer.decision.cause, answer.decision.topology_key) == (Cause.NO_LOCK_CLAIM, ZONE)
    assert answer.options.when_unplaceable is WhenUnplaceable.DENY


def test_without_a_claim_skip_on_the_cluster_object_holds() -> None:
    skip = an_object(TIDB_CLUSTERS, "db", annotations={keys.PREFIX + keys.SKIP: "true"})
    admission = Stand(*nodes(), a_set(), skip)
    assert admission.review(a_pod(claim="")).outcome == "untouched"


def test_a_swap_that_is_forbidden_guards_by_the_groups_topology_key() -> None:
    options = {keys.PREFIX + keys.TOPOLOGY_KEY: ZONE}
    world = [a for a in a_v1_world() if a["kind"] != "TidbCluster"]
    stand = Stand(*world, an_object(TIDB_CLUSTERS, "db", annotations=options))
    stand.door.fails(SWAP, Forbidden("patch", PVC, LOCK, status=403))
    decision = ask(stand).only.decision
    assert decision.topology_key == ZONE


def test_an_own_claim_of_an_ephemeral_volume_is_not_waited_for(stand: Stand) -> None:
    pod = a_pod()
    template = {"spec": {"storageClassName": "local"}}
    pod["spec"]["volumes"].append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}})
    assert ask(stand, pod).brief == PINNED
    assert stand.clock.monotonic() < YOUNG_CLAIM
