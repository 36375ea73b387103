"""What the webhook would decide for a pod now: the same reads, answers in flight and options; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from webhook.cluster.door import Manifest
from webhook.cluster.quantities import requests_of
from webhook.core.affinity import limits_of, without_ours
from webhook.core.manifests import pod_from
from webhook.core.model import Cause, Decision, Group, Options, Placing, Snapshot
from webhook.core.policy import when_unplaceable
from webhook.deadline import Deadline
from webhook.locking.line import Lines
from webhook.locking.protocol import Request
from webhook.operating.connecting import Connection
from webhook.wiring import build_parts

# Decisions that say nothing of the pod: what they rest on could not be read.
UNKNOWN: Final = frozenset(
    {Cause.API_TROUBLE, Cause.API_FORBIDDEN, Cause.BUDGET_USED_UP, Cause.BUSY, Cause.NEWER_FORMAT, Cause.INTERNAL}
)
# Seconds for which the pod has been waited for already: a claim that is missing now is not a young one.
WAITED: Final = 60.0
# Seconds for one look, as long as a review may take.
LONGEST: Final = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """The decision, and what it was made on.

    `placing` is the pod without what is ours in it, `as_it_is` with it. `snapshot` None: nothing could be read.
    """

    decision: Decision
    placing: Placing
    as_it_is: Placing
    snapshot: Snapshot | None = None
    options: Options = field(default_factory=Options)

    @property
    def known(self) -> bool:
        """Whether anything can be said."""
        return self.decision.cause not in UNKNOWN


def look(connection: Connection, group: Group, manifest: Manifest, *, namespace: str) -> Look:
    """Decide for a pod of the group as if it were created now. Raises nothing for API trouble: see `Look.known`."""
    parts = build_parts(connection.settings, connection.door)
    theirs = without_ours(manifest, group)
    requests, limits = requests_of(theirs), limits_of(theirs, group)
    placing = Placing(pod_from(theirs, namespace=namespace), requests, limits)
    as_it_is = Placing(pod_from(manifest, namespace=namespace), requests, limits)
    seen: list[Snapshot] = []

    def decide(snapshot: Snapshot, placing: Placing) -> Decision:
        seen[:] = [snapshot]
        return parts.tools.decide(snapshot, placing)

    lines = Lines(replace(parts.tools, decide=decide), most_waiting=1)
    deadline = Deadline.after(min(LONGEST, connection.deadline.left()), connection.deadline.clock)
    answer = lines.look(group, Request(placing, deadline, deadline.clock() - WAITED))
    decision = when_unplaceable(answer.decision, answer.options)
    return Look(decision, placing, as_it_is, seen[0] if seen else None, answer.options)
