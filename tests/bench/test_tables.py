from __future__ import annotations

from e2e.objects import Object, operator_labels
from rich.console import Console
from rich.table import Table

from bench import tables
from bench.arms import ANTI_AFFINITY, ARMS, WEBHOOK, WITHOUT
from bench.calls import MEMBER, ORDINARY, PATCH, Latencies
from bench.sets import Trial


def pod(node: str) -> Object:
    metadata = {"namespace": "ns", "labels": operator_labels("db", "tikv")}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def trial(seconds: float, nodes: list[str], scheduler: float = 0.0, webhook: float = 0.0) -> Trial:
    return Trial([pod(node) for node in nodes], len(nodes), seconds, scheduler, webhook, freed=0, listed_again=0)


def rows_of(table: Table) -> list[list[str]]:
    console = Console(width=250)
    with console.capture() as capture:
        console.print(table)
    lines = [line for line in capture.get().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in lines[2:]]


def test_times_are_compared_with_those_without_the_webhook_in_the_same_shape():
    trials = {arm: [trial(1.0, ["a", "b"]), trial(2.0, ["a", "b"])] for arm in ARMS}
    trials[WEBHOOK] = [trial(3.0, ["a", "b"], 0.004, 0.1), trial(3.0, ["a", "b"], 0.004, 0.1)]

    rows = rows_of(tables.of_sets("title", {"2 on 2": trials}))

    assert [row[1] for row in rows] == [arm.name for arm in ARMS]
    assert rows[0] == ["2 on 2", WITHOUT.name, "2", "4 of 4", "1.00 / 1.50 / 2.00", "1.00", "1", "0", "0.0", "0.0"]
    assert rows[-1] == ["2 on 2", WEBHOOK.name, "2", "4 of 4", "3.00 / 3.00 / 3.00", "2.00", "1", "0", "2.0", "50.0"]


def test_an_arm_that_did_not_place_all_has_no_ratio_and_its_stacked_pairs_are_counted():
    trials = {arm: [trial(1.0, ["a", "a", "b"]), trial(1.0, ["a", "a", "a"])] for arm in ARMS}
    trials[ANTI_AFFINITY] = [trial(1.0, ["a", "b", ""])] * 2

    rows = rows_of(tables.of_sets("title", {"3 on 2": trials}))

    assert rows[0][3:8] == ["6 of 6", "1.00 / 1.00 / 1.00", "1.00", "3", "4"]
    assert rows[1][3:8] == ["4 of 6", "1.00 / 1.00 / 1.00", "-", "1", "0"]


def test_calls_are_compared_with_those_without_the_webhook_and_with_the_writes_of_their_arm():
    latencies = {arm: Latencies({MEMBER: [0.01] * 99 + [0.1], ORDINARY: [0.005], PATCH: [0.005]}) for arm in ARMS}
    latencies[WEBHOOK] = Latencies({MEMBER: [0.1] * 50, ORDINARY: [0.006], PATCH: [0.01]})

    rows = rows_of(tables.of_calls("title", {"alone": latencies}))

    assert len(rows) == 3 * len(ARMS)
    assert rows[0] == ["alone", MEMBER, WITHOUT.name, "100", "10.0", "10.0", "1.00", "2.00", "2.00"]
    assert rows[3] == ["alone", MEMBER, WEBHOOK.name, "50", "100.0", "100.0", "10.00", "10.00", "10.00"]
    assert rows[7] == ["alone", ORDINARY, WEBHOOK.name, "1", "6.0", "6.0", "1.20", "0.60", "0.60"]
