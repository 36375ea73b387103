"""The controller's thread: who takes turns, and when."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from webhook.controller.running import FOLLOWING, PERIOD, SOON, Controller


@dataclass
class Duties:
    """What was asked of a leader; each turn says what `soon` says next, or raises it."""

    soon: Iterator[bool | Exception]
    asked: list[str] = field(default_factory=list)

    def turn(self) -> bool:
        self.asked.append("turn")
        answer = next(self.soon)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def forget(self) -> None:
        self.asked.append("forget")


def a_controller(duties: Duties, *leads: bool) -> tuple[Controller, list[bool]]:
    told: list[bool] = []
    answers = iter(leads)
    return Controller(duties, lambda: next(answers), told.append), told


def test_only_the_leader_takes_turns_and_forgets_when_it_leads_no_more() -> None:
    duties = Duties(iter([True, False]))
    controller, told = a_controller(duties, False, True, True, False, False)
    assert [controller.step() for _ in range(5)] == [FOLLOWING, SOON, PERIOD, FOLLOWING, FOLLOWING]
    assert duties.asked == ["turn", "turn", "forget"]
    assert told == [True, False]


def test_a_defect_in_a_turn_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    duties = Duties(iter([ZeroDivisionError(), True]))
    controller, _ = a_controller(duties, True, True)
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 2

    controller.run(wait)
    assert waits == [PERIOD, SOON]
    assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR]


def test_it_runs_in_a_thread_until_it_is_stopped() -> None:
    asked = threading.Event()

    class Told:
        def turn(self) -> bool:
            asked.set()
            return False

        def forget(self) -> None:
            """Nothing."""

    controller = Controller(Told(), lambda: True, lambda _: None)
    controller.start()
    assert asked.wait(20)
    controller.stop()
    for thread in threading.enumerate():
        if thread.name == "controller":
            thread.join(20)
            assert not thread.is_alive()
