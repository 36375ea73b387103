"""One schedule for each step of the protocol: safe as it is, unsafe with the step substituted.

Each is the shortest story in which the step matters. Where there is one node only, whoever comes second must be
guarded; a pin for it is the breach.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from webhook.cluster.door import CLAIMS
from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.core.outcomes import Outcome

from .faults import TOKEN
from .life import Life, Replica, Shape, Substitutes
from .mutations import MUTATIONS
from .world import EveryChoice, World, reads, writes

CLAIMS_LISTED = reads("persistentvolumeclaims")
PODS_LISTED = reads("pods")
ONE_NODE = Shape("pd", 3, 1)
TWO_NODES = Shape("pd", 3, 2)
Schedule = Callable[[Life, Replica, Replica, Replica], None]


def finish(life: Life, ordinal: int, replica: Replica) -> None:
    """A whole create, without anybody between."""
    life.world.run_until(life.create([ordinal], replica))


def two_swaps_on_one_version(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """Both decide on the same version of the lock claim; the first has answered when the second writes."""
    one = life.create([0], first)
    life.world.run_until(one, writes(LOCK))
    other = life.create([1], second)
    life.world.run_until(other, writes(LOCK))
    life.world.run_until(one)
    life.world.run_until(other)


def an_entry_becomes_a_pod_between_the_lists(life: Life, first: Replica, second: Replica, third: Replica) -> None:
    """An entry goes from the claims because its pod is visible: whoever listed the pods before sees neither."""
    prepare_claims(life)
    stored = after_answer(life, 0, first)
    late = life.create([2], second)
    life.world.run_until(late, CLAIMS_LISTED)
    life.world.run_until(stored)
    finish(life, 1, third)
    life.world.run_until(late)


def a_create_lands_at_its_last_moment(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """An entry that is as old as it can get becomes a pod just after a sibling has listed the pods."""
    prepare_claims(life)
    first.door.clock_offsets, second.door.clock_offsets = (-30.0,), (30.0,)
    started = life.world.now
    stored = after_answer(life, 0, first)
    life.world.now = started + 59.9
    late = life.create([1], second)
    life.world.run_until(late, PODS_LISTED)
    life.world.step(late)
    life.world.run_until(stored)
    life.world.now += 1.5
    life.world.run_until(late)


def an_older_pod_of_the_name_is_still_listed(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """A create is admitted while an older pod of its name is still going: that pod is not what was answered."""
    prepare_claims(life)
    life.old_pod(0, "n0")
    life.cordon(0)
    finish(life, 0, first)
    finish(life, 1, second)


def the_ledger_is_erased_before_the_second_record(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """Between one's swap and its second record there is nothing to see of it, if the ledger is put back."""
    prepare_claims(life)
    one = life.create([0], first)
    life.world.run_until(one, writes(ENTRY_PREFIX))
    life.erase(0)
    finish(life, 1, second)
    life.world.run_until(one)


