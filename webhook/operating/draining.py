"""Whether nodes can go now: what their loss would do to each group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.cluster.fleet import UnreadableGroup
from webhook.core.audit import losing
from webhook.core.audited import ZONE, GroupAudit, Loss, Survival
from webhook.core.findings import loss_text
from webhook.core.model import Group
from webhook.core.objects import Node
from webhook.errors import SettingsError
from webhook.operating.auditing import Report
from webhook.operating.names import no_such
from webhook.operating.page import listed

# For so many nodes it is also said whether each could go alone.
MOST_ALONE: Final = 50


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """What a group would lose. `safe`: what is left is certainly enough, or would be by what is assumed."""

    group: Group
    loss: Loss
    text: str
    safe: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the loss of these nodes, all at once and now, would do.

    `losses`: of the groups that lose something, those that would break first. `unjudged`: groups of which nothing can
    be said and that have pods there. `untouched`: how many groups have no running member there. `alone`: the nodes
    that could go alone, where not all can at once.
    """

    nodes: tuple[str, ...]
    losses: tuple[GroupLoss, ...]
    unjudged: tuple[UnreadableGroup, ...]
    untouched: int
    alone: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing would break."""
        return not self.unjudged and all(loss.safe for loss in self.losses)

    @property
    def summary(self) -> str:
        """The answer in one sentence."""
        these = listed(self.nodes)
        if self.safe:
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
            return ""
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


def verdict_on(report: Report, nodes: Collection[str], *, assume_isolation: bool = False) -> Verdict:
    """Judge the loss of these nodes. `assume_isolation`: take it that PD keeps copies apart where it is not known."""
    affected = _losses((row.audited for row in report.rows), nodes, assume_isolation=assume_isolation)
    unjudged = tuple(each for each in report.unreadable if any(pod.node_name in nodes for pod in each.pods))
    verdict = Verdict(
        nodes=tuple(sorted(nodes)),
        losses=tuple(sorted(affected, key=lambda loss: (loss.safe, str(loss.group)))),
        unjudged=unjudged,
        untouched=len(report.rows) - len(affected),
    )
    if verdict.safe or not 1 < len(nodes) <= MOST_ALONE:
        return verdict
    singly = (verdict_on(report, {name}, assume_isolation=assume_isolation) for name in sorted(nodes))
    alone = tuple(each.nodes[0] for each in singly if each.safe)
    return Verdict(verdict.nodes, verdict.losses, unjudged, verdict.untouched, alone)


def _losses(audits: Iterable[GroupAudit], nodes: Collection[str], *, assume_isolation: bool) -> list[GroupLoss]:
    enough = {Survival.SURVIVES, *([Survival.IF_ISOLATED] if assume_isolation else [])}
    found = ((audited, losing(audited, nodes)) for audited in audits)
    return [
        GroupLoss(audited.group, loss, loss_text(audited, loss), loss.survival in enough)
        for audited, loss in found
        if loss.members
    ]


def _known(name: str, nodes: Iterable[Node]) -> str:
    existing = [node.name for node in nodes]
    if name not in existing:
        raise no_such("node", name, existing)
    return name
