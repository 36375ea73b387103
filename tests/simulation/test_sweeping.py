"""Sweeps of what is over make nothing unsafe, and a sweep that took more would be found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.core.outcomes import Outcome
from webhook.locking.sweeping import Sweep

from .life import Life, Shape
from .mutations import WithoutPrecondition
from .scenarios import Report, run
from .sweeping import WRONG_SWEEPS, EndsByName, Swept, a_sweep, run_once, with_sweeps
from .world import EveryChoice, World, writes

FAULTY_RUNS = 300
# The others are shown by their schedules alone: a pod of the name, or a write, just in between.
CAUGHT_AT = {"takes what is in flight": 14}
LAST_SEED = 3000


@pytest.mark.timeout(300)
def test_safe_no_random_life_with_sweeps_stacks(say: Callable[[str], None]) -> None:
    swept, total = Swept(), Report()
    for seed in range(FAULTY_RUNS):
        total.add(run(seed, faults=True, besides=with_sweeps(swept)))
    say(f"random, seeds 0 to {FAULTY_RUNS - 1}, with sweeps: {total}\n  sweeps: {dict(swept.counts)}")
    assert total.unsafe == []
    assert total.pinned >= 0.8 * total.answered
    assert swept.counts["swept"] >= FAULTY_RUNS // 4


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(CAUGHT_AT))
def test_the_random_mix_catches_sweeps_that_take_more(name: str, say: Callable[[str], None]) -> None:
    for seed in (CAUGHT_AT[name], *range(LAST_SEED)):
        if unsafe := run(seed, faults=True, besides=with_sweeps(Swept(), WRONG_SWEEPS[name])).unsafe:
            say(f"a sweep that {name}: caught at {unsafe[0]}")
            return
    pytest.fail(f"{name}: not caught by seeds 0 to {LAST_SEED}")


def a_life() -> Life:
    """One node for three members, all of whose claims are Bound: whoever comes second must be guarded."""
    choices = EveryChoice()
    choices.start()
    life = Life(World(choices), Shape("pd", 3, 1))
    for ordinal in range(3):
        life.bind_anywhere(ordinal)
    return life


def a_replica(life: Life):
    return life.add_replica()


def outcome(life: Life, ordinal: int, replica) -> Outcome:
    actor = life.create([ordinal], replica, claims=False)
    life.world.run_until(actor)
    ((_, answer),) = actor.result
    return answer.decision.outcome


def records(life: Life) -> set[str]:
    return {
        key
        for annotations in life._annotations().values()
        for key in annotations
        if key == LOCK or key.startswith(ENTRY_PREFIX)
    }


def in_world(life: Life, sweep: Sweep):
    return life.world.spawn("sweep", lambda: run_once(life, sweep))


def test_an_answer_that_is_on_its_way_is_not_swept() -> None:
    life = a_life()
    life.storing = lambda: None
    assert outcome(life, 0, a_replica(life)) is not Outcome.GUARDED

    sweeping = in_world(life, a_sweep(life))
    life.world.run_until(sweeping)

    assert sweeping.result == "nothing to do"
    assert len(records(life)) == 2


def test_an_abandoned_answer_is_swept_when_it_has_expired() -> None:
    life = a_life()
    life.storing = lambda: None
    assert outcome(life, 0, a_replica(life)) is not Outcome.GUARDED
    life.world.now += 121

    sweeping = in_world(life, a_sweep(life))
    life.world.run_until(sweeping)

    assert (sweeping.result, records(life)) == ("swept", set())


@pytest.mark.parametrize(
    ("store", "kept"), [(None, True), (WithoutPrecondition, False)], ids=["by the version", "whatever the version is"]
)
def test_what_was_swapped_in_after_a_sweep_has_listed_stays(store, kept: bool) -> None:
    """The sweep has judged an entry that has expired; before it writes another member is answered."""
    life = a_life()
    life.storing = lambda: None
    outcome(life, 0, a_replica(life))
    life.world.now += 121
    sweeping = in_world(life, a_sweep(life, store=store))
    life.world.run_until(sweeping, writes(LOCK))
    assert outcome(life, 1, a_replica(life)) is not Outcome.GUARDED

    life.world.run_until(sweeping)

    assert (LOCK in records(life)) is kept


@pytest.mark.parametrize(("sweep_type", "result"), [(Sweep, "nothing to do"), (EndsByName, "swept")])
def test_a_pod_of_the_name_from_an_earlier_life_ends_no_entry(sweep_type: type[Sweep], result: str) -> None:
    life = a_life()
    life.storing = lambda: None
    life.old_pod(0, "n0")
    outcome(life, 0, a_replica(life))

    sweeping = in_world(life, a_sweep(life, sweep_type))
    life.world.run_until(sweeping)

    assert sweeping.result == result
