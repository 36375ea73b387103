"""Asks the webhook's own rule what a waiting pod would get if its owner created it now: nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from webhook.controller.rescue import Held, Sight, sight
from webhook.core.affinity import limits_of, without_ours
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Placing, Snapshot
from webhook.deadline import Deadline
from webhook.locking.attempt import Tools
from webhook.locking.line import Lines
from webhook.locking.protocol import Request


class Looker:
    """Looks by what a webhook process decides with, so by the same reads, answers in flight and options."""

    def __init__(self, tools: Tools, requests_of: Callable[[Mapping[str, Any]], Mapping[str, Decimal]]) -> None:
        """`requests_of` gives what a pod's manifest asks of a node, in base units."""
        self._tools = tools
        self._requests_of = requests_of

    def look(self, held: Held, manifest: dict[str, Any], deadline: Deadline) -> Sight:
        """What is there for a held pod; `manifest` is the pod as it is stored. Raises nothing for API trouble."""
        theirs = without_ours(manifest, held.group)
        requests, limits = self._requests_of(theirs), limits_of(theirs, held.group)
        as_it_is = Placing(held.pod, requests, limits)
        found: list[Sight] = []

        def decide(snapshot: Snapshot, placing: Placing) -> Decision:
            decision = self._tools.decide(snapshot, placing)
            # Where a chosen node has turned out not to be possible there is another round of this.
            found[:] = [sight(snapshot, as_it_is, held, decision)]
            return decision

        request = Request(Placing(pod_from(theirs), requests, limits), deadline, deadline.clock())
        # A line of its own: whoever waits for a place goes first.
        lines = Lines(replace(self._tools, decide=decide), most_waiting=1)
        answer = lines.look(held.group, request)
        return replace(found[0], decision=answer.decision) if found else Sight(answer.decision)
