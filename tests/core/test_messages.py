"""Warnings, events and refusals: short enough, the same each time, and saying what is wrong and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.messages import (
    EVENT_LIMIT,
    TEXTS,
    WARNING_LIMIT,
    Text,
    event_message,
    refusal,
    text_of,
    warning,
    warnings,
)
from webhook.core.model import Decision, Family, Group, MemberClass
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome

POD = Pod("db", "basic-tikv-0")
GROUP = Group("db", "basic", "tikv", Family.OPERATOR_V1, MemberClass.REPLICATED, ())
LONG_POD = Pod("n" * 63, "p" * 251 + "-7")
LONG_GROUP = Group("n" * 63, "c" * 253, "tikv", Family.OPERATOR_V1, MemberClass.REPLICATED, ())
QUIET = {Cause.NONE, Cause.GUARD_OPTION, Cause.SET_OF_ONE, Cause.SKIP_OPTION, Cause.NOT_A_MEMBER}

CROWDED: dict[str, Any] = {
    "replicas": 3,
    "cap": 1,
    "counts": {"n1": 1, "n2": 1, "n3": 0},
    "passed_over": {
        "n1": "domain n1 already holds 1",
        "n2": "Insufficient cpu",
        "n3": "node(s) were unschedulable",
        "n4": "node(s) were unschedulable",
    },
}


def guarded(cause: Cause, **fields: Any) -> Decision:
    return Decision(Outcome.GUARDED, cause, **fields)


def test_every_cause_has_its_texts() -> None:
    assert {key for key in TEXTS if isinstance(key, Cause)} == set(Cause) - {Cause.NONE}


@pytest.mark.parametrize("outcome", list(Outcome), ids=str)
@pytest.mark.parametrize("cause", list(Cause), ids=lambda cause: cause.name)
@pytest.mark.parametrize(
    ("pod", "group"), [(POD, GROUP), (LONG_POD, LONG_GROUP), (LONG_POD, None)], ids=["short", "long", "none"]
)
def test_warnings_and_events_fit_whatever_the_names_and_lose_nothing_that_is_said(
    outcome: Outcome, cause: Cause, pod: Pod, group: Group | None
) -> None:
    decision = Decision(outcome, cause, detail="d" * 2000, problems=("p" * 500,), **CROWDED)
    said, text = warning(decision, pod, group), text_of(decision)
    assert len(said) <= WARNING_LIMIT
    assert all(len(one) <= WARNING_LIMIT for one in warnings(decision, pod, group))
    message = event_message(decision, pod, group)
    assert len(message) <= EVENT_LIMIT
    if text is not None:
        assert said.endswith(text.short) or not text.warns
        assert message.endswith(text.advice)
        assert text.why in message


@pytest.mark.parametrize("cause", list(Cause), ids=lambda cause: cause.name)
def test_a_guard_is_warned_of_unless_it_was_asked_for(cause: Cause) -> None:
    assert (warning(guarded(cause), POD, GROUP) == "") == (cause in QUIET)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(
            guarded(Cause.NO_LOCK_CLAIM),
            "basic-tikv-0 of db/basic/tikv waits apart from its siblings: no claim to lock on; label its claims",
            id="guard",
        ),
        pytest.param(
            Decision(Outcome.RETURNED, above_cap=True),
            "basic-tikv-0 of db/basic/tikv returns to its data: its domain is above the cap; move a sibling",
            id="returned above the cap",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: "
            "no node there is possible now; repair or uncordon",
            id="returned and waiting",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING, Cause.REQUESTER_FIELDS),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: "
            "its own affinity leaves no way; see its event",
            id="returned and not pinned for a reason of its own",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING, Cause.GUARD_OPTION), "", id="returned, and asked not to be pinned"
        ),
        pytest.param(
            Decision(Outcome.UNTOUCHED, Cause.TIDB_SCHEDULER),
            "basic-tikv-0 of db/basic/tikv is left alone: tidb-scheduler places it; use one of the two",
            id="tidb-scheduler",
        ),
        pytest.param(
            Decision(Outcome.ADMITTED, Cause.API_TROUBLE),
            "basic-tikv-0 of db/basic/tikv is let in without a place: the API server failed; delete the pod to retry",
            id="Admit",
        ),
        pytest.param(Decision(Outcome.PINNED, node="n1"), "", id="a plain pin"),
        pytest.param(Decision(Outcome.UNCHANGED), "", id="asked again"),
    ],
)
def test_a_warning_names_pod_group_cause_and_what_to_do(decision: Decision, expected: str) -> None:
    assert warning(decision, POD, GROUP) == expected


def test_long_names_keep_their_beginning_and_their_end() -> None:
    said = warning(guarded(Cause.BUSY), LONG_POD, LONG_GROUP)
    pod, _, group = said.partition(" waits ")[0].partition(" of ")
    assert len(said) == WARNING_LIMIT
    assert pod.startswith("ppp")
    assert pod.endswith("-7")
    assert group.startswith("nnn")
    assert group.endswith("/tikv")


def test_a_short_name_leaves_its_room_to_a_long_one() -> None:
    said = warning(guarded(Cause.BUSY), POD, LONG_GROUP)
    assert said.startswith("basic-tikv-0 of nnn")
    assert len(said) == WARNING_LIMIT


def test_a_pod_of_no_group_is_named_with_its_namespace() -> None:
    said = warning(Decision(Outcome.UNTOUCHED, Cause.UNUSABLE_SELECTOR), POD, None)
    assert said == "basic-tikv-0 in db is left alone: its set's selector has no matchLabels; add some"


def test_a_pod_without_a_name_is_not_an_empty_name() -> None:
    assert event_message(Decision(Outcome.UNTOUCHED, Cause.NOT_A_MEMBER), Pod("db", ""), None).startswith(
        "a pod without a name in db is left alone: "
    )


def test_an_option_that_cannot_be_used_is_warned_of_on_one_line_also_beside_a_pin() -> None:
    decision = Decision(Outcome.PINNED, node="n1", problems=('annotation copies is\n"x"', "second"))
    assert warnings(decision, POD, GROUP) == (
        'basic-tikv-0 of db/basic/tikv: annotation copies is "x"',
        "basic-tikv-0 of db/basic/tikv: second",
    )


def test_the_event_names_cap_counts_and_the_reason_for_each_node() -> None:
    assert event_message(guarded(Cause.NO_SAFE_NODE, **CROWDED), POD, GROUP) == (
        "basic-tikv-0 of db/basic/tikv waits apart from its siblings: "
        "no node that can take it is within the cap of its group; "
        "cap 1 for 3 replicas by kubernetes.io/hostname; members: n1 1, n2 1; not possible: "
        "2 node(s) were unschedulable, 1 Insufficient cpu, 1 domain n1 already holds 1. "
        "Add a node, or make one of these possible. The scheduler starts it on a node without siblings by itself; "
        "for any other node, kubectl delete pod."
    )


def test_a_pin_has_a_message_for_logs_and_tables() -> None:
    decision = Decision(Outcome.PINNED, node="n1", domain="za", topology_key="zone", replicas=2)
    assert event_message(decision, POD, GROUP) == (
        "basic-tikv-0 of db/basic/tikv is placed: node n1; domain za; no cap for 2 replicas by zone"
    )
    assert event_message(Decision(Outcome.UNCHANGED), POD, GROUP) == "basic-tikv-0 of db/basic/tikv is left as it is"


def test_many_domains_are_counted_not_listed() -> None:
    message = event_message(guarded(Cause.NO_SAFE_NODE, counts={f"n{i:02}": 1 for i in range(12)}), POD, GROUP)
    assert "members: n00 1, " in message
    assert "n09 1, 2 more domains" in message


@pytest.mark.parametrize("text", TEXTS.values(), ids=[key.name for key in TEXTS])
def test_the_texts_send_nobody_to_what_does_not_exist(text: Text) -> None:
    said = f"{text.short} {text.why} {text.advice}".lower()
    assert [word for word in ("doctor", "controller", "chart") if word in said] == []


def test_a_refusal_says_what_an_event_says() -> None:
    decision = Decision(Outcome.DENIED, Cause.REQUESTER_FIELDS, detail="its own required anti-affinity")
    assert refusal(decision, POD, GROUP) == event_message(decision, POD, GROUP)
    assert refusal(decision, POD, GROUP).startswith("basic-tikv-0 of db/basic/tikv is refused: ")


def test_texts_for_one_cause_are_the_same_each_time() -> None:
    one, other = guarded(Cause.BUSY, **CROWDED), guarded(Cause.BUSY, **dict(reversed(CROWDED.items())))
    assert event_message(one, POD, GROUP) == event_message(other, POD, GROUP)
    assert warning(one, POD, GROUP) == warning(guarded(Cause.BUSY), POD, GROUP)
