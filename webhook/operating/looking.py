"""What the webhook would decide for a pod now: the same reads, answers in flight and options; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from webhook.cluster.door import Manifest
from webhook.cluster.quantities import requests_of
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Group, Options, Placing, Snapshot
from webhook.core.outcomes import UNREADABLE
from webhook.core.policy import when_unplaceable
from webhook.core.requested import as_requested
from webhook.deadline import Deadline
from webhook.locking import looking as locking
from webhook.locking.protocol import Request
from webhook.operating.connecting import Connection
from webhook.wiring import build_parts

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
        return self.decision.cause not in UNREADABLE


def look(connection: Connection, group: Group, manifest: Manifest, *, namespace: str) -> Look:
    """Decide for a pod of the group as if it were created now. Raises nothing for API trouble: see `Look.known`."""
    parts = build_parts(connection.settings, connection.door)
    placing = as_requested(manifest, group, requests_of, namespace=namespace)
    as_it_is = replace(placing, pod=pod_from(manifest, namespace=namespace))
    deadline = Deadline.after(min(LONGEST, connection.deadline.left()), connection.deadline.clock)
    looked = locking.look(group, Request(placing, deadline, deadline.clock() - WAITED), parts.tools)
    decision = when_unplaceable(looked.answer.decision, looked.answer.options)
    return Look(decision, placing, as_it_is, looked.snapshot, looked.answer.options)
