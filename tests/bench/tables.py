"""The tables: what was measured, beside what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from bench import calls
from bench.arms import ARMS, WITHOUT, Arm
from bench.calls import Latencies
from bench.figures import Spread, most_on_one_node, percentile, ratio, stacked_pairs
from bench.sets import Trial

Trials = Mapping[Arm, Sequence[Trial]]


def new_table(title: str, columns: Sequence[str], words: int) -> Table:
    """An empty table in Markdown; the first `words` columns hold words, the others figures."""
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < words else "right", no_wrap=True)
    return table


def of_sets(title: str, shapes: Mapping[str, Trials]) -> Table:
    """One row for each arm of each shape."""
    columns = ("pods", "arm", "runs", "placed", "s until the last has a node", "x without", "most on a node")
    costs = ("stacked pairs", "scheduler CPU ms/pod", "webhook CPU ms/pod")
    table = new_table(title, columns + costs, words=2)
    for shape, trials in shapes.items():
        base = Spread.of([trial.seconds for trial in trials[WITHOUT]]).middle
        for arm in ARMS:
            table.add_row(shape, arm.name, *_of_trials(trials[arm], base))
    return table


def _of_trials(trials: Sequence[Trial], base: float) -> list[str]:
    """The figures of one arm; the ratio is of medians, and only where all pods were placed."""
    pods, placed = sum(trial.wanted for trial in trials), sum(trial.placed for trial in trials)
    seconds = Spread.of([trial.seconds for trial in trials])
    return [
        str(len(trials)),
        f"{placed} of {pods}",
        str(seconds),
        ratio(seconds.middle, base) if placed == pods else "-",
        str(max(most_on_one_node(trial.pods) for trial in trials)),
        str(sum(stacked_pairs(trial.pods) for trial in trials)),
        f"{1000 * sum(trial.scheduler for trial in trials) / pods:.1f}",
        f"{1000 * sum(trial.webhook for trial in trials) / pods:.1f}",
    ]


def of_calls(title: str, found: Mapping[str, Mapping[Arm, Latencies]]) -> Table:
    """One row for each arm of each kind of call, at each pace."""
    columns = ("pace", "call", "arm", "calls", "p50 ms", "p99 ms", "p50 x without", "p50 x PATCH", "p99 x PATCH")
    table = new_table(title, columns, words=3)
    for pace, latencies in found.items():
        for kind in (calls.MEMBER, calls.ORDINARY, calls.PATCH):
            base = percentile(latencies[WITHOUT].by_kind[kind], 50)
            for arm in ARMS:
                times, writes = (latencies[arm].by_kind[each] for each in (kind, calls.PATCH))
                middle, late = percentile(times, 50), percentile(times, 99)
                table.add_row(
                    pace,
                    kind,
                    arm.name,
                    str(len(times)),
                    f"{1000 * middle:.1f}",
                    f"{1000 * late:.1f}",
                    ratio(middle, base),
                    ratio(middle, percentile(writes, 50)),
                    ratio(late, percentile(writes, 99)),
                )
    return table
