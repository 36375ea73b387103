"""Every small cluster: whatever is possible at each step, no sequence of placements goes above the cap."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest
from builders import (
    make_desired,
    make_entry,
    make_group,
    make_node,
    make_nodes,
    make_placing,
    make_snapshot,
    member,
    pinned_pod,
    running_pod,
)

from webhook.core.model import Decision
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide

# Where each member is, by ordinal: the number of its node, or None while it waits.
State = tuple[int | None, ...]


def decided(component: str, state: State, ordinal: int, nodes: int, closed=(), **options) -> Decision:
    """The decision for one ordinal; the others are seen as entries, pinned pods and running pods in turn."""
    group = make_group(component)
    pods, entries = [], []
    for other, node in enumerate(state):
        name = member(other, group)
        if node is None or other == ordinal:
            continue
        if other % 3 == 0:
            entries.append(make_entry(name, f"n{node}"))
        else:
            make = pinned_pod if other % 3 == 1 else running_pod
            pods.append(make(name, f"n{node}", group=group))
    snapshot = make_snapshot(
        desired=make_desired(len(state), group=group, **options),
        group=group,
        nodes=[make_node(f"n{number}", unschedulable=number in closed) for number in range(1, nodes + 1)],
        pods=pods,
        entries=entries,
    )
    return decide(snapshot, make_placing(member(ordinal, group), group=group))


def most_allowed(component: str, replicas: int, in_use: int, nodes: int, copies: int) -> int:
    """The cap, worked out anew: by trying every loss, not by the formula."""
    if component == "pd":
        return max([lost for lost in range(replicas) if 2 * (replicas - lost) > replicas] or [1]) or 1
    if replicas < copies:
        return replicas
    needed = next((d for d in range(1, copies + 1) if 2 * -(-copies // d) < copies), 1)
    width = max(needed, min(copies, nodes))
    return 1 if in_use < width else -(-replicas // width)


def placed(state: State, ordinal: int, node: int | None) -> State:
    return (*state[:ordinal], node, *state[ordinal + 1 :])


def check_step(component: str, state: State, ordinal: int, nodes: int, closed: tuple[int, ...], copies: int) -> State:
    """Decide, and hold the decision against the rule; the state after it."""
    found = decided(component, state, ordinal, nodes, closed, copies=copies)
    others = [node for other, node in enumerate(state) if node is not None and other != ordinal]
    allowed = most_allowed(component, len(state), len(set(others)), nodes, copies)
    safe = {n for n in range(1, nodes + 1) if n not in closed and others.count(n) + 1 <= allowed}
    if found.outcome is Outcome.GUARDED:
        assert not safe, f"{state}: ordinal {ordinal} was held back, though {safe} would do"
        return state
    node = int(found.node.removeprefix("n"))
    assert node in safe, f"{state}: ordinal {ordinal} went to n{node}, safe were {safe}"
    return placed(state, ordinal, node)


@pytest.mark.parametrize(
    ("component", "copies", "replicas", "nodes"),
    [
        *product(["tikv"], [3], [2, 3, 4, 5], [1, 2, 3]),
        *product(["tikv"], [2], [3, 4], [2, 3]),
        *product(["tikv"], [5], [5], [2, 3]),
        *product(["pd"], [3], [2, 3, 4, 5], [1, 2, 3]),
        ("tikv", 3, 4, 4),
    ],
)
def test_no_sequence_of_placements_goes_above_the_cap(component, copies, replicas, nodes):
    """At every step any nodes may be closed; members that waited are tried again at the end."""
    every_closing = [closed for size in range(nodes + 1) for closed in combinations(range(1, nodes + 1), size)]
    states: set[State] = {(None,) * replicas}
    for ordinal in range(replicas):
        states = {
            check_step(component, state, ordinal, nodes, closed, copies) for state in states for closed in every_closing
        }
    for state in states:
        for ordinal in [ordinal for ordinal, node in enumerate(state) if node is None]:
            state = check_step(component, state, ordinal, nodes, (), copies)


@pytest.mark.parametrize(
    ("component", "replicas", "nodes"), [*product(["tikv"], [3, 4, 6, 7, 9], [3, 4, 6]), ("pd", 5, 3), ("pd", 7, 4)]
)
def test_every_prefix_of_the_ordinals_is_even(component, replicas, nodes):
    state: State = (None,) * replicas
    for ordinal in range(replicas):
        state = check_step(component, state, ordinal, nodes, (), 3)

    for length in range(1, replicas + 1):
        counts = [state[:length].count(node) for node in range(1, nodes + 1)]
        assert max(counts) - min(counts) <= 1, f"the first {length} of {state}"


@pytest.mark.parametrize(("component", "replicas", "nodes"), [("tikv", 5, 3), ("tikv", 5, 5), ("pd", 5, 3)])
def test_in_whatever_order_they_come_every_prefix_is_spread_over_three(component, replicas, nodes):
    for order in permutations(range(replicas)):
        state: State = (None,) * replicas
        for ordinal in order:
            state = check_step(component, state, ordinal, nodes, (), 3)
        for length in range(1, replicas + 1):
            counts = [state[:length].count(node) for node in range(1, nodes + 1)]
            assert max(counts) <= -(-length // 3), f"the first {length} of {state}"


@pytest.mark.parametrize("replicas", range(3, 10))
def test_on_three_nodes_stores_spread_as_users_have_learnt(replicas):
    state: State = (None,) * replicas
    for ordinal in range(replicas):
        state = check_step("tikv", state, ordinal, 3, (), 3)

    expected = {3: [1, 1, 1], 4: [2, 1, 1], 5: [2, 2, 1], 6: [2, 2, 2], 7: [3, 2, 2], 8: [3, 3, 2], 9: [3, 3, 3]}
    assert sorted((state.count(node) for node in (1, 2, 3)), reverse=True) == expected[replicas]


@pytest.mark.parametrize("replicas", range(3, 10))
def test_on_two_nodes_two_stores_are_placed_and_the_others_wait(replicas):
    state: State = (None,) * replicas
    for ordinal in range(replicas):
        state = check_step("tikv", state, ordinal, 2, (), 3)

    assert sorted(node for node in state if node) == [1, 2]


def test_nine_pods_decided_one_after_another_fill_three_nodes():
    nodes = make_nodes(3)
    entries = []
    for ordinal in range(9):
        snapshot = make_snapshot(desired=make_desired(9), nodes=nodes, entries=entries)
        entries.append(make_entry(member(ordinal), decide(snapshot, make_placing(member(ordinal))).node))

    assert sorted(entry.node for entry in entries) == ["n1"] * 3 + ["n2"] * 3 + ["n3"] * 3
