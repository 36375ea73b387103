"""What a group can lose: how many members, how many domains, before its quorum or some of its data may be gone.

A *quorum* of r members lives while a majority of them runs. *Data* in c copies lives while a majority of the
copies of each piece does. Which stores hold the copies of one piece is PD's affair, so two things can be said:

* certainly: as long as at most ⌊(c−1)/2⌋ stores are lost, whatever PD does;
* if PD keeps copies apart by a label (its location-labels): it spreads c copies over the domains of that label as
  evenly as the stores there allow, so that many stores lost together may hold few copies of one piece.

Members that do not run now are lost already: nobody here knows how long they have been gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from webhook.core.model import MemberClass


@dataclass(frozen=True, slots=True)
class Spread:
    """A group's members by their domains at one level (a topology key).

    `stores`: members in each domain, running or not. `gone`: those of them that do not run. `gone_elsewhere`: members
    that do not run and are in no known domain; `unplaced`: members that run in no known domain, so might be lost
    with any.
    """

    stores: Mapping[str, int]
    gone: Mapping[str, int]
    gone_elsewhere: int = 0
    unplaced: int = 0

    def lost_with(self, domains: Collection[str]) -> Mapping[str, int]:
        """The members by domain that do not run once these domains are lost."""
        return {
            domain: self.stores[domain] if domain in domains else self.gone.get(domain, 0) for domain in self.stores
        }


def affordable(member_class: MemberClass, replicas: int, copies: int) -> int:
    """How many may be lost, whichever they are: of a quorum's members, or of the copies of any piece of data.

    Fewer stores than copies hold no more copies than there are stores.
    """
    return (max(1, replicas if member_class is MemberClass.QUORUM else min(replicas, copies)) - 1) // 2


def copies_lost(stores: Mapping[str, int], lost: Mapping[str, int], copies: int) -> int:
    """The most copies of one piece of data that lost stores may hold where copies are kept apart by domain.

    `stores` and `lost`: by domain. Copies go round the domains, one to each that has a store left, until all have
    their place; which domains get one in the last round is not known.
    """
    everywhere, more = _rounds(stores, copies)
    whole = sum(min(lost.get(domain, 0), everywhere) for domain in stores)
    partly = sum(1 for domain in stores if lost.get(domain, 0) > everywhere)
    return whole + min(more, partly)


def losses_by_members(spread: Spread, budget: int) -> int:
    """How many domains, whichever they are, may be lost so that at most `budget` members are; 0 if none may."""
    lost = _all_gone(spread) + spread.unplaced
    running = sorted((number - spread.gone.get(domain, 0) for domain, number in spread.stores.items()), reverse=True)
    survived = 0
    for number in filter(None, running):
        lost += number
        if lost > budget:
            break
        survived += 1
    return survived


def losses_by_copies(spread: Spread, copies: int, budget: int) -> int:
    """How many domains, whichever they are, may be lost if copies are kept apart by this level; 0 if none may.

    At most `budget` copies of a piece may be lost; members in no known domain are taken to hold one each.
    """
    fixed = spread.gone_elsewhere + spread.unplaced
    everywhere, _ = _rounds(spread.stores, copies)

    def gain(domain: str) -> tuple[int, bool, str]:
        number, gone = spread.stores[domain], spread.gone.get(domain, 0)
        whole = min(number, everywhere) - min(gone, everywhere)
        return whole, number > everywhere >= gone, domain

    # Whole rounds first: no choice of so many domains holds more copies than the first of this order.
    worst = sorted((domain for domain in spread.stores if spread.stores[domain] > spread.gone.get(domain, 0)), key=gain)
    taken: list[str] = []
    for domain in reversed(worst):
        taken.append(domain)
        if copies_lost(spread.stores, spread.lost_with(taken), copies) + fixed > budget:
            return len(taken) - 1
    return len(taken)


def is_alive(spread: Spread, copies: int | None, budget: int) -> bool:
    """Whether what runs now is enough; `copies` None: whatever is where, else copies are kept apart by this level."""
    if copies is None:
        return _all_gone(spread) <= budget
    return copies_lost(spread.stores, spread.gone, copies) + spread.gone_elsewhere <= budget


def _all_gone(spread: Spread) -> int:
    return sum(spread.gone.values()) + spread.gone_elsewhere


def _rounds(stores: Mapping[str, int], copies: int) -> tuple[int, int]:
    """How many copies every domain holds that has so many stores, and how many are left for one domain each."""
    level, left = 0, copies
    while left:
        room = sum(1 for number in stores.values() if number > level)
        if room == 0 or left < room:
            return level, left if room else 0
        level, left = level + 1, left - room
    return level, 0
