"""The picture of an audit: nodes and zones as columns, groups as rows, members as marks; no markup in here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from webhook.core.audited import ZONE, AuditedMember
from webhook.core.objects import Node
from webhook.operating.auditing import Report, Row

# With more nodes than this each cluster has a table of its own, of the nodes that it uses.
MOST_COLUMNS: Final = 40
NO_ZONE: Final = "no zone"


@dataclass(frozen=True, slots=True)
class Mark:
    """A member. `kind`: running, waiting (it has a pod that does not run), missing (no pod), unwanted."""

    name: str
    kind: str
    guarded: bool = False

    @property
    def title(self) -> str:
        """What is said of it when pointed at."""
        return f"{self.name}: {self.kind}{', guarded' if self.guarded else ''}"


@dataclass(frozen=True, slots=True)
class Column:
    """A node. `usable` False: it is cordoned or not ready."""

    name: str
    zone: str
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A group: for each column its members there, and whether these are too many; `homeless` have no such node."""

    row: Row
    cells: tuple[tuple[tuple[Mark, ...], bool], ...]
    homeless: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: its columns in order, the zones above them with how many columns each has, and its lines."""

    title: str
    columns: tuple[Column, ...]
    zones: tuple[tuple[str, int], ...]
    lines: tuple[Line, ...]


def sheets_of(report: Report) -> tuple[Sheet, ...]:
    """The tables: one of all nodes where these are few, else one for each cluster."""
    if len(report.nodes) <= MOST_COLUMNS:
        return (_sheet("", report.nodes, report.rows),) if report.rows else ()
    by_name = {node.name: node for node in report.nodes}
    clusters = groupby(report.rows, key=lambda row: f"{row.group.namespace}/{row.group.cluster}")
    return tuple(_of_cluster(title, tuple(rows), by_name) for title, rows in clusters)


def _of_cluster(title: str, rows: Sequence[Row], by_name: Mapping[str, Node]) -> Sheet:
    used = {member.node for row in rows for member in row.audited.members}
    return _sheet(title, [by_name[name] for name in sorted(used) if name in by_name], rows)


def _sheet(title: str, nodes: Iterable[Node], rows: Iterable[Row]) -> Sheet:
    in_order = sorted(nodes, key=lambda node: (node.labels.get(ZONE, ""), node.name))
    columns = tuple(
        Column(node.name, node.labels.get(ZONE, "") or NO_ZONE, node.ready and not node.unschedulable)
        for node in in_order
    )
    zones = tuple((zone, len(tuple(there))) for zone, there in groupby(columns, key=lambda column: column.zone))
    return Sheet(title, columns, zones, tuple(_line(row, in_order) for row in rows))


def _line(row: Row, nodes: Sequence[Node]) -> Line:
    audited = row.audited
    by_node: dict[str, list[Mark]] = {}
    for member in audited.members:
        by_node.setdefault(member.node, []).append(_mark(member))
    cells = tuple(
        (tuple(by_node.pop(node.name, ())), node.labels.get(audited.topology_key, "") in audited.stacked)
        for node in nodes
    )
    homeless = [mark for marks in by_node.values() for mark in marks]
    return Line(row, cells, (*homeless, *_missing(audited.missing)))


def _mark(member: AuditedMember) -> Mark:
    kind = "unwanted" if not member.desired else "running" if member.running else "waiting"
    return Mark(member.name, kind, member.guarded)


def _missing(number: int) -> Iterator[Mark]:
    return (Mark("a member without a pod", "missing") for _ in range(number))
