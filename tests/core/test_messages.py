"""Warnings, events and refusals: short enough, the same each time, and saying what is wrong and what to do."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from webhook.core import node_filters
from webhook.core.messages import (
    EVENT_LIMIT,
    LOG_LIMIT,
    WARNING_LIMIT,
    event_message,
    refusal,
    sentences,
    warning,
    warnings,
)
from webhook.core.model import Decision, Family, Group, MemberClass
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome
from webhook.core.remedies import OBSTACLES
from webhook.core.texts import OF_ADMITTED, OF_DENIED, TEXTS, Text, text_of
from webhook.errors import NotFound

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
        "n1": "domain n1 already holds 1 of at most 1 member(s)",
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
    decision = Decision(outcome, cause, detail="d" * 5000, problems=("p" * 500,), **CROWDED)
    said, text = warning(decision, pod, group), text_of(decision)
    assert len(said) <= WARNING_LIMIT
    assert all(len(one) <= WARNING_LIMIT for one in warnings(decision, pod, group))
    message = event_message(decision, pod, group)
    assert len(message) <= EVENT_LIMIT < len(event_message(decision, pod, group, LOG_LIMIT)) <= LOG_LIMIT
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
            Decision(Outcome.RETURNED),
            "basic-tikv-0 of db/basic/tikv returns to its data: its domain may get above the cap; see its event",
            id="returned where others could bring it above the cap",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: "
            "no node there is possible now; repair or uncordon",
            id="returned and waiting",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING, detail="its data is in domain n1 only, …: 1 Insufficient cpu"),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: the node of its data has no room; make some",
            id="returned, and its node is full",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING, detail="…: 1 guarded member b keeps others off: kubectl delete pod b"),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: "
            "a guarded sibling is in the way; see its event",
            id="returned, and a sibling is in the way",
        ),
        pytest.param(
            Decision(Outcome.RETURNED_WAITING, detail="…: 1 Insufficient cpu; 1 node(s) were unschedulable"),
            "basic-tikv-0 of db/basic/tikv waits for the node of its data: "
            "no node there is possible now; repair or uncordon",
            id="returned, and of two nodes one is full and one cordoned",
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
        "2 node(s) were unschedulable, 1 Insufficient cpu, 1 domain n1 already holds 1 of at most 1 member(s). "
        "Uncordon a node. Or: Make room on a node, or add one. Or: Add a node. "
        "The scheduler starts it on a node without siblings by itself; for any other node, kubectl delete pod."
    )


# --- what becomes of the pod

WAITING = [cause for cause in Cause if cause in TEXTS and TEXTS[cause].then]


@pytest.mark.parametrize("cause", WAITING, ids=lambda cause: cause.name)
@pytest.mark.parametrize(
    ("outcome", "then"), [(Outcome.DENIED, OF_DENIED), (Outcome.ADMITTED, OF_ADMITTED)], ids=["denied", "admitted"]
)
def test_a_pod_that_does_not_wait_is_given_no_advice_for_one_that_does(
    cause: Cause, outcome: Outcome, then: str
) -> None:
    text, waiting = text_of(Decision(outcome, cause)), text_of(guarded(cause))
    assert text is not None
    assert waiting is not None
    assert (text.then, text.why, text.remedy) == (then, waiting.why, waiting.remedy)
    assert event_message(Decision(outcome, cause), POD, GROUP).endswith(then)
    assert "kubectl delete pod" in waiting.then


def test_a_refusal_names_nothing_that_needs_the_pod_to_be_there() -> None:
    for cause in WAITING:
        assert "kubectl delete pod" not in refusal(Decision(Outcome.DENIED, cause, **CROWDED), POD, GROUP)


@pytest.mark.parametrize(
    ("error", "why", "remedy"),
    [
        (
            NotFound("get", "statefulsets", "db-tikv", status=404, detail="not found"),
            "its StatefulSet db-tikv is not there, which says how many members there are",
            "Create the StatefulSet, or, on a dump, add it there.",
        ),
        (
            NotFound("get", "statefulsets", "", status=404, detail="no pod of x names its StatefulSet"),
            "its StatefulSet is not there, which says how many members there are",
            "Create the StatefulSet, or, on a dump, add it there.",
        ),
        (
            NotFound("list", "tikvgroups", "", status=404, detail="no TiKVGroup and no TiKV of x"),
            "its TiKVGroup is not there, which says how many members there are",
            "Create the TiKVGroup, or, on a dump, add it there.",
        ),
    ],
    ids=["by name", "no name", "v2"],
)
def test_an_owner_that_is_not_there_is_no_trouble_of_the_api_server(error: NotFound, why: str, remedy: str) -> None:
    decision = guarded(Cause.API_TROUBLE, detail=str(error))
    text = text_of(decision)
    assert text is not None
    assert (text.why, text.remedy) == (why, remedy)
    assert "is not there; create it, or add it" in warning(decision, POD, GROUP)
    assert "API server failed" not in warning(decision, POD, GROUP)


@pytest.mark.parametrize("detail", ["", "patch persistentvolumeclaims a: 404 not found", "get statefulsets a: 500 x"])
def test_other_trouble_of_the_api_server_is(detail: str) -> None:
    assert text_of(guarded(Cause.API_TROUBLE, detail=detail)) == TEXTS[Cause.API_TROUBLE]


# --- whole sentences


def test_where_nothing_limits_it_the_whole_sentence_is_said_without_names_and_without_a_pod() -> None:
    decision = guarded(Cause.NO_SAFE_NODE, passed_over={"n1": node_filters.NO_MATCH}, problems=("p" * 500, "q\nr"))
    assert sentences(decision) == (
        "waits apart from its siblings: no node can take it. "
        "Label a node as its nodeSelector and required node affinity ask, or correct these.",
        "p" * 500,
        "q r",
    )


def test_a_sentence_without_a_remedy_ends_with_its_cause() -> None:
    assert sentences(guarded(Cause.BUSY)) == (
        "waits apart from its siblings: too many pods of its group were waiting to be placed",
    )


@pytest.mark.parametrize("decision", [Decision(Outcome.PINNED), guarded(Cause.GUARD_OPTION)], ids=["pin", "asked for"])
def test_where_no_warning_is_due_there_is_no_sentence(decision: Decision) -> None:
    assert sentences(decision) == ()


def test_what_is_right_survives_the_cut_of_a_warning_and_so_does_the_options_name() -> None:
    said = 'annotation tidb-ha-webhook.io/tikv.when-unplaceable of the cluster object is "deny": Guard, Deny or Admit '
    decision = Decision(Outcome.PINNED, problems=(f"{said}is right, Guard is used",))
    assert warnings(decision, POD, GROUP) == (
        "basic-tikv-0 of db/basic/tikv: annotation tikv.when-unplaceable of the c..: "
        "Guard, Deny or Admit is right, Guard is used",
    )


def test_what_an_event_was_sent_for_goes_before_what_may_be_cut() -> None:
    message = event_message(Decision(Outcome.PINNED, node="n1", problems=("annotation x: y",), **CROWDED), POD, GROUP)
    assert message.startswith("basic-tikv-0 of db/basic/tikv is placed: annotation x: y; node n1; ")


def test_any_three_obstacles_leave_an_event_room_for_their_remedies_and_for_names() -> None:
    for three in combinations((obstacle.words[0] for obstacle in OBSTACLES), 3):
        decision = guarded(Cause.NO_SAFE_NODE, passed_over=dict(zip("abc", three, strict=True)), topology_key="k" * 317)
        text, message = text_of(decision), event_message(decision, LONG_POD, LONG_GROUP)
        assert text is not None
        assert len(message) <= EVENT_LIMIT
        assert message.endswith(text.advice)


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
