"""What keeps a member out of a domain that the scheduler would let it into: the cap, guards, open members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from webhook.core.counting import Census
from webhook.core.objects import Node

# A label's value has 63 characters, and the decision record must hold them all.
MOST_LEFT_ALONE: Final = 8


@dataclass(frozen=True, slots=True)
class Standing:
    """How a domain stands towards one more member: `reason` why it may not come, "" if it may.

    `full`: it may not because of the cap alone. `guard_too`: it may only with the guard besides the pin.
    """

    reason: str = ""
    full: bool = False
    guard_too: bool = False


def domain_standing(census: Census, cap: int | None, domain: str) -> Standing:
    """Whether one more member is safe in the domain, whatever the open members do.

    Open members may all land here. If the cap would not bear that, the new one is guarded, and the scheduler keeps
    them off. The guard binds both ways: beside anyone who is here already it would keep the new one off as well.
    """
    if cap is None:
        return Standing()
    count = census.count(domain)
    if count + 1 > cap:
        return Standing(f"domain {domain} already holds {count} of at most {cap} member(s)", full=True)
    joining = census.may_join(domain)
    if count + 1 + len(joining) <= cap:
        return Standing()
    if domain in census.occupied:
        names = ", ".join(sorted(joining)[:3])
        return Standing(
            f"domain {domain} holds a member, and {len(joining)} pending without node, pin or guard by its key could"
            f" join it ({names}): kubectl delete pod {min(joining)}"
        )
    return Standing(guard_too=True)


def standings(census: Census, cap: int | None) -> Callable[[str], Standing]:
    """`domain_standing` by domain, each worked out once."""
    return cache(lambda domain: domain_standing(census, cap, domain))


def left_alone(census: Census, cap: int | None, topology_key: str) -> tuple[str, ...]:
    """The domains that a guarded pod has to leave to guarded members, who would run there without the guard.

    Of those with room for more (in a full one others would keep it off just as well) the first few by name.
    """
    held = (domain for key, domain in sorted(census.guards) if key == topology_key)
    return tuple(domain for domain in held if cap is None or census.count(domain) + 1 <= cap)[:MOST_LEFT_ALONE]


def guard_reason(census: Census, node: Node) -> str:
    """Why the scheduler would keep the pod off a guarded member's node, "" if there is none."""
    for key in sorted({key for key, _ in census.guards}) if census.guards else ():
        name = census.guards.get((key, node.labels.get(key, "")))
        if name:
            return (
                f"guarded member {name} keeps others off {key}={node.labels[key]} until it is re-created:"
                f" kubectl delete pod {name}"
            )
    return ""
