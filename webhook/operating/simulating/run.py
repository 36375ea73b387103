"""A simulation from its first step to its last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import time

from webhook.core.audited import Survival
from webhook.operating.auditing import Report
from webhook.operating.connecting import Connection
from webhook.operating.draining import GroupLoss, verdict_on
from webhook.operating.simulating.acting import act, nodes_lost, wanted
from webhook.operating.simulating.copying import copy_of
from webhook.operating.simulating.scaling_in import ORDERLY, shrunk, too_few
from webhook.operating.simulating.steps import Scale, Step
from webhook.operating.simulating.world import Placed, World


@dataclass(frozen=True, slots=True)
class Stage:
    """How things stand after a step (`title`), and what became of the pods that were decided on in it.

    `losses`: what a loss did to each group at its moment, before anything was created again, and what scaling in did.
    """

    title: str
    report: Report
    placed: tuple[Placed, ...] = ()
    losses: tuple[GroupLoss, ...] = ()

    @property
    def waiting(self) -> tuple[Placed, ...]:
        """Those without a place."""
        return tuple(each for each in self.placed if not each.node)

    @property
    def lost(self) -> tuple[str, ...]:
        """The groups whose quorum or data may be lost, and those of which nothing can be said."""
        broken = [str(row.group) for row in self.report.rows if row.audited.now is Survival.BREAKS]
        unsafe = [str(loss.group) for loss in self.losses if not loss.safe]
        return tuple(dict.fromkeys([*unsafe, *broken, *(str(each.group) for each in self.report.unreadable)]))


def simulate(
    connection: Connection, steps: Sequence[Step], notes: list[str], *, assume_isolation: bool = False
) -> Iterator[Stage]:
    """How things stand now, and after each step. Sentences about what could not be read are added to `notes`.

    `assume_isolation`: take it that PD keeps copies apart where that is not known.

    Raises SettingsError for a step that cannot be taken, and what reading the cluster raises.
    """
    objects, missing = copy_of(connection.reader)
    notes += missing
    world = World(objects, connection, time())
    stage = Stage("now", world.report())
    yield stage
    for step in steps:
        lost = nodes_lost(stage.report, step)
        losses = verdict_on(stage.report, lost, assume_isolation=assume_isolation).losses
        how = act(world, step, lost)
        placed = world.settle(wanted(world))
        report = world.report()
        smaller = list(shrunk(stage.report, report)) if isinstance(step, Scale) else []
        losses += tuple(loss for audited, left in smaller for loss in too_few(audited, left))
        title = ", ".join(filter(None, (str(step), how, ORDERLY if smaller else "")))
        stage = Stage(title, report, tuple(placed), losses)
        yield stage


def is_safe(stages: Sequence[Stage]) -> bool:
    """Whether no group was ever lost in a step, and nobody waits at the end."""
    after = stages[1:] or stages
    return not any(stage.lost for stage in after) and not stages[-1].waiting
