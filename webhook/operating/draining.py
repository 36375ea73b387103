"""Whether nodes can go now: what their loss would do to each group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webhook.cluster.door import PODS
from webhook.cluster.fleet import UnreadableGroup
from webhook.cluster.kinds import DUMP_COMMAND
from webhook.core.audit import losing
from webhook.core.audited import ZONE, GroupAudit, Loss, Survival
from webhook.core.findings import loss_text
from webhook.core.model import Group
from webhook.core.objects import Node
from webhook.errors import NoAnswer, SettingsError
from webhook.operating.auditing import Report
from webhook.operating.connecting import Connection
from webhook.operating.names import no_such
from webhook.operating.page import listed

# For so many nodes it is also said whether each could go alone.
MOST_ALONE: Final = 50


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """What a group would lose. `safe`: what is left is certainly enough, or would be by what is assumed.

    `down`: whether some of its members do not run as it is.
    """

    group: Group
    loss: Loss
    text: str
    safe: bool
    down: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the loss of these nodes, all at once and now, would do.

    `losses`: of the groups that lose something, those that would break first. `unjudged`: groups of which nothing can
    be said and that have pods there. `untouched`: how many groups have nothing there. `alone`: the nodes that could go
    alone, where not all can at once. `broken`: groups that may have lost quorum or data already, with nothing there.
    """

    nodes: tuple[str, ...]
    losses: tuple[GroupLoss, ...]
    unjudged: tuple[UnreadableGroup, ...]
    untouched: int
    alone: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing would break."""
        return not self.unjudged and all(loss.safe for loss in self.losses)

    @property
    def summary(self) -> str:
        """The answer in one sentence."""
        these = listed(self.nodes)
        if self.safe:
            if self.broken:
                return f"yes: {these} may go, but broken already are {listed(self.broken)}, which have nothing there"
            return f"yes: without {these} quorum and data of every group are still there"
        bad = [str(loss.group) for loss in self.losses if not loss.safe]
        parts = [f"{listed(bad)} would not certainly have enough left"] if bad else []
        unjudged = [str(each.group) for each in self.unjudged]
        parts += [f"{listed(unjudged)} cannot be judged"] if unjudged else []
        return f"no: without {these} {'; '.join(parts)}"

    @property
    def advice(self) -> str:
        """What can be done instead, "" if there is nothing to say."""
        if not self.alone:
            idle = any(not loss.safe and loss.down for loss in self.losses)
            return "first see to those that do not run: tidb-ha-webhook why POD -n NAMESPACE" if idle else ""
        which = "each of them" if len(self.alone) == len(self.nodes) else listed(self.alone)
        return f"alone, {which} could go: one at a time, and the next when all members run again"


def nodes_of(report: Report, names: Sequence[str], zones: Sequence[str]) -> tuple[str, ...]:
    """The nodes that are meant, by name. Raises SettingsError for a name or a zone that is not there."""
    by_zone: dict[str, list[str]] = {}
    for node in report.nodes:
        by_zone.setdefault(node.labels.get(ZONE, ""), []).append(node.name)
    wanted = [_known(name, report.nodes) for name in names]
    for zone in zones:
        if not zone or zone not in by_zone:
            raise no_such("zone", zone, filter(None, by_zone), f"by the node label {ZONE}")
        wanted += by_zone[zone]
    if not wanted:
        raise SettingsError("no node was named: give nodes, or --zone")
    return tuple(sorted(set(wanted)))


def raise_if_blind(connection: Connection) -> None:
    """Raise NoAnswer for a dump without any pod: nothing would run anywhere, and every node could go."""
    if connection.on_dump and not connection.reader.list(PODS).items:
        raise NoAnswer(f"the dump holds no pods, so what runs where is not known; it is to be made by: {DUMP_COMMAND}")


def verdict_on(report: Report, nodes: Collection[str], *, assume_isolation: bool = False) -> Verdict:
    """Judge the loss of these nodes. `assume_isolation`: take it that PD keeps copies apart where it is not known."""
    audits = {row.group: row.audited for row in report.rows}
    affected = _losses(audits.values(), nodes, assume_isolation=assume_isolation)
    unjudged = tuple(each for each in report.unreadable if any(pod.node_name in nodes for pod in each.pods))
    verdict = Verdict(
        nodes=tuple(sorted(nodes)),
        losses=tuple(sorted(affected, key=lambda loss: (loss.safe, str(loss.group)))),
        unjudged=unjudged,
        untouched=len(report.rows) - len(affected),
        broken=_broken(audits, affected),
    )
    if verdict.safe or not 1 < len(nodes) <= MOST_ALONE:
        return verdict
    singly = (verdict_on(report, {name}, assume_isolation=assume_isolation) for name in sorted(nodes))
    alone = tuple(each.nodes[0] for each in singly if each.safe)
    return replace(verdict, alone=alone)


def _broken(audits: Mapping[Group, GroupAudit], affected: Iterable[GroupLoss]) -> tuple[str, ...]:
    there = {loss.group for loss in affected}
    return tuple(str(group) for group, found in audits.items() if found.now is Survival.BREAKS and group not in there)


def _losses(audits: Iterable[GroupAudit], nodes: Collection[str], *, assume_isolation: bool) -> list[GroupLoss]:
    enough = {Survival.SURVIVES, *([Survival.IF_ISOLATED] if assume_isolation else [])}
    found = ((audited, losing(audited, nodes)) for audited in audits)
    return [
        GroupLoss(audited.group, loss, loss_text(audited, loss), loss.survival in enough, down=bool(audited.resting))
        for audited, loss in found
        if loss.concerns
    ]


def _known(name: str, nodes: Iterable[Node]) -> str:
    existing = [node.name for node in nodes]
    if name not in existing:
        raise no_such("node", name, existing)
    return name
