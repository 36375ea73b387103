"""A replica of the webhook is struck in the middle of a round: nobody stacks.

The pods are created with failurePolicy Fail by a controller (the test) that tries again after each failure.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from e2e.disturbed import STRIKES, shaken
from e2e.place import Place
from e2e.replicas import Webhook

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

Tell = Callable[[str], None]


@pytest.mark.timeout(120 + 15 * STRIKES)
def test_a_replica_that_is_killed_in_the_middle_of_a_round_stacks_nobody(
    frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = shaken(frail_place, frail)

    for _ in range(STRIKES):
        with scenario.one() as under_way:
            victim = under_way.in_the_middle()
            victim.child.kill()
            victim.start(wait=False)
        victim.wait_ready()

    tell(scenario.finish())
    assert scenario.share_pinned() >= 0.9


@pytest.mark.timeout(120 + 30 * STRIKES)
@pytest.mark.parametrize(
    ("time_out", "seconds"), [(10, 2), (4, 5)], ids=["shorter-than-the-time-out", "longer-than-the-time-out"]
)
def test_a_replica_that_is_frozen_in_the_middle_of_a_round_stacks_nobody(
    frail: Webhook, frail_place: Place, tell: Tell, seconds: int
) -> None:
    scenario = shaken(frail_place, frail)

    for _ in range(STRIKES):
        with scenario.one() as under_way:
            victim = under_way.in_the_middle()
            under_way.strike(victim)
            victim.child.freeze()
            Event().wait(seconds)
            victim.child.thaw()
        victim.wait_ready()

    tell(scenario.finish())
    assert scenario.share_pinned() >= 0.8
