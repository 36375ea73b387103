"""Random runs: a seed gives a group, replicas, faults and a life; `run` gives what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from .faults import Rates
from .life import BUDGET, QUIET, Life, Replica, Shape, Substitutes
from .world import RandomChoices, World

UNLABELLED = Shape("pd", 3, 3, labelled=False)
SHAPES = (
    Shape("pd", 3, 3),
    Shape("pd", 3, 4),
    Shape("pd", 5, 3),
    Shape("pd", 5, 5),
    Shape("tikv", 3, 3),
    Shape("tikv", 3, 5),
    Shape("tikv", 6, 3),
    Shape("tikv", 9, 3),
    Shape("tikv", 9, 4),
)
# The cap once enough domains are in use, by component and replicas (docs/design.md, section 5).
MOST_BOUND = {("pd", 3): 1, ("pd", 5): 2, ("tikv", 3): 1, ("tikv", 6): 2, ("tikv", 9): 3}

# The clocks of two API servers (s): 60 apart, as far as the expiry allows for.
CLOCK_OFFSETS = (-30.0, 30.0)
# Mostly well; badly off; and two that stop before their lists or after their writes, where the subtle schedules are.
LOSSES = Rates(pause_after_write=0.3, stale_copy=0.3)
CALL_FAULTS = (
    Rates(fail=0.01, lose_answer=0.005, land_late=0.01, pause=0.002, busy=0.005, foreign_write=0.05, stale_copy=0.05),
    Rates(fail=0.03, lose_answer=0.03, land_late=0.05, pause=0.01, busy=0.01, foreign_write=0.1, stale_copy=0.1),
    LOSSES,
    Rates(pause_before_list=0.25),
)


@dataclass
class Report:
    """What came of one run, or of many."""

    runs: int = 0
    answered: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    unsafe: list[str] = field(default_factory=list)
    unhit_guards: list[str] = field(default_factory=list)

    @property
    def pinned(self) -> int:
        """Answers with a place."""
        return sum(count for outcome, count in self.outcomes.items() if not outcome.startswith("guarded"))

    def add(self, other: Report) -> None:
        """Take another run's report in."""
        self.runs += other.runs
        self.answered += other.answered
        self.outcomes.update(other.outcomes)
        self.faults.update(other.faults)
        self.unsafe += other.unsafe
        self.unhit_guards += other.unhit_guards

    def __str__(self) -> str:
        share = 100 * self.pinned / max(1, self.answered)
        faults = ", ".join(f"{count} x {kind}" for kind, count in self.faults.most_common()) or "none"
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        return (
            f"{self.runs} runs, {self.answered} answered requests, {share:.1f} % with a place, "
            f"{len(self.unsafe)} unsafe\n  outcomes: {outcomes}\n  faults: {faults}"
        )


def run(
    seed: int,
    *,
    faults: bool,
    substitutes: Substitutes | None = None,
    besides: Callable[[Life], object] = lambda life: None,
) -> Report:
    """One life from a seed. Without faults nothing fails, and nobody but the controllers interferes.

    `besides`: who else is in it.
    """
    choices = RandomChoices(seed)
    shape = UNLABELLED if faults and choices.chance(0.01) else SHAPES[choices.index(len(SHAPES))]
    world = World(choices)
    life = Life(world, shape, substitutes or Substitutes())
    life.oracle.most_bound = MOST_BOUND[shape.component, shape.replicas]
    life.binding = lambda: choices.between(0.02, 3.0)
    life.storing = lambda: choices.between(0.0, 0.2)
    count = 2 + choices.index(3)
    if faults and choices.chance(0.3):
        _store_slowly_under_losses(life, count)
    elif faults:
        for _ in range(count):
            life.add_replica(CALL_FAULTS[choices.index(len(CALL_FAULTS))], CLOCK_OFFSETS)
        life.storing = lambda: _storing_time(life)
    else:
        for _ in range(count):
            life.add_replica()
    if faults:
        _interfere(life)
    if faults and choices.chance(0.1):
        _store_at_the_last_moment(life)
    else:
        _bootstrap(life)
    besides(life)
    world.run()
    report = Report(1, life.answered, life.oracle.outcomes, life.trouble.counts)
    report.unsafe = [f"seed {seed}: {text}" for text in life.oracle.unsafe]
    report.unhit_guards = [f"seed {seed}: {text}" for text in life.unhit_guards]
    return report


def run_many(seeds: Iterable[int], *, faults: bool, substitutes: Callable[[], Substitutes] | None = None) -> Report:
    """Many lives."""
    total = Report()
    for seed in seeds:
        total.add(run(seed, faults=faults, substitutes=substitutes() if substitutes else None))
    return total


