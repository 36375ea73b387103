"""Asks a replica of a stand to run one round."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from cluster_objects import SPACE, a_pod
from stand import BUDGET, Replica

from webhook.cluster.door import Manifest
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Group, Placing
from webhook.core.outcomes import Cause, Outcome
from webhook.deadline import Deadline
from webhook.locking.protocol import Answer, Request
from webhook.locking.round import Round

PVC = "persistentvolumeclaims"
# Which claim is the lock, and which holds the second record, in the world of these tests.
LOCK, SECOND = "tikv-db-tikv-0", "tikv-db-tikv-1"
SWAP, SECOND_WRITE = f"patch {PVC} {LOCK}", f"patch {PVC} {SECOND}"
READS = [f"list {PVC}", "list pods", "get statefulsets db-tikv", "list nodes"]


@dataclass
class Asked:
    """A round that has been run: its answers by member, in the order in which they were given."""

    answers: dict[str, Answer] = field(default_factory=dict)

    def take(self, request: Request, answer: Answer) -> None:
        assert request.member not in self.answers, "answered twice"
        self.answers[request.member] = answer

    @property
    def only(self) -> Answer:
        [answer] = self.answers.values()
        return answer

    @property
    def brief(self) -> tuple[Outcome, Cause]:
        return self.only.decision.outcome, self.only.decision.cause


def group_of(pod: Manifest) -> Group:
    group = recognise(pod_from(pod, namespace=SPACE)).group
    assert group is not None
    return group


def ask(replica: Replica, *pods: Manifest | str, budgets: tuple[float, ...] = (), writes: bool = True) -> Asked:
    """Run one round for pods, or for members by name; all have BUDGET seconds unless `budgets` says else."""
    asked = Asked()
    now = replica.clock.monotonic()
    manifests = [a_pod(pod) if isinstance(pod, str) else pod for pod in pods or ("db-tikv-0",)]
    requests = [
        Request(Placing(pod_from(pod, namespace=SPACE)), Deadline.after(budget, replica.clock.monotonic), now)
        for pod, budget in zip(manifests, budgets or itertools.repeat(BUDGET), strict=False)
    ]
    Round(group_of(manifests[0]), requests, replica.tools, asked.take, writes=writes).run()
    assert asked.answers.keys() == {request.member for request in requests}
    return asked
