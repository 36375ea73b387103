"""What one process remembers of its own answers and of the records it has seen."""

from __future__ import annotations

import logging

import pytest
from builders import make_entry, make_group

from webhook.core.carriers import OptionCarriers
from webhook.core.ledger import Location
from webhook.locking.memory import AnswerMemory

GROUP = make_group()
RECORD = Location("uid", "tidb-ha-webhook.io/lock", '{"v":2}')


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> AnswerMemory:
    return AnswerMemory(keep=300.0, clock=clock)


def test_an_answer_is_remembered_until_it_is_over(memory: AnswerMemory) -> None:
    entry = make_entry("db-tikv-0", "n1")
    memory.remember(GROUP, entry)
    assert memory.answers(GROUP) == {entry.token: entry}
    memory.forget(GROUP, entry.token)
    assert memory.answers(GROUP) == {}


def test_answers_of_one_group_are_not_those_of_another(memory: AnswerMemory) -> None:
    memory.remember(GROUP, make_entry("db-tikv-0", "n1"))
    assert memory.answers(make_group("pd")) == {}


def test_answers_of_groups_that_nobody_asks_for_again_are_dropped(memory: AnswerMemory, clock: Clock) -> None:
    memory.remember(GROUP, make_entry("db-tikv-0", "n1"))
    clock.now += 301
    memory.remember(make_group("pd"), make_entry("db-pd-0", "n1"))
    assert memory.answers(GROUP) == {}


def test_an_entry_of_the_past_is_judged_by_its_date_alone(memory: AnswerMemory) -> None:
    assert memory.known_for(GROUP, make_entry("db-tikv-0", "n1", time=100), now=100) == 0.0


def test_an_entry_of_the_future_is_judged_by_how_long_it_has_been_known(memory: AnswerMemory, clock: Clock) -> None:
    entry = make_entry("db-tikv-0", "n1", time=200)
    assert memory.known_for(GROUP, entry, now=100) == 0.0
    clock.now += 30
    assert memory.known_for(GROUP, entry, now=130) == 30.0


def test_a_record_of_a_newer_format_is_respected_until_it_stood_unchanged_for_one_expiry(
    memory: AnswerMemory, clock: Clock
) -> None:
    assert memory.stands_newer(GROUP, [RECORD], expiry=120)
    clock.now += 120
    assert memory.stands_newer(GROUP, [RECORD], expiry=120)
    clock.now += 1
    assert not memory.stands_newer(GROUP, [RECORD], expiry=120)


def test_a_record_of_a_newer_format_that_changed_is_respected_anew(memory: AnswerMemory, clock: Clock) -> None:
    memory.stands_newer(GROUP, [RECORD], expiry=120)
    clock.now += 121
    changed = Location(RECORD.claim_uid, RECORD.key, '{"v":2,"more":1}')
    assert memory.stands_newer(GROUP, [changed], expiry=120)


def test_without_a_record_of_a_newer_format_nothing_stands(memory: AnswerMemory) -> None:
    assert not memory.stands_newer(GROUP, [], expiry=120)


def test_only_so_many_groups_options_are_remembered(monkeypatch: pytest.MonkeyPatch, memory: AnswerMemory) -> None:
    monkeypatch.setattr("webhook.locking.memory.MOST_CARRIERS", 2)
    groups = [make_group("tikv", cluster=cluster) for cluster in ("a", "b", "c")]
    for group in groups:
        memory.learn(group, OptionCarriers(cluster={"of": group.cluster}))
    assert [memory.carriers(group).cluster for group in groups] == [{}, {"of": "b"}, {"of": "c"}]


def test_an_unreadable_record_is_logged_once(memory: AnswerMemory, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        memory.report_unreadable([RECORD])
        memory.report_unreadable([RECORD])
    assert len(caplog.records) == 1
    assert RECORD.value not in caplog.text


def test_only_so_many_unreadable_records_are_remembered_as_logged(
    memory: AnswerMemory, caplog: pytest.LogCaptureFixture
) -> None:
    many = [Location("uid", "key", str(number)) for number in range(1001)]
    with caplog.at_level(logging.WARNING):
        memory.report_unreadable(many)
        memory.report_unreadable(many[:1])
    assert len(caplog.records) == 1002
