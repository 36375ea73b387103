"""What answers that are in flight will ask of nodes. Best effort: only this process's own answers are known.

A pod exists some milliseconds after its answer, and is seen some more after that. Until then a decision about
another group would take its room for free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from time import monotonic
from typing import Final

from webhook.cluster.shelves import Placed
from webhook.core.model import Group, Placing

LONGEST: Final = 60.0
"""Seconds after which a create that was answered cannot succeed any more: the API server's own request time-out."""


@dataclass(frozen=True, slots=True)
class _Promise:
    group: Group
    node_name: str
    requests: Mapping[str, Decimal]
    made: float


class Promises:
    """Safe to use from many threads."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._promises: dict[tuple[str, str], _Promise] = {}

    def add(self, group: Group, placing: Placing, node_name: str) -> None:
        """The pod was answered with this node; an earlier answer for its name is forgotten."""
        with self._lock:
            key = placing.pod.namespace, placing.pod.name
            self._promises[key] = _Promise(group, node_name, placing.requests, self._clock())

    def of_others(self, group: Group, seen: Placed) -> Mapping[str, Mapping[str, Decimal]]:
        """What pods of other groups that are not `seen` yet will ask, by node."""
        now = self._clock()
        asked: dict[str, dict[str, Decimal]] = {}
        with self._lock:
            self._promises = {
                key: promise
                for key, promise in self._promises.items()
                if now - promise.made <= LONGEST and not _is_seen(key, promise, seen)
            }
            for promise in self._promises.values():
                if promise.group != group:
                    total = asked.setdefault(promise.node_name, {})
                    for name, amount in promise.requests.items():
                        total[name] = total.get(name, Decimal(0)) + amount
        return asked


def _is_seen(key: tuple[str, str], promise: _Promise, seen: Placed) -> bool:
    return any((pod.namespace, pod.name) == key for pod in seen.pods.get(promise.node_name, ()))
