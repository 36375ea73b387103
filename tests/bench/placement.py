"""The webhook beside what it is instead of, on a real control plane: times, latencies, stacked pairs.

The arms take turns within each repetition, so that whatever else the machine does falls on all of them, and every
repetition begins with another arm. Ratios are of medians to the arm without webhook in the same run. Repetitions with
a number below 0 go before the others and do not count. The webhook's replicas run all the time, beside the other arms
too: what that costs is in their rows.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
from e2e import objects
from e2e.objects import Object
from e2e.place import node_of
from e2e.replicas import tally
from rich.console import Console

from bench import calls, tables
from bench.arms import ARMS, WEBHOOK, Arm, turns
from bench.calls import Latencies
from bench.ground import REPLICAS, Ground, new_ground
from bench.sets import Sets, Trial, place_sets, refusal_of
from bench.usage import cpu_seconds, machine_seconds

Say = Callable[[object], None]

SHAPES = ((3, 3), (9, 9), (9, 3))
"""Pods of one set, and nodes."""

CROWD = 30
"""Clusters at once, and nodes."""

SET_LIMIT, CROWD_LIMIT = 60.0, 240.0
"""Seconds after which a pod without a node counts as not placed."""


def measure_sets(ground: Ground, say: Say, repetitions: range, shapes: Sequence[tuple[int, int]] = SHAPES) -> None:
    """(a) One set of TiKV, its pods created in parallel."""
    found: dict[str, dict[Arm, list[Trial]]] = {}
    for pods, nodes in shapes:
        # Four times as many volumes as are needed: the scheduler is to choose, and nobody to run out of them.
        with ground.nodes(nodes, volumes=4 * -(-pods // nodes)):

            def sets(number: int, pods: int = pods, nodes: int = nodes) -> Sets:
                return [(f"s{pods}-{nodes}-{number}", "tikv", pods)]

            found[f"{pods} on {nodes} nodes"] = _trials(ground, repetitions, sets, nodes, SET_LIMIT)
    say(tables.of_sets("(a) one set of TiKV, Parallel, WaitForFirstConsumer local volumes", found))
    for shape, trials in found.items():
        _say_of_webhook(say, shape, trials[WEBHOOK])


def measure_calls(ground: Ground, say: Say, repetitions: range, clusters: int = calls.CLUSTERS) -> None:
    """(b) The calls that create pods."""
    found = {pace: {arm: Latencies() for arm in ARMS} for pace in calls.PACES}
    members: list[Object] = []
    # More volumes than there can be members on a node: this part is about calls.
    with ground.nodes(max(clusters, calls.MEMBERS), volumes=2 * clusters + calls.MEMBERS) as nodes:
        for repetition in repetitions:
            for arm in turns(repetition):
                counted = {pace: found[pace][arm] if repetition >= 0 else Latencies() for pace in calls.PACES}
                pods = calls.measure(ground, arm, clusters, counted)
                click.echo(f"calls, repetition {repetition + 1}, {arm.name}: {len(pods)} members", err=True)
                members += pods if arm.webhook else []
    say(tables.of_calls(f"(b) create calls, members of {clusters} clusters in turn, {len(nodes)} nodes", found))
    _say_outcomes(say, "members", members)


def measure_crowd(ground: Ground, say: Say, repetitions: range, clusters: int = CROWD) -> None:
    """(c) Many clusters of 3 PD and 3 TiKV at once, on as many nodes that are unevenly full."""
    with ground.nodes(clusters, volumes=8) as names, _filled(ground, names):

        def sets(number: int) -> Sets:
            return [(f"w{number}-{index}", component, 3) for index in range(clusters) for component in ("pd", "tikv")]

        found = _trials(ground, repetitions, sets, clusters, CROWD_LIMIT)
    shape = f"{clusters} x (3 PD + 3 TiKV)"
    say(tables.of_sets(f"(c) {clusters} clusters at once on {clusters} nodes", {shape: found}))
    _say_of_webhook(say, shape, found[WEBHOOK])


PARTS: dict[str, Callable[[Ground, Say, range], None]] = {
    "sets": measure_sets,
    "calls": measure_calls,
    "crowd": measure_crowd,
}


def main(parts: Sequence[str], repetitions: int, warm_ups: int, folder: Path | None) -> None:
    """Measure the parts and print a table for each; logs stay in the folder if one is given."""
    counted = range(-warm_ups, repetitions)
    console = Console(width=220 if not sys.stdout.isatty() else None)
    with _directory(folder) as directory, new_ground(directory) as ground:
        console.print(_conditions(ground, repetitions))
        for part in parts:
            with _shared(ground, console.print):
                PARTS[part](ground, console.print, counted)


def _trials(
    ground: Ground, repetitions: range, sets: Callable[[int], Sets], nodes: int, limit: float
) -> dict[Arm, list[Trial]]:
    found: dict[Arm, list[Trial]] = {arm: [] for arm in ARMS}
    for repetition in repetitions:
        for arm in turns(repetition):
            # Another name each time: nothing that remains of an earlier set can be taken for this one's.
            trial = place_sets(ground, arm, sets(repetition + 1), nodes=nodes, limit=limit)
            progress = f"{trial.placed} of {trial.wanted} in {trial.seconds:.2f} s"
            click.echo(f"{nodes} nodes, repetition {repetition + 1}, {arm.name}: {progress}", err=True)
            if repetition >= 0:
                found[arm].append(trial)
    return found


@contextmanager
def _filled(ground: Ground, names: Sequence[str]) -> Iterator[None]:
    """Nodes between empty and 72 % full."""
    namespace = "bench-fillers"
    ground.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    ground.api.wait_for("ServiceAccount", bool, namespace, fields="metadata.name=default")
    for index, name in enumerate(names):
        tenths = 7 * index % 10
        if tenths:
            filler = objects.filler_pod(namespace, name, cpu=f"{640 * tenths}m", memory=f"{1311 * tenths}Mi")
            ground.api.create(filler)
    yield
    ground.api.delete_all("Pod", namespace, gracePeriodSeconds=0)
    ground.api.delete("Namespace", namespace)


def _say_of_webhook(say: Say, what: str, trials: Sequence[Trial]) -> None:
    _say_outcomes(say, what, [pod for trial in trials for pod in trial.pods])
    if freed := [trial.freed for trial in trials if trial.freed]:
        say(f"- the controller freed pods that could not run where they were pinned: {', '.join(map(str, freed))}")


def _say_outcomes(say: Say, what: str, pods: Sequence[Object]) -> None:
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally(pods).items()))
    say(f"What the webhook gave, {what}: {counted}")
    for message, count in Counter(refusal_of(pod) for pod in pods if not node_of(pod)).most_common():
        say(f"- {count} without a node: {message}")


def _conditions(ground: Ground, repetitions: int) -> str:
    kubernetes = ground.api.request("GET", "/version")["gitVersion"]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: Kubernetes {kubernetes}, Python {platform.python_version()}, "
        f"tidb-ha-webhook {version('tidb-ha-webhook')} ({REPLICAS} replicas, 1 controller), {os.cpu_count()} cores; "
        f"{repetitions} repetitions; three figures are min / median / max"
    )


@contextmanager
def _shared(ground: Ground, say: Say) -> Iterator[None]:
    """Say afterwards how long it took, and how much of the machine was used by others."""

    def others() -> float:
        return machine_seconds() - cpu_seconds(ground.groups | {os.getpgrp()})

    before, began = others(), time.monotonic()
    yield
    seconds = time.monotonic() - began
    share = (others() - before) / seconds / (os.cpu_count() or 1)
    say(f"{seconds:.0f} s, in which everything else on the machine took {100 * share:.0f} % of its cores\n")


@contextmanager
def _directory(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        # One for each run: the keys of an earlier one are of no use.
        yield Path(tempfile.mkdtemp(prefix="bench-", dir=folder))
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        yield Path(temporary)