def the_second_record_is_erased_before_the_answer(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """An answer must begin with both records, since one may be lost afterwards."""
    prepare_claims(life)
    one = life.create([0], first)
    life.world.run_until(one, writes(ENTRY_PREFIX))
    life.world.run_until(one, CLAIMS_LISTED)
    life.erase(1)
    life.world.run_until(one)
    life.erase(0)
    finish(life, 1, second)


def the_ledger_is_erased_after_the_answer(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """One record is lost after the answer."""
    prepare_claims(life)
    finish(life, 0, first)
    life.erase(0)
    finish(life, 1, second)


def the_lock_moves_there_and_back(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """A claim is first in order for a while: who locks on it in that time is not seen by who locked before."""
    prepare_claims(life)
    life.defer_deleting(0)
    late = life.create([1], second)
    life.world.run_until(late, writes(LOCK))
    life.defer_deleting(0, undo=True)
    finish(life, 2, first)
    life.world.run_until(late, writes(ENTRY_PREFIX))
    life.defer_deleting(0)
    life.world.run_until(late)


def a_third_writer_restores_an_erased_entry(life: Life, first: Replica, second: Replica, third: Replica) -> None:
    """An entry that comes back into the ledger does not prove that those who wrote meanwhile had seen it."""
    prepare_claims(life)
    life.cordon(1)
    one = life.create([0], first)
    life.world.run_until(one, writes(ENTRY_PREFIX))
    life.erase(0)
    finish(life, 1, second)
    life.world.run_until(one, CLAIMS_LISTED)
    life.cordon(1, undo=True)
    finish(life, 2, third)
    life.world.run_until(one)


def a_create_takes_half_a_minute(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """The API server may store a pod as late as its request time-out."""
    prepare_claims(life)
    finish(life, 0, first)
    life.world.now += 30.0
    finish(life, 1, second)


def each_sees_only_its_own_claim(life: Life, first: Replica, second: Replica, _: Replica) -> None:
    """Claims made by hand: no label finds them."""
    finish(life, 0, first)
    finish(life, 1, second)


SCHEDULES: dict[str, tuple[Shape, Schedule]] = {
    "without the precondition": (ONE_NODE, two_swaps_on_one_version),
    "pods listed before claims": (TWO_NODES, an_entry_becomes_a_pod_between_the_lists),
    "age judged after the lists": (ONE_NODE, a_create_lands_at_its_last_moment),
    "an entry ended by name": (TWO_NODES, an_older_pod_of_the_name_is_still_listed),
    "without confirm": (ONE_NODE, the_ledger_is_erased_before_the_second_record),
    "without its own-token check": (ONE_NODE, the_ledger_is_erased_before_the_second_record),
    "without its second-record check": (ONE_NODE, the_second_record_is_erased_before_the_answer),
    "without the second record": (ONE_NODE, the_ledger_is_erased_after_the_answer),
    "without its check for unseen entries": (ONE_NODE, the_lock_moves_there_and_back),
    "restored tokens count": (TWO_NODES, a_third_writer_restores_an_erased_entry),
    "expiry shorter than a create": (ONE_NODE, a_create_takes_half_a_minute),
    "claims not common to all": (Shape("pd", 3, 1, labelled=False), each_sees_only_its_own_claim),
}


def prepare_claims(life: Life) -> None:
    """All claims of the group exist from the start."""
    for ordinal in range(life.shape.replicas):
        life.make_claim(ordinal)


def after_answer(life: Life, ordinal: int, replica: Replica):  # type: ignore[no-untyped-def]
    """Create a pod up to its answer; the actor that stores it is returned, and waits."""
    life.storing = lambda: 0.0
    finish(life, ordinal, replica)
    life.storing = lambda: None
    return life.world.actors[-1]


def play(name: str, substitutes: Substitutes) -> Life:
    """Play the schedule of a step; no other pod is ever stored, so that every answer stays open."""
    shape, schedule = SCHEDULES[name]
    life = Life(World(EveryChoice()), shape, substitutes)
    life.storing = lambda: None
    replicas = [life.add_replica() for _ in range(3)]
    schedule(life, *replicas)
    return life


def test_every_mutation_has_a_schedule() -> None:
    assert SCHEDULES.keys() == MUTATIONS.keys()


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_protocol_is_safe_in_the_schedule(name: str) -> None:
    life = play(name, Substitutes())
    assert life.oracle.unsafe == []
    assert life.answered >= 2


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_schedule_is_unsafe_with_the_step_substituted(name: str) -> None:
    assert play(name, MUTATIONS[name]()).oracle.unsafe != []


def test_an_erased_ledger_is_healed_by_the_next_writer() -> None:
    life = Life(World(EveryChoice()), Shape("pd", 3, 3))
    life.storing = lambda: None
    first, second = life.add_replica(), life.add_replica()
    prepare_claims(life)
    finish(life, 0, first)
    life.erase(0)
    finish(life, 1, second)
    life.erase(0)
    finish(life, 2, first)
    assert life.oracle.unsafe == []
    assert life.oracle.outcomes == {Outcome.PINNED: 3}


def test_an_entry_of_a_lost_attempt_is_taken_from_the_claim_that_was_the_lock_then() -> None:
    life = Life(World(EveryChoice()), Shape("pd", 3, 3))
    life.storing = lambda: None
    first, second = life.add_replica(), life.add_replica()
    prepare_claims(life)
    one = life.create([0], first)
    life.world.run_until(one, writes(ENTRY_PREFIX))
    life.defer_deleting(0)
    life.world.run_until(one)
    (given,) = life.tolerated
    assert set.union(*(tokens_on(life, ordinal) for ordinal in range(3))) == {given}
    finish(life, 1, second)
    finish(life, 2, second)
    assert life.oracle.outcomes == {Outcome.PINNED: 3}


def test_a_round_that_ends_with_a_guard_leaves_no_entry_of_a_lost_attempt() -> None:
    life = Life(World(EveryChoice()), ONE_NODE)
    life.storing = lambda: None
    first, second = life.add_replica(), life.add_replica()
    prepare_claims(life)
    one = life.create([0], first)
    life.world.run_until(one, writes(ENTRY_PREFIX))
    life.erase(0)
    finish(life, 1, second)
    life.world.run_until(one)
    (given,) = life.tolerated
    assert set.union(*(tokens_on(life, ordinal) for ordinal in range(3))) == {given}


def tokens_on(life: Life, ordinal: int) -> set[str]:
    """The tokens in the records on a member's claim."""
    claim = life.cluster.get(CLAIMS, life.claim_name(ordinal), namespace="shop", timeout=1)
    return set(TOKEN.findall(str(claim["metadata"].get("annotations", {}))))