def _replica(life: Life) -> Replica:
    return life.replicas[life.world.choices.index(len(life.replicas))]


def _bootstrap(life: Life) -> None:
    """All members within a moment, alone or in pairs, each pod's claim just before it."""
    choices = life.world.choices
    ordinals = list(range(life.shape.replicas))
    spread = choices.between(0.0, 4.0)
    while ordinals:
        count = min(len(ordinals), 1 + choices.index(3))
        together, ordinals = ordinals[:count], ordinals[count:]
        budgets = [BUDGET - choices.between(0.0, 5.0) for _ in together]
        _later(life, choices.between(0.0, spread), partial(_create, life, together, budgets))


def _create(life: Life, ordinals: Sequence[int], budgets: Sequence[float]) -> None:
    life.create(ordinals, _replica(life), budgets=budgets)


def _storing_time(life: Life) -> float | None:
    """Mostly at once; sometimes as late as the request's time-out allows; or never."""
    choices = life.world.choices
    if choices.chance(0.05):
        return None
    return choices.between(0.0, 1.0 if choices.chance(0.8) else 55.0)


def _store_slowly_under_losses(life: Life, replicas: int) -> None:
    """Answers stay open for seconds, all replicas stop after their writes, and older annotations come back often."""
    choices = life.world.choices
    for _ in range(replicas):
        life.add_replica(LOSSES, CLOCK_OFFSETS)
    life.storing = lambda: choices.between(0.0, 20.0)


def _store_at_the_last_moment(life: Life) -> None:
    """One pod is stored when its request has nearly timed out, and just then a sibling is asked for the first time.

    The clocks of their API servers are as far apart as the expiry allows for.
    """
    choices = life.world.choices
    late = choices.between(59.4, 59.9)
    delays = iter((late,))
    life.storing = lambda: next(delays, None) or _storing_time(life)
    behind, ahead = life.add_replica(QUIET, CLOCK_OFFSETS[:1]), life.add_replica(CALL_FAULTS[-1], CLOCK_OFFSETS[1:])
    life.create([0], behind)
    _later(life, late - choices.between(0.0, 0.5), lambda: life.create([1], ahead))


def _later(life: Life, seconds: float, act: Callable[[], object]) -> None:
    def work() -> None:
        life.world.sleep(seconds)
        act()

    life.world.spawn("later", work)


def _interfere(life: Life) -> None:
    """What others do to the group in this life."""
    choices = life.world.choices
    for _ in range(choices.index(3)):
        _later(life, choices.between(0.0, 40.0), lambda: _recreate(life))
    if choices.chance(0.4):
        ordinal = choices.index(life.shape.replicas)
        _later(life, choices.between(0.0, 2.0), lambda: life.create([ordinal], _replica(life)))
    if choices.chance(0.1) and life.shape.nodes > 3:
        _later(life, choices.between(0.0, 2.0), lambda: life.cordon(choices.index(life.shape.nodes)))
    if choices.chance(0.3):
        ordinal = choices.index(life.shape.replicas)
        _later(life, choices.between(0.0, 3.0), partial(_defer_deleting_for_a_while, life, ordinal))
    if choices.chance(0.05):
        life.add_replica(CALL_FAULTS[0], CLOCK_OFFSETS, newer=True)
    if choices.chance(0.3):
        life.world.spawn("claim deleted", lambda: _delete_claim(life))


def _defer_deleting_for_a_while(life: Life, ordinal: int) -> None:
    """The lock moves to another claim, and perhaps back: tidb-operator takes the mark away when it scales out."""
    life.defer_deleting(ordinal)
    if life.world.choices.chance(0.7):
        _later(life, life.world.choices.between(0.0, 1.0), lambda: life.defer_deleting(ordinal, undo=True))


def _recreate(life: Life) -> None:
    """A pod is deleted (a restart, an eviction) and its controller asks for it again."""
    ordinal = life.world.choices.index(life.shape.replicas)
    life.delete_pod(ordinal)
    life.create([ordinal], _replica(life))


def _delete_claim(life: Life) -> None:
    """A claim is deleted, and perhaps made again."""
    choices = life.world.choices
    ordinal = choices.index(life.shape.replicas)
    life.world.sleep(choices.between(0.0, 3.0))
    life.delete_claim(ordinal)
    if choices.chance(0.5):
        life.world.sleep(choices.between(0.0, 2.0))
        life.make_claim(ordinal)
