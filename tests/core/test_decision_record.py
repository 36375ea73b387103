"""The decision record: written compactly, read tolerantly."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.decision_record import (
    SIZE_LIMIT,
    DecisionRecord,
    decision_annotation,
    grouped_reasons,
    record_from,
    token_of,
)
from webhook.core.model import Decision
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome
from webhook.core.safety import MOST_LEFT_ALONE

PINNED = Decision(Outcome.PINNED, node="n3", domain="z1", topology_key="zone", replicas=3, cap=1)


def test_a_record_is_read_as_it_was_written() -> None:
    assert record_from(decision_annotation(PINNED, "db-tikv-0", "t0k3n")) == DecisionRecord(
        version=1,
        token="t0k3n",
        member="db-tikv-0",
        node="n3",
        domain="z1",
        topology_key="zone",
        outcome="pinned",
    )


def test_a_record_says_everything_that_was_decided() -> None:
    decision = Decision(
        Outcome.GUARDED,
        Cause.NO_SAFE_NODE,
        replicas=3,
        cap=1,
        counts={"n1": 1, "n2": 2, "n3": 0},
        passed_over={"n1": "Insufficient cpu", "n2": "node(s) were unschedulable", "n3": "Insufficient cpu"},
        detail="why",
        problems=("annotation copies is wrong",),
    )
    assert json.loads(decision_annotation(decision, "db-tikv-0", None)) == {
        "v": 1,
        "member": "db-tikv-0",
        "outcome": "guarded",
        "cause": "NoSafeNode",
        "topologyKey": "kubernetes.io/hostname",
        "replicas": 3,
        "cap": 1,
        "counts": {"n2": 2, "n1": 1},
        "reasons": ["2 Insufficient cpu", "1 node(s) were unschedulable"],
        "detail": "why",
        "problems": ["annotation copies is wrong"],
    }


@pytest.mark.parametrize("token", [None, ""], ids=["none", "empty"])
def test_a_record_without_an_entry_has_no_token(token: str | None) -> None:
    text = decision_annotation(PINNED, "db-tikv-0", token)
    assert "token" not in json.loads(text)
    assert token_of(Pod("prod", "db-tikv-0", annotations={keys.DECISION: text})) == ""


def test_how_we_pinned_and_guarded_is_recorded_only_where_it_needs_telling() -> None:
    decision = Decision(Outcome.PINNED, node="n3", hostname="host-3")
    plain = record_from(decision_annotation(decision, "m", "t"))
    told = record_from(decision_annotation(decision, "m", "t", selector_pin=True, key_exists=True, avoids=["n1", "n2"]))
    assert plain is not None
    assert told is not None
    assert (plain.hostname, plain.key_exists, plain.avoids) == ("", False, ())
    assert (told.hostname, told.key_exists, told.avoids) == ("host-3", True, ("n1", "n2"))


def test_the_same_decision_gives_the_same_text_whatever_the_order_it_was_made_in() -> None:
    one = Decision(Outcome.GUARDED, counts={"a": 1, "b": 1}, passed_over={"x": "r1", "y": "r2"})
    other = Decision(Outcome.GUARDED, counts={"b": 1, "a": 1}, passed_over={"y": "r2", "x": "r1"})
    assert decision_annotation(one, "m", "t") == decision_annotation(other, "m", "t")


def test_5000_nodes_with_the_longest_names_fit_and_keep_the_fields_that_others_rely_on() -> None:
    names = [f"{i:05}" + "n" * 248 for i in range(5000)]
    decision = Decision(
        Outcome.GUARDED,
        Cause.NO_SAFE_NODE,
        node=names[0],
        domain="d" * 63,
        topology_key="k" * 253 + "/" + "t" * 63,
        hostname="h" * 63,
        replicas=5000,
        cap=1667,
        counts=dict.fromkeys(names, 1),
        passed_over={name: f"domain {name} already holds 1 \N{SNOWMAN}" for name in names},
        detail='"' * 3000,
        problems=('"' * 3000,) * 100,
    )
    avoids = [f"{number:063}" for number in range(MOST_LEFT_ALONE)]
    text = decision_annotation(decision, "m" * 253, "t" * 40, selector_pin=True, key_exists=True, avoids=avoids)
    assert len(text.encode()) <= SIZE_LIMIT
    record = record_from(text)
    assert record is not None
    assert (record.member, record.node, record.domain) == ("m" * 253, names[0], "d" * 63)
    assert json.loads(text)["moreReasons"] > 4900


def test_a_text_that_is_cut_ends_with_a_whole_name_and_a_mark() -> None:
    names = [f"db-pd-{number}" for number in range(200)]
    decision = Decision(Outcome.GUARDED, Cause.NO_SAFE_NODE, detail=f"it leaves them to {', '.join(names)}")

    detail = json.loads(decision_annotation(decision, "db-pd-0", None))["detail"]

    kept = detail.removeprefix("it leaves them to ")
    assert kept.endswith(" ..")
    assert set(kept.removesuffix(" ..").split(", ")) <= set(names)


def test_many_nodes_with_few_reasons_lose_none() -> None:
    passed_over = {f"n{i}": ("Insufficient cpu", "node(s) were unschedulable")[i % 2] for i in range(5000)}
    text = decision_annotation(Decision(Outcome.GUARDED, passed_over=passed_over), "m", None)
    assert json.loads(text)["reasons"] == ["2500 Insufficient cpu", "2500 node(s) were unschedulable"]


def test_reasons_are_grouped_and_counted_as_kubectl_describe_shows_them() -> None:
    passed_over = {
        "n1": "domain n1 already holds 1",
        "n2": "node(s) were unschedulable",
        "n3": "node(s) were unschedulable",
        "n4": "Insufficient cpu",
    }
    assert grouped_reasons(passed_over) == (
        "2 node(s) were unschedulable",
        "1 Insufficient cpu",
        "1 domain n1 already holds 1",
    )


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("null", id="null"),
        pytest.param("[1]", id="a list"),
        pytest.param('"pinned"', id="a string"),
        pytest.param("{}", id="no version"),
        pytest.param('{"v":2,"member":"m","outcome":"pinned"}', id="a later version"),
        pytest.param('{"v":true,"member":"m","outcome":"pinned"}', id="a version that only equals 1"),
        pytest.param('{"v":1.0,"member":"m","outcome":"pinned"}', id="a version that is no integer"),
        pytest.param('{"v":1,"outcome":"pinned"}', id="no member"),
        pytest.param('{"v":1,"member":"m"}', id="no outcome"),
        pytest.param('{"v":1,"member":"m","outcome":"pinned","node":7}', id="a node that is no string"),
        pytest.param('{"v":1,"member":"m","outcome":"pinned","token":null}', id="a token that is null"),
        pytest.param('{"v":1,"member":"m","outcome":"guarded","avoids":"n1"}', id="domains that are no list"),
        pytest.param('{"v":1,"member":"m","outcome":"guarded","avoids":[1]}', id="domains that are no strings"),
        pytest.param('{"v":1,"member":"m","outcome":"pinned","domain":"\\ud800"}', id="half of a surrogate pair"),
        pytest.param('{"v":' + "9" * 5000 + "}", id="a number too long to read"),
        pytest.param("[" * 100_000, id="nested without end"),
    ],
)
def test_rubbish_is_no_record(annotation: str | None) -> None:
    assert record_from(annotation) is None
    annotations = {} if annotation is None else {keys.DECISION: annotation}
    assert token_of(Pod("prod", "m", annotations=annotations)) == ""


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_text_makes_reading_raise(text: str) -> None:
    record_from(text)


def test_the_token_counts_only_in_a_record_for_the_pods_own_name() -> None:
    annotations = {keys.DECISION: decision_annotation(PINNED, "db-tikv-0", "t0k3n")}
    assert token_of(Pod("prod", "db-tikv-0", annotations=annotations)) == "t0k3n"
    assert token_of(Pod("prod", "db-tikv-1", annotations=annotations)) == ""
