"""The leader's audit, each period: every group against its cap, as metrics and as events on the owners.

The same look finds the groups whose records can be swept. All calls of an audit begin a tenth of a second apart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from webhook.audit_metrics import AuditFigures, GroupMargin
from webhook.cluster.fleet import Fleet
from webhook.controller.saying import Sayings
from webhook.controller.texts import fitting
from webhook.core import keys, ledger
from webhook.core.audit import audit
from webhook.core.audited import GroupAudit
from webhook.core.findings import Finding, FindingKind, findings
from webhook.core.model import Group
from webhook.core.objects import OwnerReference, Pod
from webhook.deadline import Deadline
from webhook.errors import ApiError, OutOfTime
from webhook.events import Notice
from webhook.locking.sweeping import may_be_over

logger = logging.getLogger(__name__)

# Seconds between the beginnings of two audits.
PERIOD: Final = 60.0
# An audit ends (s) while the Lease is still ours; no sweep begins with less than this (s) left of it.
TURN: Final = 9.0
LEAST_FOR_A_SWEEP: Final = 2.0
MOST_EVENTS: Final = 20
"""Events of one audit; the rest is said by the next ones."""
# A member that is restarted takes the margin away for a moment.
_LOOKS: Final[Mapping[FindingKind, int]] = {FindingKind.NO_MARGIN: 2}


class Figures(Protocol):
    """The metrics of audits."""

    def audited(self, figures: AuditFigures | None) -> None:
        """This was found; None: somebody else audits now."""
        ...

    def swept(self, claims: int) -> None:
        """So many claims were freed of what was over."""
        ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What audits work with. `read` reads all groups; `sweep` one group's records; both raise ApiError or OutOfTime.

    `tell` is told of each group's pods; `expiry` (s) as for rounds.
    """

    read: Callable[[Deadline], Fleet]
    sweep: Callable[[Group, Deadline], int]
    figures: Figures
    notify: Callable[[Notice], None]
    tell: Callable[[Iterable[Pod]], None]
    clock: Callable[[], float]
    expiry: float


@dataclass(frozen=True, slots=True)
class Audited:
    """One group's audit, and what of it is said."""

    audited: GroupAudit
    findings: tuple[Finding, ...]
    owner: OwnerReference | None

    @property
    def breaches(self) -> Mapping[FindingKind, str]:
        """What is not as it should be: all of one kind as one text."""
        found: dict[FindingKind, list[str]] = {}
        for finding in self.findings:
            if finding.breach:
                found.setdefault(finding.kind, []).append(finding.text)
        return {kind: "; ".join(texts) for kind, texts in found.items()}


class Auditing:
    """Audits when it is time. To be used by one thread."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._with = collaborators
        self._due_at = collaborators.clock()
        self._sayings = Sayings(collaborators.clock)
        self._failure = ""

    def is_due(self) -> bool:
        """Whether it is time for an audit."""
        return self._with.clock() >= self._due_at

    def forget(self) -> None:
        """Another one leads now."""
        self._sayings = Sayings(self._with.clock)
        self._with.figures.audited(None)

    def turn(self) -> None:
        """One audit, and the sweeps that there is time for."""
        began = self._with.clock()
        self._due_at = began + PERIOD
        deadline = Deadline.after(TURN, self._with.clock)
        try:
            fleet = self._with.read(deadline)
            self._with.tell(pod for found in fleet.groups for pod in found.snapshot.pods)
            audits = tuple(_audits(fleet))
            self._with.figures.audited(_figures(fleet, audits, self._with.clock() - began))
            self._say(audits)
            self._sweep(fleet, deadline)
            self._failure = ""
        except (ApiError, OutOfTime) as error:
            # Said when it begins, not at each audit.
            if str(error) != self._failure:
                logger.warning("no audit for now: %s", error)
            self._failure = str(error)

    def _say(self, audits: tuple[Audited, ...]) -> None:
        self._sayings.begin()
        left = MOST_EVENTS
        for each in audits:
            for kind, text in each.breaches.items():
                subject = str(each.audited.group), kind.value
                if self._sayings.is_due(subject, text, looks=_LOOKS.get(kind, 1)) and left:
                    left -= 1
                    self._sayings.say(subject, text)
                    self._tell(each, kind, text)
        for group, over in self._sayings.end():
            logger.info("audit: %s: no longer %s", group, over)

    def _tell(self, each: Audited, kind: FindingKind, text: str) -> None:
        message = fitting(f"{each.audited.group}: {text}")
        logger.warning("audit: %s", message)
        if each.owner is not None:
            self._with.notify(Notice(each.audited.group.namespace, each.owner, f"Audit{kind.value}", message))

    def _sweep(self, fleet: Fleet, deadline: Deadline) -> None:
        """Those groups where it pays, as far as there is time: who was not reached is reached by a later audit."""
        for found in fleet.groups:
            snapshot = found.snapshot
            if deadline.left() < LEAST_FOR_A_SWEEP:
                return
            if may_be_over(snapshot.claims, snapshot.pods, snapshot.now, self._with.expiry):
                claims = self._with.sweep(found.group, deadline)
                self._with.figures.swept(claims)
                logger.info("%s: what was over is taken from %d claim(s)", found.group, claims)


def _audits(fleet: Fleet) -> Iterator[Audited]:
    index = fleet.index
    for found in fleet.groups:
        audited = audit(found.snapshot, found.isolated_by, index)
        owners = (pod.owner for pod in sorted(found.snapshot.pods, key=lambda pod: pod.name))
        yield Audited(audited, findings(audited), next(filter(None, owners), None))


def _figures(fleet: Fleet, audits: tuple[Audited, ...], seconds: float) -> AuditFigures:
    now = max((found.snapshot.now for found in fleet.groups), default=0)
    entries = [
        entry for found in fleet.groups for entry in ledger.read_records(found.snapshot.claims).entries().values()
    ]
    breached = sum(1 for each in audits if each.breaches)
    running = sum(len(each.audited.guarded_running) for each in audits)
    guarded = sum(member.guarded for each in audits for member in each.audited.members)
    return AuditFigures(
        at=now,
        seconds=seconds,
        groups={"well": len(audits) - breached, "breached": breached, "unknown": len(fleet.unreadable)},
        findings=_by_kind(audits),
        guarded={"running": running, "waiting": guarded - running},
        margins=tuple(margin for each in audits for margin in _margins(each.audited)),
        records=len(entries),
        oldest_record=max((now - entry.time for entry in entries), default=0),
    )


def _by_kind(audits: tuple[Audited, ...]) -> dict[str, int]:
    """Groups by what was found, once each."""
    kinds = [kind for each in audits for kind in {finding.kind for finding in each.findings}]
    return {kind.value: kinds.count(kind) for kind in sorted(set(kinds))}


def _margins(audited: GroupAudit) -> Iterator[GroupMargin]:
    group = audited.group
    for key in dict.fromkeys((audited.topology_key, keys.HOSTNAME)):
        margin = next(margin for margin in audited.margins if margin.topology_key == key)
        yield GroupMargin(group.namespace, group.cluster, group.component, key, margin.survives)
