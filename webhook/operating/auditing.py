"""The audit of all groups: what `audit` shows, and whether all is well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from webhook.cluster.fleet import Fleet, UnreadableGroup, read_fleet
from webhook.cluster.reader import Reader
from webhook.core.audit import audit
from webhook.core.audited import GroupAudit
from webhook.core.findings import Finding, findings, survival_text
from webhook.core.model import Group
from webhook.core.objects import Node
from webhook.operating.absent import missing_namespace
from webhook.operating.connecting import Connection


@dataclass(frozen=True, slots=True)
class Row:
    """One group with what was found about it."""

    audited: GroupAudit
    findings: tuple[Finding, ...]

    @property
    def group(self) -> Group:
        """Which group it is."""
        return self.audited.group

    @property
    def survives(self) -> str:
        """What it survives now, in words."""
        return survival_text(self.audited)

    @property
    def breaches(self) -> tuple[Finding, ...]:
        """What is not as it should be."""
        return tuple(finding for finding in self.findings if finding.breach)

    @property
    def running(self) -> int:
        """How many of its members run."""
        return sum(member.running for member in self.audited.members if member.desired)


@dataclass(frozen=True)
class Report:
    """All groups by name, those that could not be judged, and the nodes. `now`: seconds since 1970, 0: not known."""

    rows: tuple[Row, ...]
    unreadable: tuple[UnreadableGroup, ...]
    nodes: tuple[Node, ...]
    now: int = 0

    @cached_property
    def troubled(self) -> tuple[Row, ...]:
        """The groups with a breach."""
        return tuple(row for row in self.rows if row.breaches)

    @property
    def all_well(self) -> bool:
        """Whether every group could be judged, and is as it should be."""
        return not self.troubled and not self.unreadable

    @property
    def summary(self) -> str:
        """All of it in one sentence."""
        number = len(self.rows) + len(self.unreadable)
        if not number:
            return "no group was found: no pods of TiKV, PD or DM-master, and no StatefulSet that opted in"
        parts = [f"{len(self.troubled)} with breaches" if self.troubled else ""]
        parts.append(f"{len(self.unreadable)} that could not be judged" if self.unreadable else "")
        told = " and ".join(filter(None, parts)) or "all as they should be"
        return f"{number} group{'s' if number > 1 else ''}: {told}"


def report_of(fleet: Fleet) -> Report:
    """Audit every group that was read."""
    index = fleet.index
    audits = (audit(found.snapshot, found.isolated_by, index) for found in fleet.groups)
    rows = tuple(Row(audited, findings(audited)) for audited in audits)
    now = max((found.snapshot.now for found in fleet.groups), default=0)
    return Report(rows, fleet.unreadable, fleet.nodes, now)


def read_report(connection: Connection, namespace: str = "") -> Report:
    """Audit the groups of a namespace ("": of all). Raises SettingsError for a namespace that is not there."""
    fleet = read_fleet(connection.reader, namespace)
    if namespace and not fleet.groups and not fleet.unreadable:
        raise_if_missing(connection.reader, namespace)
    return report_of(fleet)


def raise_if_missing(reader: Reader, namespace: str) -> None:
    """Raise SettingsError for a namespace that is certainly not there."""
    problem = missing_namespace(reader, namespace)
    if problem is not None:
        raise problem
