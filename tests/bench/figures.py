"""Statistics over a handful of measured values, and how they are written."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from e2e.objects import Object
from e2e.place import node_of

COMPONENT_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/component")


@dataclass(frozen=True)
class Spread:
    """The least, the middle and the largest of some values."""

    least: float
    middle: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(min(values), statistics.median(values), max(values))

    def __str__(self) -> str:
        return f"{self.least:.2f} / {self.middle:.2f} / {self.most:.2f}"


def percentile(values: Iterable[float], percent: int) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(percent * len(ordered) / 100), 1) - 1]


def ratio(value: float, base: float) -> str:
    """How many times the base a value is; "-" where there is no base."""
    return f"{value / base:.2f}" if base else "-"


def most_on_one_node(pods: Iterable[Object]) -> int:
    """The most pods of one component of one cluster that share a node, 0 if none has one."""
    return max(_per_group_and_node(pods).values(), default=0)


def stacked_pairs(pods: Iterable[Object]) -> int:
    """How many pairs of pods of one component of one cluster share a node; three on one node are three pairs."""
    return sum(math.comb(count, 2) for count in _per_group_and_node(pods).values())


def _per_group_and_node(pods: Iterable[Object]) -> Counter[tuple[str, ...]]:
    return Counter((*group_of(pod), node_of(pod)) for pod in pods if node_of(pod))


def group_of(pod: Object) -> tuple[str, ...]:
    """Namespace, cluster and component."""
    metadata = pod["metadata"]
    return (metadata["namespace"], *(metadata["labels"][label] for label in COMPONENT_LABELS))
