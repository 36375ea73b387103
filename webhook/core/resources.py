"""Room: what a pod asks of a node against what is left there (the scheduler's NodeResourcesFit)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from webhook.core.filtering import AND, Filter, Victims
from webhook.core.model import Placing
from webhook.core.objects import Node
from webhook.core.occupancy import NOTHING, Occupancy

TOO_MANY_PODS: Final = "Too many pods"
ONE_POD: Final[Mapping[str, Decimal]] = {"pods": Decimal(1)}


def resources_filter(placing: Placing, occupancy: Occupancy) -> Filter:
    """The filter for what the pod asks; a resource that a node does not report is not there. It tells all that lack."""
    wanted = [(name, amount) for name, amount in {**placing.requests, **ONE_POD}.items() if amount > 0]
    wanted.sort(key=lambda each: (each[0] != "pods", each[0]))

    def judge(node: Node, victims: Victims) -> str | None:
        asked = occupancy.asked_of(node.name)
        lacking = []
        for name, amount in wanted:
            left = node.allocatable.get(name, NOTHING) - asked.get(name, NOTHING)
            for victim in victims:
                left += victim.requests.get(name, NOTHING)
            if left < amount:
                lacking.append(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}")
        return AND.join(lacking) or None

    return Filter("NodeResourcesFit", judge, resolvable=True)
