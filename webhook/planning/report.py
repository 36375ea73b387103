"""A plan as a table for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.planning.doubts import Doubt
from webhook.planning.rows import Row, Verdict, all_placed

_STYLES: Final = {
    Verdict.PLACED: "green",
    Verdict.ABOVE_CAP: "yellow",
    Verdict.MAYBE_ABOVE_CAP: "yellow",
    Verdict.NOT_PLACED: "red",
    Verdict.UNKNOWN: "red",
    Verdict.LEFT_ALONE: "dim",
    Verdict.EXISTS: "dim",
}
_HEADINGS: Final = ("POD", "OUTCOME", "NODE", "CAP", "REASON")
# Columns between two cells, and the least that reasons are given of a line, below which there is no table.
_GAP: Final = 2
_LEAST_FOR_REASONS: Final = 24

ALL_PLACED: Final = 0
NOT_ALL_PLACED: Final = 1
NOT_KNOWN: Final = 3


def exit_code(rows: Sequence[Row], doubts: Iterable[Doubt]) -> int:
    """0 if every member has its place, 1 if one has not, 3 if the dump lacks what the answers rest on."""
    if not is_known(rows, doubts):
        return NOT_KNOWN
    return ALL_PLACED if all_placed(rows) else NOT_ALL_PLACED


def is_known(rows: Iterable[Row], doubts: Iterable[Doubt]) -> bool:
    """Whether the answers can be relied on."""
    return not any(doubt.decisive for doubt in doubts) and all(row.known for row in rows)


def print_table(rows: Sequence[Row], doubts: Sequence[Doubt], console: Console) -> None:
    """Print a line for each pod, and how many have a place.

    Names are never broken: where a terminal is too narrow for the table each pod is a paragraph, and where there is
    no terminal nothing is wrapped at all.
    """
    cells = [_cells(row) for row in rows]
    if not console.is_terminal:
        for line in _unwrapped(cells):
            console.print(Text(line), soft_wrap=True)
    elif sum(_widths(cells)[:-1]) + _LEAST_FOR_REASONS <= console.width:
        _print_columns(rows, cells, console)
    else:
        for row, (pod, outcome, node, cap, reason) in zip(rows, cells, strict=True):
            console.print(Text(f"{pod}: {outcome}, node {node}, cap {cap}", _STYLES[row.verdict]), soft_wrap=True)
            console.print(Text(f"  {reason}"), soft_wrap=True)
    console.print(Text(summary(rows, doubts)), soft_wrap=True)


def as_json(rows: Sequence[Row], doubts: Sequence[Doubt]) -> str:
    """The rows as one JSON object."""
    pods = [{**asdict(row), "verdict": row.verdict.value} for row in rows]
    known = is_known(rows, doubts)
    top = {"allPlaced": known and all_placed(rows), "known": known, "warnings": [doubt.text for doubt in doubts]}
    return json.dumps({**top, "pods": pods}, indent=2)


def summary(rows: Sequence[Row], doubts: Iterable[Doubt] = ()) -> str:
    """How many pods there are of each verdict, in one sentence."""
    counts = Counter(row.verdict for row in rows)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    unknown = "" if is_known(rows, doubts) else "; the dump lacks what this rests on, see the warnings"
    return f"{len(rows)} pod(s): {', '.join(parts) or 'none to create'}{unknown}"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    outcome = row.outcome + (f" ({row.cause})" if row.verdict is Verdict.NOT_PLACED and row.cause else "")
    cap = "-" if row.cap is None else str(row.cap)
    return f"{row.namespace}/{row.pod}", outcome, row.node or "-", cap, row.reason or "-"


def _widths(cells: Iterable[Sequence[str]]) -> list[int]:
    """Of each column, with the gap behind it."""
    lines = (_HEADINGS, *cells)
    return [max(len(line[column]) for line in lines) + _GAP for column in range(len(_HEADINGS))]


def _unwrapped(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """A line for the headings and each pod, however long."""
    widths = _widths(cells)
    for line in (_HEADINGS, *cells):
        yield "".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _print_columns(rows: Sequence[Row], cells: Iterable[Sequence[str]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for heading in _HEADINGS[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(_HEADINGS[-1], overflow="fold", ratio=1)
    for row, line in zip(rows, cells, strict=True):
        table.add_row(*map(Text, line), style=_STYLES[row.verdict])
    console.print(table)
