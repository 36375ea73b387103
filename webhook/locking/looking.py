"""What would be decided for one pod now, and what on: nothing is written, nobody is waited for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from webhook.core.model import Decision, Group, Placing, Snapshot
from webhook.locking.protocol import Answer, Request
from webhook.locking.round import Round
from webhook.locking.tools import RoundTools


@dataclass(frozen=True, slots=True)
class Looked:
    """The answer, and the snapshot that it was decided on; None where nothing could be read."""

    answer: Answer
    snapshot: Snapshot | None


def look(group: Group, request: Request, tools: RoundTools) -> Looked:
    """Decide for a pod of the group on a snapshot of its own. Raises nothing for API trouble."""
    snapshots: list[Snapshot] = []
    answers: list[Answer] = []

    def decide(snapshot: Snapshot, placing: Placing) -> Decision:
        # Where a node that was chosen has turned out not to be possible there is another round of this.
        snapshots[:] = [snapshot]
        return tools.decide(snapshot, placing)

    def deliver(_: Request, answer: Answer) -> None:
        answers.append(answer)

    Round(group, (request,), replace(tools, decide=decide), deliver, writes=False).run()
    return Looked(answers[0], snapshots[0] if snapshots else None)
