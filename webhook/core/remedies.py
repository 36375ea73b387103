"""What to do about a pod for which there is no safe node: it depends on what is in the way on its nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from webhook.core import binding
from webhook.core.filtering import AND
from webhook.core.keys import HOSTNAME
from webhook.core.model import Decision
from webhook.core.obstacles import (
    DELETE,
    FULL,
    GENERIC,
    KEY,
    LARGER_THAN_ANY_NODE,
    NO_NODES,
    OBSTACLES,
    TOO_LARGE,
    WITHOUT_NODES,
    Obstacle,
    Remedy,
)

# Remedies that are named in one text, the most frequent obstacle's first.
_NAMED: Final = 3
# Characters of a topology key, which may have 317.
_SHOWN: Final = 80
_SIBLING: Final = re.compile(rf"{DELETE}(\S+)")


def remedy_for(decision: Decision) -> Remedy:
    """What helps: of the obstacles that keep the pod off nodes the most frequent one's, then others'."""
    if not decision.passed_over:
        return NO_NODES if decision.detail == WITHOUT_NODES else GENERIC
    found = Counter(_obstacles(decision))
    # Who is in the way can be had out of it at once; all else is first had to be come by.
    ordered = sorted(found, key=lambda obstacle: (not _is_sibling(obstacle), -found[obstacle], _rank(obstacle)))
    remedies = [_of(obstacle, decision) for obstacle in ordered[:_NAMED]]
    advice = " Or: ".join(dict.fromkeys(remedy.advice for remedy in remedies))
    return Remedy(remedies[0].short, advice.replace(KEY, _shown(decision.topology_key)))


def is_of_rule(decision: Decision) -> bool:
    """Whether a node is there that the scheduler would accept, so that only the cap, or a sibling, is in the way."""
    if not decision.passed_over:
        return decision.detail != WITHOUT_NODES
    return any(
        all(obstacle is None or obstacle.of_rule for obstacle in map(_obstacle, reason.split(AND)))
        for reason in decision.passed_over.values()
    )


def in_the_way(decision: Decision) -> tuple[str, ...]:
    """The siblings that keep the pod off nodes which could take it, by name."""
    reasons = (reason for reason in decision.passed_over.values() if FULL not in reason)
    return tuple(sorted({name for reason in reasons for name in _SIBLING.findall(reason)}))


def _obstacles(decision: Decision) -> Iterator[Obstacle | None]:
    """What is in the way, once for each node; where the cap is, nothing else on that node matters."""
    for reason in decision.passed_over.values():
        found = dict.fromkeys(_obstacle(each) for each in reason.split(AND))
        full = [obstacle for obstacle in found if obstacle is not None and obstacle.words == (FULL,)]
        yield from full or found


def _is_sibling(obstacle: Obstacle | None) -> bool:
    return obstacle is not None and obstacle.words == (DELETE,)


def _shown(key: str) -> str:
    return key if len(key) <= _SHOWN else f"{key[:_SHOWN]}.."


def _obstacle(reason: str) -> Obstacle | None:
    return next((each for each in OBSTACLES if any(word in reason for word in each.words)), None)


def _rank(obstacle: Obstacle | None) -> int:
    return len(OBSTACLES) if obstacle is None else OBSTACLES.index(obstacle)


def _of(obstacle: Obstacle | None, decision: Decision) -> Remedy:
    if obstacle is None:
        return GENERIC
    if LARGER_THAN_ANY_NODE in decision.detail and "Insufficient " in obstacle.words:
        return TOO_LARGE
    if obstacle.words == (FULL,):
        return Remedy(obstacle.remedy.short, _more_nodes(obstacle, decision))
    if _is_sibling(obstacle) and (names := in_the_way(decision)):
        more = (
            f", which is in the way (and so are {len(names) - 1} more)" if len(names) > 1 else ", which is in the way"
        )
        return Remedy(obstacle.remedy.short, f"{DELETE}{names[0]}{more}.")
    return obstacle.remedy


def _more_nodes(full: Obstacle, decision: Decision) -> str:
    """What a new node has to have: a volume too, where the full ones lack one."""
    where = "Add a node" if decision.topology_key == HOSTNAME else full.remedy.advice.removesuffix(".")
    lacking = [reason for reason in decision.passed_over.values() if FULL in reason]
    if any(binding.NO_VOLUME_TO_BIND in reason for reason in lacking):
        return f"{where}, with a free PersistentVolume of its StorageClass."
    return f"{where}."
