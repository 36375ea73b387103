"""A plan as a table for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.planning.plan import Row, Verdict, all_placed

_STYLES = {Verdict.PLACED: "green", Verdict.NOT_PLACED: "red", Verdict.LEFT_ALONE: "dim", Verdict.EXISTS: "dim"}


def print_table(rows: Sequence[Row], console: Console) -> None:
    """Print a line for each pod, and how many have a place."""
    table = Table(box=None, pad_edge=False)
    for heading in ("POD", "OUTCOME", "NODE"):
        table.add_column(heading, overflow="fold")
    table.add_column("CAP", justify="right")
    table.add_column("REASON", overflow="fold", ratio=1)
    for row in rows:
        outcome = row.outcome + (f" ({row.cause})" if row.verdict is Verdict.NOT_PLACED and row.cause else "")
        cells = (f"{row.namespace}/{row.pod}", outcome, row.node or "-", _cap(row), row.reason or "-")
        table.add_row(*(Text(cell) for cell in cells), style=_STYLES[row.verdict])
    console.print(table)
    console.print(Text(summary(rows)))


def as_json(rows: Sequence[Row]) -> str:
    """The rows as one JSON object."""
    pods = [{**asdict(row), "verdict": row.verdict.value} for row in rows]
    return json.dumps({"allPlaced": all_placed(rows), "pods": pods}, indent=2)


def summary(rows: Sequence[Row]) -> str:
    """How many pods there are of each verdict, in one sentence."""
    counts = Counter(row.verdict for row in rows)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    return f"{len(rows)} pod(s): {', '.join(parts) or 'none to create'}"


def _cap(row: Row) -> str:
    return "-" if row.cap is None else str(row.cap)
