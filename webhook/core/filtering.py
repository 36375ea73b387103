"""What a filter is: one thing that the scheduler looks at, and its words for a node that fails it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.core.objects import Node, PodOnNode

MOST_COMPARISONS: Final = 500_000
"""More than these take longer than a request may: constraints of such a size are not looked at but refused."""

AND: Final = "; "
"""Between the several reasons of one node. The scheduler counts each of them (`decision_record.grouped_reasons`)."""

Victims = Sequence[PodOnNode]
"""Pods of one node that are thought away, to find out whether preempting them would help; mostly none."""

Judge = Callable[[Node, Victims], str | None]
"""Gives the reason why the pod cannot go to the node if these pods were not there, None if it can."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`name` is that of the scheduler's plugin, or says what of ours it is. `resolvable`: preempting may help."""

    name: str
    judge: Judge
    resolvable: bool = False


def same_everywhere(name: str, reason: str | None) -> Filter:
    """A filter that does not look at the node."""
    return Filter(name, lambda _node, _victims: reason)


def is_victim(pod: PodOnNode, victims: Victims) -> bool:
    """Whether this very pod is among those that are thought away."""
    return any(victim is pod for victim in victims)
