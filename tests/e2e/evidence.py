"""Which guards a fault accounts for: a guard is right only for a create that a fault has hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from e2e.faults import Call, DelayAnswer, ShiftDate
from e2e.replicas import Webhook

HUNG = 1.0
"""Seconds after which the API server's answer was late by a fault; ordinary ones take hundredths."""

NO_SAFE_NODE = "NoSafeNode"

_GUARDED = re.compile(r" pod=(\S+) group=\S+/(\S+)/\S+ .*\boutcome=guarded cause=(\S+)")
# Of no set: what confirms that a node can take a pod.
_OF_NODES = re.compile(r"/api/v1/nodes/|fieldSelector=spec\.nodeName")


@dataclass(frozen=True)
class Guarding:
    """A guard that a replica has answered with."""

    replica: int
    cluster: str
    pod: str
    cause: str


def was_hit(call: Call) -> bool:
    """Whether a fault met the call; a longer round and another clock are none that a guard is right for."""
    if any(not isinstance(fault, DelayAnswer | ShiftDate) for fault in call.faults):
        return True
    return call.status is None or call.status == 429 or call.status >= 500 or call.seconds > HUNG


def was_beaten(call: Call) -> bool:
    """Whether somebody else's write came first; his, where somebody writes all the time."""
    return was_hit(call) or call.status == 409


def was_cut_off(call: Call) -> bool:
    """Whether the API server was away; one that has just started knows neither accounts nor rights for a moment."""
    return was_hit(call) or call.status in (401, 403)


class Evidence:
    """What the replicas asked and answered since `begin`."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook
        self._ends = [0] * len(webhook.replicas)
        self.begin()

    def begin(self) -> None:
        """Forget everything before now."""
        for proxy in self._webhook.proxies:
            proxy.forget()
        self._ends = [replica.child.log.stat().st_size for replica in self._webhook.replicas]

    def guardings(self, clusters: Collection[str]) -> list[Guarding]:
        """Every guard that was answered to pods of these clusters, from the logs."""
        found = []
        for index, (replica, end) in enumerate(zip(self._webhook.replicas, self._ends, strict=True)):
            lines = replica.child.log.read_bytes()[end:].decode(errors="replace").splitlines()
            for match in filter(None, map(_GUARDED.search, lines)):
                pod, cluster, cause = match.groups()
                found.append(Guarding(index, cluster, pod, cause))
        return [guarding for guarding in found if guarding.cluster in clusters]

    def needless(self, guardings: Iterable[Guarding], hit: Callable[[Call], bool]) -> list[Guarding]:
        """The guards that no call accounts for: none that was about their set, or about nodes, was hit.

        Of their replica, that is. But where no safe node was left, what a sibling's create that was hit at another
        replica has recorded may still hold its room.
        """
        return [guarding for guarding in guardings if not any(map(hit, self._calls_about(guarding)))]

    def _calls_about(self, guarding: Guarding) -> Iterator[Call]:
        for index, replica in enumerate(self._webhook.replicas):
            if replica.proxy and (index == guarding.replica or guarding.cause == NO_SAFE_NODE):
                yield from (call for call in replica.proxy.calls if is_about(call, guarding.cluster))

    def refused(self, hit: Callable[[Call], bool]) -> list[str]:
        """The calls that the replicas had no right to, unless a fault accounts for it."""
        calls = (call for proxy in self._webhook.proxies for call in proxy.calls)
        return [f"{call.method} {call.target}" for call in calls if call.status == 403 and not hit(call)]


def is_about(call: Call, cluster: str) -> bool:
    """Whether a call was made for a set of this cluster, or for the nodes that any set may go to."""
    target = unquote(call.target)
    return re.search(rf"\b{cluster}\b", target) is not None or _OF_NODES.search(target) is not None
