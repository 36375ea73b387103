"""What a group can lose, against brute force: every way in which copies may lie, every choice of domains."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core.losses import Spread, affordable, copies_lost, is_alive, losses_by_copies, losses_by_members
from webhook.core.model import MemberClass

QUORUM, REPLICATED = MemberClass.QUORUM, MemberClass.REPLICATED
DOMAINS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("member_class", "replicas", "copies", "budget"),
    [
        (QUORUM, 0, 3, 0),
        (QUORUM, 1, 3, 0),
        (QUORUM, 2, 3, 0),
        (QUORUM, 3, 3, 1),
        (QUORUM, 4, 3, 1),
        (QUORUM, 5, 3, 2),
        (REPLICATED, 1, 3, 0),
        (REPLICATED, 2, 3, 0),
        (REPLICATED, 3, 3, 1),
        (REPLICATED, 9, 3, 1),
        (REPLICATED, 9, 5, 2),
        (REPLICATED, 4, 5, 1),
        (REPLICATED, 9, 1, 0),
    ],
)
def test_a_minority_of_a_quorum_or_of_the_copies_may_be_lost(member_class, replicas, copies, budget):
    assert affordable(member_class, replicas, copies) == budget


@pytest.mark.parametrize(
    ("stores", "lost", "copies", "expected"),
    [
        ({"a": 3, "b": 3, "c": 3}, {"a": 3}, 3, 1),
        ({"a": 2, "b": 1}, {"a": 2}, 3, 2),
        ({"a": 2, "b": 1}, {"b": 1}, 3, 1),
        ({"a": 3, "b": 3}, {"b": 3}, 3, 2),
        ({"a": 1, "b": 9}, {"b": 9}, 5, 4),
        ({"a": 2, "b": 2, "c": 2}, {"a": 2}, 5, 2),
        ({"a": 2, "b": 2, "c": 2}, {"a": 1, "b": 1}, 5, 2),
        ({}, {}, 3, 0),
        ({"a": 2}, {"a": 2}, 5, 2),
    ],
)
def test_copies_are_spread_as_evenly_as_the_stores_allow(stores, lost, copies, expected):
    assert copies_lost(stores, lost, copies) == expected


numbers = st.dictionaries(st.sampled_from(DOMAINS), st.integers(1, 3), max_size=4)


@st.composite
def spreads(draw, *, elsewhere=2):
    stores = draw(numbers)
    gone = {domain: draw(st.integers(0, number)) for domain, number in stores.items()}
    return Spread(stores, gone, draw(st.integers(0, elsewhere)), draw(st.integers(0, elsewhere)))


def even_placements(stores, copies):
    """Every choice of stores for the copies that no move of one copy would make more even."""
    places = [(domain, number) for domain in stores for number in range(stores[domain])]
    for chosen in combinations(places, min(copies, len(places))):
        held = Counter(domain for domain, _ in chosen)
        if not any(held[full] > held[empty] + 1 and held[empty] < stores[empty] for full in stores for empty in stores):
            yield chosen


@settings(max_examples=150)
@given(spreads(), st.integers(1, 5))
def test_the_copies_in_lost_stores_are_those_of_the_worst_even_placement(spread, copies):
    worst = max(
        sum(number < spread.gone[domain] for domain, number in chosen)
        for chosen in even_placements(spread.stores, copies)
    )
    assert copies_lost(spread.stores, spread.gone, copies) == worst


def survived(spread, enough):
    """The most domains with somebody in them of which no choice is too much."""
    running = [domain for domain in spread.stores if spread.stores[domain] > spread.gone[domain]]
    result = 0
    for number in range(1, len(running) + 1):
        if not all(enough(spread.lost_with(chosen)) for chosen in combinations(running, number)):
            break
        result = number
    return result


@settings(max_examples=300)
@given(spreads(), st.integers(0, 4))
def test_losses_by_members_are_those_that_no_choice_of_domains_breaks(spread, budget):
    beside = spread.gone_elsewhere + spread.unplaced

    def enough(lost):
        return sum(lost.values()) + beside <= budget

    assert losses_by_members(spread, budget) == survived(spread, enough)


@settings(max_examples=300)
@given(spreads(), st.integers(1, 6), st.integers(0, 3))
def test_losses_by_copies_are_those_that_no_choice_of_domains_breaks(spread, copies, budget):
    beside = spread.gone_elsewhere + spread.unplaced

    def enough(lost):
        return copies_lost(spread.stores, lost, copies) + beside <= budget

    assert losses_by_copies(spread, copies, budget) == survived(spread, enough)


@given(spreads(), st.integers(1, 6), st.integers(0, 3))
def test_what_is_enough_whatever_is_where_is_enough_with_isolation_too(spread, copies, budget):
    assert not is_alive(spread, None, budget) or is_alive(spread, copies, budget)
    assert losses_by_copies(spread, copies, budget) >= losses_by_members(spread, budget)
