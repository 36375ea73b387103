"""A round over the embedded cluster: what it does when calls fail, time runs out, claims change, records are odd."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from cluster_objects import SPACE, a_claim, a_node, a_pod, a_set, a_v1_world, a_volume, claims, labels_v1, nodes
from hypothesis import given, settings
from hypothesis import strategies as st
from stand import BUDGET, EXPIRY, START, Replica, Stand

from webhook.cluster.door import CLAIMS, NODES, PODS, Manifest
from webhook.core import keys
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Cause, Group, Outcome, Placing
from webhook.deadline import Deadline
from webhook.errors import Conflict, Forbidden, Invalid, NotFound, OutOfTime, TooManyRequests, UnknownOutcome
from webhook.locking.protocol import Answer, Request
from webhook.locking.round import YOUNG_CLAIM, Round
from webhook.locking.waiting import LEAST_LEFT

PVC = "persistentvolumeclaims"
# Which claim is the lock, and which holds the second record, in the world of these tests.
LOCK, SECOND = "tikv-db-tikv-0", "tikv-db-tikv-1"
SWAP, SECOND_WRITE = f"patch {PVC} {LOCK}", f"patch {PVC} {SECOND}"
READS = [f"list {PVC}", "list pods", "get statefulsets db-tikv", "list nodes"]


@dataclass
class Asked:
    """A round that has been run: its answers by member, in the order in which they were given."""

    answers: dict[str, Answer] = field(default_factory=dict)

    def take(self, request: Request, answer: Answer) -> None:
        assert request.member not in self.answers, "answered twice"
        self.answers[request.member] = answer

    @property
    def only(self) -> Answer:
        [answer] = self.answers.values()
        return answer

    @property
    def brief(self) -> tuple[Outcome, Cause]:
        return self.only.decision.outcome, self.only.decision.cause


def group_of(pod: Manifest) -> Group:
    group = recognise(pod_from(pod, namespace=SPACE)).group
    assert group is not None
    return group


def ask(replica: Replica, *pods: Manifest | str, budgets: tuple[float, ...] = (), writes: bool = True) -> Asked:
    """Run one round for pods, or for members by name; all have BUDGET seconds unless `budgets` says else."""
    asked = Asked()
    now = replica.clock.monotonic()
    manifests = [a_pod(pod) if isinstance(pod, str) else pod for pod in pods or ("db-tikv-0",)]
    requests = [
        Request(Placing(pod_from(pod, namespace=SPACE)), Deadline.after(budget, replica.clock.monotonic), now)
        for pod, budget in zip(manifests, budgets or itertools.repeat(BUDGET), strict=False)
    ]
    Round(group_of(manifests[0]), requests, replica.tools, asked.take, writes=writes).run()
    assert asked.answers.keys() == {request.member for request in requests}
    return asked


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
    assert ask(stand).brief == (Outcome.GUARDED, Cause.BUDGET_USED_UP)
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


def test_trouble_that_does_not_end_is_the_guard_when_the_budget_is_used_up(stand: Stand) -> None:
    stand.door.fails(f"list {PVC}", UnknownOutcome("list", PVC))
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
    assert asked.answers["db-tikv-0"].decision.cause is Cause.BUDGET_USED_UP
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


# --- records


def record(claim: str, token: str, *, time: int = START, member: str = "db-tikv-9", **changes: Any) -> Manifest:
    """A patch that puts a second record on a claim."""
    entry = {
        "v": 1,
        "token": token,
        "member": member,
        "claim": "gone",
        "node": "n3",
        "domain": "n3",
        "key": keys.HOSTNAME,
        "time": time,
        **changes,
    }
    return {"metadata": {"annotations": {keys.ENTRY_PREFIX + token: json.dumps(entry)}}}


def test_a_record_of_a_newer_format_is_the_guard_until_it_has_stood_for_one_expiry(stand: Stand) -> None:
    newer = json.dumps({"v": 2, "anything": []})
    stand.patch(CLAIMS, LOCK, {"metadata": {"annotations": {keys.LOCK: newer}}})
    assert ask(stand).brief == (Outcome.GUARDED, Cause.NEWER_FORMAT)
    stand.clock.elapsed += EXPIRY - 1
    assert ask(stand).brief == (Outcome.GUARDED, Cause.NEWER_FORMAT)
    assert stand.annotations_of(LOCK)[keys.LOCK] == newer
    stand.clock.elapsed += 2
    assert ask(stand).brief == PINNED
    assert json.loads(stand.annotations_of(LOCK)[keys.LOCK])["v"] == 1


def test_a_record_of_a_newer_format_that_changes_is_respected_anew(stand: Stand) -> None:
    for _ in range(3):
        newer = json.dumps({"v": 2, "at": stand.clock.elapsed})
        stand.patch(CLAIMS, LOCK, {"metadata": {"annotations": {keys.LOCK: newer}}})
        assert ask(stand).brief == (Outcome.GUARDED, Cause.NEWER_FORMAT)
        stand.clock.elapsed += EXPIRY - 1


RUBBISH = [
    "",
    "null",
    "[]",
    "{",
    '{"v":1}',
    '{"v":1,"entries":[{}]}',
    '{"v":"1","entries":[]}',
    "\N{GRINNING FACE}",
    "x" * 5000,
]


@pytest.mark.parametrize("value", RUBBISH, ids=range(len(RUBBISH)))
def test_rubbish_in_the_ledger_is_replaced_at_the_next_swap(value: str, stand: Stand) -> None:
    stand.patch(CLAIMS, LOCK, {"metadata": {"annotations": {keys.LOCK: value}}})
    answer = ask(stand).only
    assert (answer.decision.outcome, answer.effort.attempts) == (Outcome.PINNED, 1)
    assert [entry["token"] for entry in stand.ledger()] == [answer.token]


def test_a_ledger_that_is_rubbish_is_lost_and_the_second_records_hold_what_was_in_it(stand: Stand) -> None:
    first = ask(stand).only
    stand.patch(CLAIMS, LOCK, {"metadata": {"annotations": {keys.LOCK: "{"}}})
    second = ask(stand.another(), "db-tikv-1").only
    assert second.decision.node != first.decision.node
    assert {entry["token"] for entry in stand.ledger()} == {first.token, second.token}


def test_rubbish_among_the_second_records_is_ignored_and_stays(stand: Stand) -> None:
    odd = {keys.ENTRY_PREFIX + "odd00000": "{", keys.ENTRY_PREFIX: "x"}
    stand.patch(CLAIMS, SECOND, {"metadata": {"annotations": odd}})
    assert ask(stand).brief == PINNED
    assert odd.items() <= stand.annotations_of(SECOND).items()


def test_an_entry_ends_when_it_is_older_than_the_expiry_and_its_records_go(stand: Stand) -> None:
    abandoned = ask(stand).only
    stand.clock.elapsed += EXPIRY + 1
    asked = ask(stand, "db-tikv-1").only
    assert [entry["token"] for entry in stand.ledger()] == [asked.token]
    assert abandoned.token not in {token for _, token in stand.seconds()}


def test_second_records_that_are_over_go_on_the_claims_that_are_written_anyway_only(stand: Stand) -> None:
    old = START - int(EXPIRY) - 1
    for number, claim in enumerate((LOCK, SECOND, "tikv-db-tikv-2")):
        stand.patch(CLAIMS, claim, record(claim, f"old0000{number}", time=old))
    token = ask(stand, "db-tikv-1").only.token
    assert stand.seconds() == [(SECOND, token), ("tikv-db-tikv-2", "old00002")]


def test_an_entry_ends_when_its_pod_is_seen_with_its_token(stand: Stand) -> None:
    first = stand.admit(a_pod())
    ask(stand, "db-tikv-1")
    assert first.record["token"] not in {entry["token"] for entry in stand.ledger()}


def test_an_entry_does_not_end_with_an_older_pod_of_its_name(stand: Stand) -> None:
    stand.cluster.admit(a_pod(nodeName="n1"), namespace=SPACE)
    going = ask(stand).only
    other = ask(stand, "db-tikv-1").only
    assert going.token in {entry["token"] for entry in stand.ledger()}
    assert other.decision.node not in ("n1", going.decision.node)


def test_a_member_that_asks_again_gets_its_node_again_and_one_entry(stand: Stand) -> None:
    first, second = ask(stand).only, ask(stand.another()).only
    assert (second.decision.node, second.live_tokens) == (first.decision.node, {first.token})
    assert [entry["token"] for entry in stand.ledger()] == [second.token]


def test_a_member_that_gets_another_node_holds_both_until_the_first_is_over(stand: Stand) -> None:
    first = ask(stand).only
    stand.patch(NODES, first.decision.node, {"spec": {"unschedulable": True}})
    second = ask(stand).only
    assert {entry["node"] for entry in stand.ledger()} == {first.decision.node, second.decision.node}
    assert ask(stand, "db-tikv-1").only.decision.node not in (first.decision.node, second.decision.node)


def test_a_record_from_the_future_is_judged_by_how_long_it_has_been_known(stand: Stand) -> None:
    stand.patch(CLAIMS, SECOND, record(SECOND, "future00", time=START + 10**6))
    assert ask(stand).only.decision.counts == {"n3": 1}
    stand.clock.elapsed += EXPIRY + 1
    assert "n3" not in ask(stand, "db-tikv-1").only.decision.counts


def test_the_records_of_an_entry_that_this_process_gave_are_not_needed_by_itself(stand: Stand) -> None:
    first = ask(stand).only
    for claim in (LOCK, SECOND):
        stand.patch(CLAIMS, claim, {"metadata": {"annotations": dict.fromkeys(stand.annotations_of(claim))}})
    second = ask(stand, "db-tikv-1").only
    assert second.decision.node != first.decision.node
    assert {entry["token"] for entry in stand.ledger()} == {first.token, second.token}


# --- looking


@pytest.mark.parametrize("members", [("db-tikv-0",), ("db-tikv-0", "db-tikv-1", "db-tikv-2")])
def test_a_look_decides_and_writes_and_remembers_nothing(members: tuple[str, ...], stand: Stand) -> None:
    asked = ask(stand, *members, writes=False)
    assert {answer.decision.outcome for answer in asked.answers.values()} == {Outcome.PINNED}
    assert {answer.token for answer in asked.answers.values()} == {""}
    assert (stand.door.writes, stand.records()) == ([], {})
    assert stand.memory.answers(group_of(a_pod())) == {}


def test_a_look_tells_the_members_live_tokens(stand: Stand) -> None:
    token = ask(stand).only.token
    assert ask(stand, writes=False).only.live_tokens == {token}
    assert ask(stand, "db-tikv-1", writes=False).only.live_tokens == frozenset()


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Forbidden("list", "pods", status=403), Cause.API_FORBIDDEN),
        (NotFound("list", "pods", status=404), Cause.API_TROUBLE),
        (UnknownOutcome("list", "pods"), Cause.BUDGET_USED_UP),
        (OutOfTime("late"), Cause.BUDGET_USED_UP),
    ],
)
def test_a_look_in_trouble_is_the_guard_too(error: Exception, cause: Cause, stand: Stand) -> None:
    stand.door.fails("list pods", error)
    assert ask(stand, writes=False).brief == (Outcome.GUARDED, cause)


def test_a_guard_or_a_set_of_one_writes_nothing() -> None:
    full = Stand(*a_v1_world(node_count=1))
    full.cluster.admit(a_pod("db-tikv-1", nodeName="n1"), namespace=SPACE)
    single = Stand(*a_v1_world(replicas=1))
    assert ask(full).brief == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert ask(single).brief == (Outcome.UNTOUCHED, Cause.SET_OF_ONE)
    assert (full.door.writes, single.door.writes) == ([], [])


# --- size

Step = Callable[[Stand], object]


def asks(ordinal: int) -> Step:
    return lambda stand: ask(stand, f"db-tikv-{ordinal}")


def admits(ordinal: int) -> Step:
    return lambda stand: stand.admit(a_pod(f"db-tikv-{ordinal}"))


def cordons(number: int) -> Step:
    return lambda stand: stand.patch(NODES, f"n{number}", {"spec": {"unschedulable": True}})


def frees(number: int) -> Step:
    return lambda stand: stand.patch(NODES, f"n{number}", {"spec": {"unschedulable": None}})


def passes(seconds: int) -> Step:
    def step(stand: Stand) -> None:
        stand.clock.elapsed += seconds

    return step


STEPS = st.one_of(
    st.integers(0, 4).map(asks),
    st.integers(0, 4).map(admits),
    st.integers(1, 6).map(cordons),
    st.integers(1, 6).map(frees),
    st.integers(1, 200).map(passes),
)


@given(st.lists(STEPS, max_size=25))
@settings(max_examples=40, deadline=None)
def test_the_records_are_bounded_by_what_may_be_in_flight(steps: list[Step]) -> None:
    stand = Stand(*a_v1_world(replicas=5, node_count=6))
    for step in steps:
        step(stand)
    live = stand.ledger()
    # A member holds at most one entry for each node that it was sent to within one expiry.
    assert len({(entry["member"], entry["node"]) for entry in live}) == len(live)
    assert len(live) <= 5 * 6
    passes(int(EXPIRY) + 1)(stand)
    for ordinal in range(5):
        ask(stand, f"db-tikv-{ordinal}")
    assert len(stand.ledger()) <= 5
    assert len(json.dumps(stand.records())) < 5 * 5 * 400


def test_names_of_any_length_fit() -> None:
    name = f"{'c' * 246}-tikv-0"
    long = Stand(*[a_node("n" * 253)], a_set(cluster="c" * 246), a_claim("p" * 253, labels_v1("tikv", "db")))
    answer = ask(long, a_pod(name, claim="p" * 253)).only
    assert (answer.decision.outcome, answer.decision.node) == (Outcome.PINNED, "n" * 253)
    assert len(long.annotations_of("p" * 253)[keys.LOCK]) < 2048


def test_a_pod_with_twenty_claims_is_placed() -> None:
    names = [f"disk{number}-db-tikv-0" for number in range(20)]
    stand = Stand(*nodes(), a_set(), *[a_claim(name) for name in names])
    pod = a_pod(volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names])
    assert ask(stand, pod).brief == PINNED
    assert len(stand.records()) == 2


def test_a_pod_of_the_group_that_is_made_meanwhile_is_seen_at_the_next_attempt(stand: Stand) -> None:
    def appears() -> None:
        stand.cluster.admit(a_pod("db-tikv-1", nodeName="n2"), namespace=SPACE)
        raise Conflict("patch", PVC, LOCK, status=409)

    stand.door.happens(SWAP, appears)
    assert ask(stand).only.decision.counts == {"n2": 1}
    assert stand.cluster.get(PODS, "db-tikv-1", namespace=SPACE, timeout=1)["spec"]["nodeName"] == "n2"
