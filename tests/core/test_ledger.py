"""Records in claim annotations: written, read, rubbish, and what is over."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import ledger
from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.core.model import Entry
from webhook.core.objects import Claim, Pod


def claim(name: str = "pd-db-pd-0", **fields: object) -> Claim:
    values: dict = {
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resource_version": "7",
        "created": "2026-01-01T00:00:00Z",
    }
    return Claim(name=name, **{**values, **fields})


def entry(token: str = "token0001", member: str = "db-pd-0", **fields: object) -> Entry:
    values: dict = {
        "claim_uid": "c0",
        "node": "n0",
        "domain": "n0",
        "topology_key": "kubernetes.io/hostname",
        "time": 1000,
    }
    return Entry(token=token, member=member, **{**values, **fields})


class TestRecords:
    """What is written is read again, and nothing else is."""

    def test_a_ledger_is_read_as_it_was_written(self) -> None:
        entries = (entry(), entry("token0002", "db-pd-1", node="", domain="zone-a", guarded=True))
        annotations = ledger.ledger_annotations(entries)
        recorded = ledger.read_records([claim(annotations=annotations)])
        assert recorded.ledgers == {"uid-pd-db-pd-0": entries}

    def test_an_empty_ledger_is_no_annotation(self) -> None:
        assert ledger.ledger_annotations(()) == {LOCK: None}

    def test_second_records_are_added_and_taken_away_by_token(self) -> None:
        annotations = ledger.second_record_annotations([entry()], {"token0009"})
        assert annotations.pop(ENTRY_PREFIX + "token0009") is None
        recorded = ledger.read_records([claim(annotations=annotations)])
        assert recorded.seconds == {"uid-pd-db-pd-0": {"token0001": entry()}}

    def test_all_entries_of_all_claims_are_one_union(self) -> None:
        first = claim("a", annotations=ledger.ledger_annotations([entry()]))
        second = claim("b", annotations=ledger.second_record_annotations([entry(), entry("token0002")], ()))
        assert ledger.read_records([first, second]).entries().keys() == {"token0001", "token0002"}

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "{",
            "null",
            "[]",
            "30s",
            '{"v":1}',
            '{"v":"1","entries":[]}',
            '{"v":true,"entries":[]}',
            '{"v":0,"entries":[]}',
            '{"v":1,"entries":{}}',
            '{"v":1,"entries":[1]}',
            '{"v":1,"entries":[{"token":"token0001"}]}',
            "[" * 100_000,
        ],
        ids=lambda value: value[:30] or "empty",
    )
    def test_rubbish_is_reported_and_never_half_trusted(self, value: str) -> None:
        recorded = ledger.read_records([claim(annotations={LOCK: value})])
        assert recorded.entries() == {}
        assert [location.key for location in recorded.unreadable] == [LOCK]

    def test_one_bad_entry_makes_the_whole_ledger_unreadable(self) -> None:
        value = json.loads(ledger.ledger_annotations([entry()])[LOCK] or "")
        value["entries"].append({"token": "token0002"})
        recorded = ledger.read_records([claim(annotations={LOCK: json.dumps(value)})])
        assert (recorded.ledgers, len(recorded.unreadable)) == ({}, 1)

    def test_a_second_record_under_a_foreign_token_is_unreadable(self) -> None:
        (value,) = ledger.second_record_annotations([entry()], ()).values()
        recorded = ledger.read_records([claim(annotations={ENTRY_PREFIX + "token0002": value or ""})])
        assert recorded.entries() == {}
        assert len(recorded.unreadable) == 1

    @pytest.mark.parametrize("field", ["token", "member", "domain"])
    def test_an_entry_without_a_necessary_text_is_unreadable(self, field: str) -> None:
        value = ledger.ledger_annotations([entry(**{field: ""})])
        assert len(ledger.read_records([claim(annotations=value)]).unreadable) == 1

    def test_a_record_of_a_newer_format_is_told_apart_from_rubbish(self) -> None:
        recorded = ledger.read_records([claim(annotations={LOCK: '{"v":2,"whatever":[]}'})])
        assert recorded.unreadable == ()
        assert [(found.claim_uid, found.key) for found in recorded.newer] == [("uid-pd-db-pd-0", LOCK)]

    @given(st.text(max_size=50))
    def test_no_text_at_all_makes_reading_fail(self, value: str) -> None:
        ledger.read_records([claim(annotations={LOCK: value, ENTRY_PREFIX + "token0001": value})])


class TestWhatIsOver:
    """An entry ends by its token on a visible pod, or by its age at the API server's time; by nothing else."""

    @pytest.mark.parametrize(
        ("carried", "now", "known_for", "over"),
        [
            pytest.param({("db-pd-0", "token0001")}, 1000, 0, True, id="its token is visible"),
            pytest.param({("db-pd-0", "token0002")}, 1000, 0, False, id="an older pod of its name is visible"),
            pytest.param({("db-pd-1", "token0001")}, 1000, 0, False, id="its token is on another pod"),
            pytest.param(set(), 1120, 0, False, id="as old as the expiry"),
            pytest.param(set(), 1121, 0, True, id="older than the expiry"),
            pytest.param(set(), 900, 120, False, id="dated in the future, known for the expiry"),
            pytest.param(set(), 900, 121, True, id="dated in the future, known for longer"),
        ],
    )
    def test_is_over(self, carried: set, now: int, known_for: float, over: bool) -> None:
        assert ledger.is_over(entry(), carried, now, 120.0, known_for) is over

    def test_tokens_are_carried_by_the_decision_record_under_the_pods_own_name(self) -> None:
        record = '{"v":1,"token":"token0001","member":"%s","outcome":"pinned","topologyKey":"kubernetes.io/hostname"}'
        own = Pod("shop", "db-pd-0", annotations={"tidb-ha-webhook.io/decision": record % "db-pd-0"})
        copied = Pod("shop", "db-pd-1", annotations={"tidb-ha-webhook.io/decision": record % "db-pd-0"})
        assert ledger.carried_tokens([own, copied, Pod("shop", "db-pd-2")]) == {("db-pd-0", "token0001")}

    def test_an_entry_is_superseded_only_by_one_that_says_the_same(self) -> None:
        old, elsewhere, other = entry(), entry("token0002", node="n1", domain="n1"), entry("token0003", "db-pd-1")
        again = entry("token0004", time=2000)
        assert ledger.without_superseded([old, elsewhere, other, again], [again]) == (elsewhere, other, again)

    def test_a_text_that_is_no_unicode_makes_the_record_unreadable(self) -> None:
        value = ledger.ledger_annotations([entry()])[LOCK] or ""
        broken = value.replace('"domain":"n0"', '"domain":"\\ud800"')
        assert broken != value
        assert len(ledger.read_records([claim(annotations={LOCK: broken})]).unreadable) == 1

    def test_second_records_in_no_readable_format_are_known_by_their_keys(self) -> None:
        found = claim(annotations={ENTRY_PREFIX + "token0001": "{", LOCK: "{"})
        locations = ledger.read_records([found]).unreadable
        assert ledger.second_record_tokens(locations, found) == {"token0001"}
        assert ledger.second_record_tokens(locations, claim("b")) == frozenset()

    def test_a_ledger_without_some_tokens_keeps_the_rest_as_it_is(self) -> None:
        kept, gone = entry("token0002", "db-pd-1"), entry()
        there = claim(annotations=ledger.ledger_annotations([kept, gone], {"token0002"}))
        recorded = ledger.read_records([there])
        assert recorded.ledger_without(there, {"token0001"}) == ledger.ledger_annotations([kept], {"token0002"})

    def test_of_entries_that_say_the_same_the_newest_is_one(self) -> None:
        old, new, other = entry(), entry("token0002", time=2000), entry("token0003", "db-pd-1")
        assert set(ledger.newest_of_each([new, old, other])) == {new, other}
