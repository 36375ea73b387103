"""Nodes by how much of them is free: the order in which a member likes them, found step by step."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice

import pytest
from builders import GIB, make_node, make_nodes, make_room
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.ladder import Ladder, digest, free_share, ladder_of
from webhook.core.model import NodeRoom
from webhook.core.node_index import NodeIndex
from webhook.core.objects import Node

MEMBER = digest("t1/db-tikv-0")
NOTHING = NodeRoom()

sizes = st.integers(0, 4)
nodes = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(8)]), st.tuples(sizes, sizes, st.integers(0, 3)), max_size=8
)
wishes = st.fixed_dictionaries({"cpu": sizes.map(Decimal), "memory": sizes.map(lambda size: Decimal(size) * GIB)})


def scene(drawn) -> tuple[dict[str, Node], dict[str, NodeRoom]]:
    found = {name: make_node(name, cpu=cpu, memory=memory * GIB) for name, (cpu, memory, _) in drawn.items()}
    return found, {name: make_room(cpu=asked, memory=asked * GIB) for name, (_, _, asked) in drawn.items() if asked}


def sorted_at_once(found, rooms, wanted) -> list[str]:
    def rank(name):
        asked = rooms.get(name, NOTHING).requested
        return -free_share(found[name], asked, wanted), MEMBER ^ digest(name)

    return sorted(found, key=rank)


@given(before=nodes, after=nodes, kept=st.sets(st.sampled_from([f"n{number}" for number in range(8)])), wanted=wishes)
def test_it_is_as_if_all_nodes_were_sorted_whatever_they_were_before(before, after, kept, wanted):
    earlier = scene(before)
    later = scene(after)
    # What has not changed is the same object.
    for old, new in zip(earlier, later, strict=True):
        new.update({name: old[name] for name in kept if name in old and name in new})
    ladder = Ladder().after(*earlier).after(*later)

    assert [name for *_, name in ladder.down(wanted, MEMBER)] == sorted_at_once(*later, wanted)


def test_an_older_ladder_stays_as_it_was():
    found, rooms = scene({"n1": (4, 4, 0), "n2": (4, 4, 1)})
    ladder = Ladder().after(found, rooms)
    before = list(ladder.down({}, MEMBER))
    ladder.after(found, {**rooms, "n1": make_room(cpu=3)})

    assert list(ladder.down({}, MEMBER)) == before


def test_nothing_is_done_where_nothing_has_changed():
    index, rooms = NodeIndex(make_nodes(3)), {"n1": make_room(cpu=1)}

    assert ladder_of(index, rooms) is ladder_of(index, rooms)


def test_a_large_pod_may_like_another_node_than_a_small_one():
    found = {"large": make_node("large", cpu=16), "small": make_node("small", cpu=4)}
    rooms = {"large": make_room(cpu=4)}

    def first(cpu):
        return next(Ladder().after(found, rooms).down({"cpu": Decimal(cpu)}, MEMBER))[2]

    assert (first(0), first(3)) == ("small", "large")


def test_of_nodes_alike_members_like_different_ones():
    ladder = Ladder().after({node.name: node for node in make_nodes(6)}, {})
    firsts = {next(ladder.down({}, digest(f"t1/db{number}-tikv-0")))[2] for number in range(60)}

    assert firsts == {"n1", "n2", "n3", "n4", "n5", "n6"}


@pytest.mark.parametrize(
    ("offered", "asked", "share"),
    [
        pytest.param({"cpu": 8, "memory": 8}, {"cpu": 2}, 0.75, id="the scarcer counts"),
        pytest.param({"cpu": 8, "memory": 8}, {"cpu": 9}, -0.125, id="overcommitted"),
        pytest.param({"cpu": 8}, {"memory": 1}, 1.0, id="what it does not report does not count"),
        pytest.param({}, {"cpu": 1}, 0.0, id="nothing reported"),
    ],
)
def test_the_free_share_is_that_of_the_scarcer_resource(offered, asked, share):
    node = make_node(allocatable={name: Decimal(amount) for name, amount in offered.items()})

    assert free_share(node, make_room(**asked).requested, {}) == share


def test_the_first_is_found_without_the_others():
    found = {node.name: node for node in make_nodes(2000)}
    ladder = Ladder().after(found, {name: make_room(cpu=number % 7) for number, name in enumerate(found)})
    three = [name for *_, name in islice(ladder.down({"cpu": Decimal(1)}, MEMBER), 3)]

    assert all(int(name.removeprefix("n")) % 7 == 1 for name in three)
