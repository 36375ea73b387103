"""What pods of other groups that are on their way will take: room on nodes, and volumes.

Best effort: of pods that cannot be seen yet only those that this process decides about are known. A pod exists some
milliseconds after its answer, and is seen some more after that; its volumes are taken when the scheduler has bound
it. Until then a decision about another group would take the same room, or the same volume, for free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from threading import Lock
from time import monotonic
from typing import Final

from webhook.cluster import trimming
from webhook.cluster.shelves import Placed
from webhook.cluster.surroundings import Surroundings
from webhook.cluster.trimming import Claimed, Key
from webhook.core.model import Group, Placing
from webhook.core.objects import Claim, PodOnNode
from webhook.core.storage import Volumes

LONGEST: Final = 60.0
"""Seconds after which a create that was answered cannot succeed any more: the API server's own request time-out."""

NOT_CLAIMED: Final = Claimed()


@dataclass(frozen=True, slots=True)
class _Promise:
    group: Group
    node_name: str
    requests: Mapping[str, Decimal]
    claims: tuple[Claim, ...]
    made: float


class Promises:
    """Safe to use from many threads."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._promises: dict[Key, _Promise] = {}

    def add(self, group: Group, placing: Placing, node_name: str, claims: Iterable[Claim] = ()) -> None:
        """The pod is to get this node, and has these claims; what was promised to its name before is forgotten."""
        with self._lock:
            key = placing.pod.namespace, placing.pod.name
            self._promises[key] = _Promise(group, node_name, placing.requests, tuple(claims), self._clock())

    def seen(self, key: Key, node_name: str) -> None:
        """The pod of this namespace and name is at a node: from now on it counts as itself, as long as it is there."""
        with self._lock:
            promise = self._promises.get(key)
            if promise is not None and promise.node_name == node_name:
                del self._promises[key]

    def withdraw(self, placing: Placing) -> None:
        """The pod gets no node after all."""
        with self._lock:
            self._promises.pop((placing.pod.namespace, placing.pod.name), None)

    def of_others(self, group: Group, seen: Placed) -> Mapping[str, Mapping[str, Decimal]]:
        """What pods of other groups that are not `seen` yet will ask, by node."""
        asked: dict[str, dict[str, Decimal]] = {}
        for promise in self._unseen(seen):
            if promise.group != group:
                total = asked.setdefault(promise.node_name, {})
                for name, amount in promise.requests.items():
                    total[name] = total.get(name, Decimal(0)) + amount
        return asked

    def with_claims_of_others(self, group: Group, volumes: Volumes, around: Surroundings) -> Volumes:
        """What is known of volumes, with the claims that pods of other groups on their way to nodes will take some for.

        Only claims of the classes that are looked at are taken down.
        """
        if not volumes.of_class:
            return volumes
        found = [
            (promise.node_name, promise.claims) for promise in self._unseen(around.placed) if promise.group != group
        ]
        for pod in around.placed.pods.arriving():
            if pod.claim_names and not _is_of(group, pod):
                claimed = around.stock.of(trimming.CLAIMED)
                kept = (claimed.get((pod.namespace, name), NOT_CLAIMED).claim for name in pod.claim_names)
                found.append((pod.node_name, tuple(claim for claim in kept if claim is not None)))
        promised: dict[str, tuple[Claim, ...]] = {}
        for node_name, claims in found:
            mattering = tuple(claim for claim in claims if claim.storage_class in volumes.of_class)
            if mattering:
                promised[node_name] = promised.get(node_name, ()) + mattering
        return replace(volumes, promised=promised)

    def _unseen(self, seen: Placed) -> list[_Promise]:
        now = self._clock()
        with self._lock:
            self._promises = {
                key: promise
                for key, promise in self._promises.items()
                if now - promise.made <= LONGEST and not _is_seen(key, promise, seen)
            }
            return list(self._promises.values())


def _is_of(group: Group, pod: PodOnNode) -> bool:
    return pod.namespace == group.namespace and dict(group.selector).items() <= pod.labels.items()


def _is_seen(key: Key, promise: _Promise, seen: Placed) -> bool:
    return any(pod.node_name == promise.node_name for pod in seen.pods.named(*key))
