"""Invariant 1, judged by what really exists: pods in the cluster and answers whose pod may still be created."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from webhook.cluster.door import PODS
from webhook.cluster.memory import MemoryCluster
from webhook.core.decision_record import token_of
from webhook.core.keys import GUARD
from webhook.core.manifests import pod_from
from webhook.core.outcomes import Outcome
from webhook.core.selectors import pinned_node
from webhook.locking.protocol import Answer

from .faults import REQUEST_TIMEOUT

OUTCOMES_WITH_A_PLACE = (Outcome.PINNED, Outcome.RETURNED)


@dataclass(frozen=True)
class Outstanding:
    """An answer with a node whose pod may still be created, `until` the API server's request time-out."""

    member: str
    node: str
    token: str
    until: float


@dataclass
class Oracle:
    """Counts at every answer what holds the chosen node at its worst."""

    cluster: MemoryCluster
    most_bound: int = 1
    returned: set[str] = field(default_factory=set)
    outstanding: list[Outstanding] = field(default_factory=list)
    swapped: dict[str, int] = field(default_factory=dict)
    unsafe: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def answered(self, member: str, answer: Answer, started: float, now: float) -> None:
        """Judge an answer when it is given, by those who were there when it was swapped in.

        Whoever was swapped in later has counted this one, and was judged by the cap of that moment.
        """
        decision = answer.decision
        self.outcomes[f"{decision.outcome}/{decision.cause}" if decision.cause else str(decision.outcome)] += 1
        if decision.outcome not in OUTCOMES_WITH_A_PLACE:
            return
        if decision.outcome is Outcome.RETURNED:
            self.returned.add(member)
        order = self.swapped.get(answer.token, -1)
        holders = self._holders(decision.node, now)
        earlier = {other for other, token in holders if other != member and self.swapped.get(token, -1) < order}
        everybody = {other for other, _ in holders} | {member}
        if decision.outcome is Outcome.PINNED and decision.cap is not None:
            for count, most, who in (
                (len(earlier) + 1, decision.cap, earlier),
                (len(everybody), self.most_bound, everybody),
            ):
                if count > most and member not in self.returned:
                    self.unsafe.append(
                        f"{member} was pinned to {decision.node} beside {sorted(who)}: {count} of {most}"
                    )
                    break
        self.outstanding.append(Outstanding(member, decision.node, answer.token, started + REQUEST_TIMEOUT))

    def stored(self, member: str, node: str) -> None:
        """A pod was stored; its answer is now judged by the pod."""
        for answer in self.outstanding:
            if (answer.member, answer.node) == (member, node):
                self.outstanding.remove(answer)
                return

    def bound(self, member: str, node: str) -> None:
        """Judge a binding by what is bound; a member that returned to its own data may stand above the cap."""
        there = {pod.name for pod in self._pods() if pod.node_name == node and not pod.finished}
        there -= {member} | self.returned
        if len(there) + 1 > self.most_bound and member not in self.returned:
            self.unsafe.append(
                f"{member} runs on {node} beside {sorted(there)}, at most {self.most_bound} may be there"
            )

    def _judge(self, member: str, node: str, holders: set[str], most: int) -> None:
        if len(holders) > most and member not in self.returned:
            self.unsafe.append(f"{member} was pinned to {node}, where then {sorted(holders)} are; {most} may be")

    def _holders(self, node: str, now: float) -> set[tuple[str, str]]:
        """(member, token) of everybody who is on the node, is pinned to it, or may still be created for it.

        Not a guarded one: the scheduler keeps it and a pinned one apart, whichever comes first (see `bound`).
        """
        pods = [pod for pod in self._pods() if not pod.finished and GUARD not in pod.annotations]
        pods = [pod for pod in pods if (pod.node_name or pinned_node(pod)) == node]
        given = [answer for answer in self.outstanding if answer.node == node and now < answer.until]
        return {(pod.name, token_of(pod)) for pod in pods} | {(answer.member, answer.token) for answer in given}

    def _pods(self) -> list:
        return [pod_from(item) for item in self.cluster.list(PODS, namespace="shop", timeout=1).items]
