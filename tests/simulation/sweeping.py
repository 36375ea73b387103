"""The controller's sweeps in a life: at any time, through a door with faults of its own; and sweeps that are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from webhook.core.model import Entry, Group
from webhook.core.objects import Pod
from webhook.deadline import Deadline
from webhook.errors import ApiError, OutOfTime
from webhook.locking.sweeping import Sweep

from .faults import REQUEST_TIMEOUT
from .life import Life
from .scenarios import CALL_FAULTS, CLOCK_OFFSETS, QUIET

SWEEPS = 12
BUDGET = 9.0


@dataclass
class Swept:
    """What sweeps did over many lives: `claims` were written, so many sweeps had nothing to do or came to nothing."""

    counts: Counter[str] = field(default_factory=Counter)


def with_sweeps(swept: Swept, sweep_type: type[Sweep] = Sweep, store: Any = None) -> Callable[[Life], object]:
    """Sweeps at random times of a life that goes on for as long as entries can."""

    def add(life: Life) -> None:
        if life.shape.labelled and life.world.choices.chance(0.5):
            # Else the claims are Bound when their pods are, and then these return to their data.
            for ordinal in range(life.shape.replicas):
                life.bind_anywhere(ordinal)
        rates = CALL_FAULTS[life.world.choices.index(len(CALL_FAULTS))]
        sweep = a_sweep(life, sweep_type, store, rates)

        def work() -> None:
            for _ in range(SWEEPS):
                life.world.sleep(life.world.choices.between(0.0, 2 * REQUEST_TIMEOUT / SWEEPS))
                swept.counts[run_once(life, sweep)] += 1

        life.world.spawn("sweeps", work)

    return add


def a_sweep(life: Life, sweep_type: type[Sweep] = Sweep, store: Any = None, rates: Any = QUIET) -> Sweep:
    """The sweep of one more process."""
    replica = life.add_replica(rates, CLOCK_OFFSETS if rates is not QUIET else (0.0,))
    # Nobody asks this one for admission.
    life.replicas.remove(replica)
    cluster = (store or life.substitutes.store)(replica.door)
    return sweep_type(cluster, replica.tools.memory, life.substitutes.expiry)


def run_once(life: Life, sweep: Sweep) -> str:
    """One sweep, and what came of it."""
    try:
        count = sweep.run(life.group, Deadline(life.world.now + BUDGET, life.world.clock))
    except (ApiError, OutOfTime):
        return "failed"
    return "swept" if count else "nothing to do"


class EndsByName(Sweep):
    """An entry is over when any pod of its name is visible."""

    def _all_over(self, group: Group, entries: Iterable[Entry], pods: Iterable[Pod], now: int) -> bool:
        visible = {pod.name for pod in pods}
        living = [entry for entry in entries if entry.member not in visible]
        return super()._all_over(group, living, pods, now)


class TakesWhatIsInFlight(Sweep):
    """Everything is over."""

    def _all_over(self, group: Group, entries: Iterable[Entry], pods: Iterable[Pod], now: int) -> bool:
        return True


WRONG_SWEEPS = {"takes what is in flight": TakesWhatIsInFlight}
