"""An audit as a table for people, or as JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.core.audited import GroupAudit, Margin
from webhook.core.decision_record import largest_counts
from webhook.core.findings import word
from webhook.operating.auditing import Report, Row
from webhook.operating.page import one_line

HEADINGS: Final = ("GROUP", "RUNNING", "CAP", "FULLEST", "FINDING")


def print_table(report: Report, console: Console) -> None:
    """Print each group with what it survives and what was found, breaches first."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.print(Text("\n".join(_lines(report))), soft_wrap=True)
    elif report.rows or report.unreadable:
        table = Table(box=None, pad_edge=False)
        for heading in HEADINGS:
            table.add_column(heading, overflow="fold", ratio=1 if heading == "FINDING" else None)
        for row in sorted(report.rows, key=lambda row: not row.breaches):
            _add(table, row)
        for unreadable in report.unreadable:
            cells = (str(unreadable.group), "?", "?", "?", f"breach: cannot be judged: {unreadable.why}")
            table.add_row(*(Text(one_line(cell)) for cell in cells), style="red")
        console.print(table)
    console.print(Text(report.summary))


def _lines(report: Report) -> Iterator[str]:
    """For other programs, such as grep: a line for each thing, however long, with the group in each."""
    for row in sorted(report.rows, key=lambda row: not row.breaches):
        running = f"{row.running}/{row.audited.replicas}"
        yield f"{row.group}  {running}  cap {cap_text(row.audited)}  {one_line(row.survives)}"
        for finding in row.findings:
            level = "breach" if finding.breach else "note"
            yield f"{row.group}  {level}: {finding.kind.value}: {one_line(finding.text)}"
    for each in report.unreadable:
        yield f"{each.group}  breach: cannot be judged: {one_line(each.why)}"


def _add(table: Table, row: Row) -> None:
    audited = row.audited
    cells = (str(row.group), f"{row.running}/{audited.replicas}", cap_text(audited), fullest(audited), row.survives)
    table.add_row(*(Text(one_line(cell)) for cell in cells), style="red" if row.breaches else None)
    for finding in row.findings:
        said = f"{'breach' if finding.breach else 'note'}: {finding.kind.value}: {finding.text}"
        style = "red" if finding.breach else "dim"
        table.add_row("", "", "", "", Text(one_line(said), style=style))


def cap_text(audited: GroupAudit) -> str:
    """The cap as a table has it."""
    return "none" if audited.cap is None else str(audited.cap)


def fullest(audited: GroupAudit) -> str:
    """The domain with the most members, and how many these are."""
    counts = largest_counts(audited.counts)
    return f"{counts[0][0]}: {counts[0][1]}" if counts else "-"


def as_json(report: Report) -> str:
    """The audit as one JSON object."""
    return json.dumps(
        {
            "allWell": report.all_well,
            "summary": report.summary,
            "groups": [_group(row) for row in report.rows],
            "notJudged": [{"group": str(each.group), "why": each.why} for each in report.unreadable],
        },
        indent=2,
    )


def _group(row: Row) -> dict[str, Any]:
    audited = row.audited
    return {
        "group": str(row.group),
        "namespace": row.group.namespace,
        "cluster": row.group.cluster,
        "component": row.group.component,
        "topologyKey": audited.topology_key,
        "replicas": audited.replicas,
        "running": row.running,
        "withoutPod": audited.missing,
        "cap": audited.cap,
        "counts": dict(audited.counts),
        "now": audited.now.value,
        "survives": row.survives,
        "margins": [_margin(margin) for margin in audited.margins],
        "members": [
            {"name": member.name, "node": member.node, "domain": member.domain, "running": member.running}
            for member in audited.members
        ],
        "findings": [
            {"kind": finding.kind.value, "breach": finding.breach, "text": finding.text} for finding in row.findings
        ],
    }


def _margin(margin: Margin) -> dict[str, Any]:
    return {
        "topologyKey": margin.topology_key,
        "domain": word(margin.topology_key),
        "domainsInUse": margin.domains,
        "survives": margin.survives,
        "survivesIfIsolated": margin.best,
        # A quorum has no copies that could be kept apart.
        "isolation": None if margin.isolated is None else margin.isolation.value,
    }
