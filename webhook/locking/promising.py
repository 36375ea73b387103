"""What a round's pods will take counts for other groups from the decision on, before anything is written.

Many groups that are created at once prefer the same nodes: were it told only with the answer, which comes some calls
later, each would be promised the room and the volumes that the others take.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.core.model import Group, Placing
from webhook.core.volumes import claims_of_pod
from webhook.locking.attempt import Attempt
from webhook.locking.protocol import GroupCluster


class Promising:
    """The promises of one round's attempts, of which those stay whose answers were given."""

    def __init__(self, cluster: GroupCluster, group: Group) -> None:
        self._cluster = cluster
        self._group = group
        self._open: dict[str, Placing] = {}

    def make(self, attempt: Attempt) -> None:
        """Promise what was decided."""
        for plan in attempt.planned:
            if plan.entry is not None and plan.entry.node:
                pod = plan.placing.pod
                claims = claims_of_pod(pod, attempt.state.volumes.claims)
                self._cluster.promise(self._group, plan.placing, plan.entry.node, claims)
                self._open[pod.name] = plan.placing

    def keep(self, members: Iterable[str]) -> None:
        """Their answers are given."""
        for member in members:
            self._open.pop(member, None)

    def withdraw(self) -> None:
        """The others got no node."""
        while self._open:
            self._cluster.withdraw(self._open.popitem()[1])
