"""Whether a placement is HA-safe, found by counting alone: nothing of the placement code is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hazard:
    """What is wrong with a placement, in words; `node` is the one that holds too many, "" for a pod without one."""

    component: str
    node: str
    text: str


def hazards(
    nodes_of_pods: Mapping[str, str], components: Mapping[str, Iterable[str]], nodes: Iterable[str]
) -> list[Hazard]:
    """What is wrong with a placement (node by pod), an empty list if it is HA-safe.

    Of each component (three PD members, or three TiKV stores with three copies of the data) more than half must
    be left when any one node is lost.
    """
    known = frozenset(nodes)
    found: list[Hazard] = []
    for component, names in components.items():
        members = {name: nodes_of_pods.get(name, "") for name in names}
        placed = {name: node for name, node in members.items() if node in known}
        found += [Hazard(component, "", f"{name} has no node") for name in members if name not in placed]
        for node, count in sorted(Counter(placed.values()).items()):
            if 2 * (len(members) - count) <= len(members):
                text = f"{node} holds {count} of {len(members)} {component} pods: losing it loses their majority"
                found.append(Hazard(component, node, text))
    return found
