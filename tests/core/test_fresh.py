"""A snapshot with nodes that were read once more."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import make_node, make_snapshot

from webhook.core.fresh import room_of, with_fresh, with_fresh_volumes
from webhook.core.model import FreshNode
from webhook.core.objects import PodOnNode
from webhook.core.pool import Pool
from webhook.core.storage import FreshVolume, PersistentVolume

VOLUME, OTHER = (PersistentVolume(name, storage_class="local", phase="Available") for name in "ab")


def a_pod(node: str, name: str, cpu: int = 1, *, bound: bool = True) -> PodOnNode:
    return PodOnNode("web", name, node, requests={"cpu": Decimal(cpu)}, bound=bound)


def test_a_fresh_node_takes_the_place_of_the_known_one_with_its_pods_and_room() -> None:
    known = a_pod("n1", "gone"), a_pod("n2", "stays", 2)
    placed = {pod.node_name: (pod,) for pod in known}
    rooms = {name: room_of(pods) for name, pods in placed.items()}
    snapshot = replace(make_snapshot(), placed_pods=placed, rooms=rooms)
    cordoned, arrived = make_node("n1", unschedulable=True), a_pod("n1", "new", 3)
    fresh = with_fresh(snapshot, [FreshNode("n1", cordoned, (arrived,))])
    assert [node.name for node in fresh.nodes] == ["n1", "n2", "n3"]
    assert fresh.nodes[0] is cordoned
    assert fresh.placed_pods == {"n1": (arrived,), "n2": (known[1],)}
    assert {name: dict(room.requested) for name, room in fresh.rooms.items()} == {"n1": {"cpu": 3}, "n2": {"cpu": 2}}
    assert fresh.confirmed == {"n1"}
    assert snapshot.confirmed == frozenset()


def test_pods_that_are_only_pinned_there_stay_until_they_are_found_bound() -> None:
    pinned, bound_by_now = (a_pod("n1", name, bound=False) for name in ("pinned", "bound-by-now"))
    snapshot = replace(make_snapshot(), placed_pods={"n1": (pinned, bound_by_now)})
    found = replace(bound_by_now, bound=True)
    fresh = with_fresh(snapshot, [FreshNode("n1", make_node("n1"), (found,))])
    assert fresh.placed_pods["n1"] == (pinned, found)
    assert fresh.rooms["n1"].requested == {"cpu": 2}


def test_what_has_not_changed_is_the_same_object_as_before() -> None:
    pods = a_pod("n1", "a"), a_pod("n1", "b", bound=False)
    snapshot = replace(make_snapshot(), placed_pods={"n1": pods}, rooms={"n1": room_of(pods)})
    fresh = with_fresh(snapshot, [FreshNode("n1", make_node("n1"), (a_pod("n1", "a"),))])
    assert fresh.nodes is snapshot.nodes
    assert fresh.rooms is snapshot.rooms
    assert fresh.placed_pods is snapshot.placed_pods
    assert fresh.confirmed == {"n1"}


@pytest.mark.parametrize(
    ("now", "left"),
    [
        pytest.param(replace(VOLUME, phase="Bound"), [replace(VOLUME, phase="Bound"), OTHER], id="taken meanwhile"),
        pytest.param(None, [OTHER], id="gone"),
        pytest.param(VOLUME, [VOLUME, OTHER], id="as it was"),
    ],
)
def test_a_fresh_volume_takes_the_place_of_the_known_one(now, left) -> None:
    known = make_snapshot()
    snapshot = replace(known, volumes=replace(known.volumes, of_class={"local": Pool([VOLUME, OTHER]), "other": ()}))
    fresh = with_fresh_volumes(snapshot, [FreshVolume("a", now), FreshVolume("of no class that was read", VOLUME)])
    assert sorted(fresh.volumes.of_class["local"], key=lambda volume: volume.name) == left
    assert fresh.volumes.of_class["other"] == ()
    assert (fresh.volumes.of_class == snapshot.volumes.of_class) == (now == VOLUME)
    assert fresh.volumes.confirmed == {"a", "of no class that was read"}
    assert snapshot.volumes.confirmed == frozenset()


def test_a_node_that_is_gone_is_none_of_them_any_more() -> None:
    fresh = with_fresh(make_snapshot(), [FreshNode("n2", None)])
    assert [node.name for node in fresh.nodes] == ["n1", "n3"]
    assert fresh.confirmed == {"n2"}


def test_what_was_confirmed_before_stays_confirmed() -> None:
    fresh = with_fresh(with_fresh(make_snapshot(), [FreshNode("n1", None)]), [FreshNode("n2", None)])
    assert fresh.confirmed == {"n1", "n2"}
