"""A round and its records: odd ones, old ones, newer ones; how they end, and that they stay few."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cluster_objects import SPACE, a_claim, a_node, a_pod, a_set, a_v1_world, labels_v1, nodes
from hypothesis import given, settings
from hypothesis import strategies as st
from locking.asking import LOCK, PVC, SECOND, SWAP, ask, group_of
from stand import EXPIRY, START, Stand

from webhook.cluster.door import CLAIMS, NODES, PODS, Manifest
from webhook.core import keys
from webhook.core.outcomes import Cause, Outcome
from webhook.errors import Conflict, Forbidden, NotFound, OutOfTime, UnknownOutcome


@pytest.fixture
def stand() -> Stand:
    return Stand(*a_v1_world())


PINNED = (Outcome.PINNED, Cause.NONE)


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


def write_ledger(stand: Stand, token: str, node: str) -> None:
    """Another replica's only entry: for the pod that is asked for here."""
    claim = stand.cluster.get(CLAIMS, LOCK, namespace=SPACE, timeout=1)["metadata"]["uid"]
    entry = {"token": token, "member": "db-tikv-0", "claim": claim, "node": node, "domain": node}
    ledger = {"v": 1, "entries": [{**entry, "key": keys.HOSTNAME, "time": START}]}
    stand.patch(CLAIMS, LOCK, {"metadata": {"annotations": {keys.LOCK: json.dumps(ledger)}}})


def test_an_entry_that_its_writer_has_taken_away_is_not_put_back_by_an_attempt_whose_swap_was_refused(
    stand: Stand,
) -> None:
    """A create that is tried again while the webhook still works on the first try: two replicas decide for one pod."""
    write_ledger(stand, "rival0001", "n1")
    stand.door.happens(SWAP, lambda: write_ledger(stand, "rival0002", "n2"))
    answer = ask(stand).only
    assert (answer.decision.node, answer.effort.attempts) == ("n2", 2)
    assert [entry["token"] for entry in stand.ledger()] == [answer.token]


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


def test_rubbish_among_the_second_records_is_ignored_and_goes_with_the_next_write_there(stand: Stand) -> None:
    odd = {keys.ENTRY_PREFIX + "odd00000": "{"}
    stand.patch(CLAIMS, SECOND, {"metadata": {"annotations": odd}})
    assert ask(stand).brief == PINNED
    assert not odd.keys() & stand.annotations_of(SECOND).keys()


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
        (UnknownOutcome("list", "pods"), Cause.API_TROUBLE),
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
