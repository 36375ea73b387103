"""Single calls of the webhook to the API server fail, in every way: nobody stacks, and only who was hit is guarded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e.disturbed import CLAIMS, Rounds
from e2e.faults import Answer, Delay, DropAnswer, Fault, Reset, Rule, ShiftDate
from e2e.place import Place
from e2e.replicas import Webhook
from e2e.rounds import times

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

Tell = Callable[[str], None]
TIMES = times(50, sets=3)


def writes(fault: Fault, *calls: int) -> Rule:
    """The fault of those writes to claims, counted by each replica."""
    return Rule(fault, method="PATCH", path=CLAIMS, calls=calls)


FIRST = (1, 2, 3)
TROUBLES = {
    "swap-applied-answer-lost": [writes(DropAnswer(), *FIRST)],
    "second-record-applied-answer-lost": [writes(DropAnswer(), 3, 4, 5)],
    "late-writes": [writes(Delay(0.7), *FIRST)],
    "write-answered-with-each-5xx": [writes(Answer(503), 1, 5), writes(Answer(500), 2, 6), writes(Answer(504), 3, 7)],
    "write-429": [writes(Answer(429, retry_after=1), 1, 3)],
    "list-504": [Rule(Answer(504), method="GET", path="/pods", calls=range(1, 7))],
    "write-reset": [writes(Reset(), *range(1, 7))],
}


@pytest.mark.timeout(120 + 15 * TIMES)
@pytest.mark.parametrize("rules", TROUBLES.values(), ids=TROUBLES)
def test_calls_that_fail_in_the_middle_of_a_round_stack_nobody(
    frail: Webhook, frail_place: Place, tell: Tell, rules: list[Rule]
) -> None:
    scenario = Rounds(frail_place, frail)

    for _ in range(TIMES):
        for proxy in frail.proxies:
            proxy.set_rules(*rules)
        with scenario.one():
            pass

    tell(scenario.finish())
    assert scenario.share_pinned() >= 0.8


@pytest.mark.timeout(120 + 20 * TIMES)
@pytest.mark.parametrize("time_out", [4])
@pytest.mark.parametrize(
    "fault",
    [DropAnswer(stall=True), Delay(5)],
    ids=["swap-applied-answer-never", "swap-applied-after-its-request-was-answered"],
)
def test_a_swap_whose_answer_is_waited_for_in_vain_stacks_nobody(
    frail: Webhook, frail_place: Place, tell: Tell, fault: Fault
) -> None:
    scenario = Rounds(frail_place, frail)

    # Longer than the whole budget of an admission: each of these requests ends with the guard.
    for _ in range(TIMES):
        for proxy in frail.proxies:
            proxy.set_rules(writes(fault, *FIRST))
        with scenario.one():
            pass

    tell(scenario.finish())


@pytest.mark.timeout(120 + 15 * TIMES)
def test_clocks_of_api_servers_that_are_fifty_seconds_apart_make_nobody_stack(
    frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, frail)

    for _ in range(TIMES):
        for proxy, seconds in zip(frail.proxies, (-25, 0, 25), strict=True):
            proxy.set_rules(Rule(ShiftDate(seconds)))
        with scenario.one():
            pass

    tell(scenario.finish())
    assert scenario.share_pinned() == 1.0
