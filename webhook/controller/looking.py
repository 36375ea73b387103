"""Asks the webhook's own rule what a waiting pod would get if its owner created it now: nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from webhook.controller.rescue import Held, Sight, sight
from webhook.core.requested import as_requested
from webhook.deadline import Deadline
from webhook.locking.looking import look
from webhook.locking.protocol import Request
from webhook.locking.tools import RoundTools


class Looker:
    """Looks by what a webhook process decides with, so by the same reads, answers in flight and options."""

    def __init__(self, tools: RoundTools, requests_of: Callable[[Mapping[str, Any]], Mapping[str, Decimal]]) -> None:
        """`requests_of` gives what a pod's manifest asks of a node, in base units."""
        self._tools = tools
        self._requests_of = requests_of

    def look(self, held: Held, manifest: dict[str, Any], deadline: Deadline) -> Sight:
        """What is there for a held pod; `manifest` is the pod as it is stored. Raises nothing for API trouble."""
        placing = as_requested(manifest, held.group, self._requests_of)
        looked = look(held.group, Request(placing, deadline, deadline.clock()), self._tools)
        decision = looked.answer.decision
        if looked.snapshot is None:
            return Sight(decision)
        return sight(looked.snapshot, replace(placing, pod=held.pod), held, decision)
