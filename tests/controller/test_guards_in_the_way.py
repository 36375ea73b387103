"""Guarded members that run, and the guarded ones that wait for their places: one deletion is enough.

The scheduler here knows node affinity, cordons and guards in both directions, and may be quicker than the owner.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from cluster_objects import ZONE, a_node, a_pod, a_v1_world, with_floor
from controller.standing import Leader, play_owner, pods_of
from stand import SPACE, Stand

from webhook.cluster.door import NODES, PODS, Manifest
from webhook.cluster.quantities import parse_quantity
from webhook.controller.memory import FIRST_PAUSE
from webhook.core import keys
from webhook.core.manifests import node_from, pod_from
from webhook.core.model import Decision, Placing, Snapshot
from webhook.core.selectors import matches_node

NINE = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(9)]
CAP = 3


def schedule(stand: Stand) -> None:
    """Bind each pod that can be, to the node with the fewest members."""
    for name in sorted(pods_of(stand)):
        pod = pod_from(pods_of(stand)[name])
        bound = [pod_from(other) for other in pods_of(stand).values()]
        held: dict[str, list[bool]] = {}
        for other in bound:
            if other.node_name:
                held.setdefault(other.node_name, []).append(keys.GUARD in other.annotations)
        possible = [
            node.name
            for node in map(node_of, stand.cluster.list(NODES, timeout=1).items)
            if not node.unschedulable
            and matches_node(pod.node_affinity, node)
            and not any(held.get(node.name, ()))
            and not (keys.GUARD in pod.annotations and node.name in held)
        ]
        if not pod.node_name and possible:
            stand.bind(name, min(possible, key=lambda node: (len(held.get(node, ())), node)))


def node_of(manifest: Manifest):
    return node_from(manifest, parse_quantity)


def counts(stand: Stand) -> list[int]:
    nodes = [pod["spec"].get("nodeName", "") for pod in pods_of(stand).values()]
    return sorted(nodes.count(node) for node in {*nodes} - {""})


def run(stand: Stand, leader: Leader | None, seconds: float, *, scheduler_first: bool) -> None:
    """Seconds of everybody doing what they do; no node ever holds more than the cap."""
    steps: list[Callable[[], object]] = [lambda: play_owner(stand, *NINE), lambda: schedule(stand)]
    for _ in range(round(seconds)):
        for step in reversed(steps) if scheduler_first else steps:
            step()
            assert max(counts(stand), default=0) <= CAP
        if leader is not None:
            leader.rescue.turn()
        stand.clock.elapsed += 1


def guarded_first(*guarded: int, nodes: int = 3) -> Stand:
    """These came while we were away, and run with the floor's guard, each on a node of its own."""
    stand = Stand(*a_v1_world(replicas=9, node_count=nodes))
    for number, ordinal in enumerate(guarded, start=1):
        stand.cluster.admit(with_floor(a_pod(f"db-tikv-{ordinal}")), namespace=SPACE)
        stand.bind(f"db-tikv-{ordinal}", f"n{number}")
    return stand


def in_the_way(stand: Stand) -> list[str]:
    return sorted(
        name
        for name, pod in pods_of(stand).items()
        if pod["spec"].get("nodeName") and keys.GUARD in pod["metadata"].get("annotations", {})
    )


@pytest.mark.parametrize("scheduler_first", [True, False], ids=["a quick scheduler", "a quick owner"])
def test_when_the_one_in_the_way_is_deleted_all_nine_run(scheduler_first: bool) -> None:
    stand = guarded_first(0)
    leader = Leader(stand)
    run(stand, leader, 20, scheduler_first=scheduler_first)
    assert (counts(stand), in_the_way(stand)) == ([1, 3, 3], ["db-tikv-0"])

    stand.delete(PODS, "db-tikv-0")
    run(stand, leader, 30, scheduler_first=scheduler_first)

    assert (counts(stand), in_the_way(stand)) == ([3, 3, 3], [])


def test_without_the_exclusion_one_after_another_is_in_the_way() -> None:
    """What this is for: the same schedule with the exclusion left out."""
    stand = guarded_first(0)
    ordinary = stand.tools.decide

    def decide(snapshot: Snapshot, placing: Placing) -> Decision:
        return replace(ordinary(snapshot, placing), avoids=())

    substituted = replace(stand.tools, decide=decide)
    stand.queues._tools = substituted
    run(stand, None, 3, scheduler_first=True)
    stand.delete(PODS, "db-tikv-0")
    run(stand, None, 3, scheduler_first=True)

    assert len(in_the_way(stand)) == 1


def test_without_a_controller_whoever_waits_runs_when_it_is_deleted_next() -> None:
    stand = guarded_first(0)
    run(stand, None, 3, scheduler_first=True)
    waiting = sorted(name for name, pod in pods_of(stand).items() if not pod["spec"].get("nodeName"))
    assert len(waiting) == 2

    for name in ["db-tikv-0", *waiting]:
        stand.delete(PODS, name)
        run(stand, None, 3, scheduler_first=False)

    assert counts(stand) == [3, 3, 3]


def test_a_new_node_is_taken_though_others_are_excluded() -> None:
    stand = guarded_first(0)
    run(stand, None, 3, scheduler_first=True)
    stand.cluster.create(NODES, a_node("n9"), timeout=1)
    run(stand, None, 3, scheduler_first=True)

    assert counts(stand) == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("guarded", "scheduler_first", "nodes"),
    [((4, 7), True, 3), ((0, 1, 2), True, 3), ((2, 8), False, 4)],
)
def test_as_many_deletions_as_there_are_guarded_ones_are_enough(
    guarded: tuple[int, ...], scheduler_first: bool, nodes: int
) -> None:
    stand = guarded_first(*guarded, nodes=nodes)
    leader = Leader(stand)
    run(stand, leader, 10, scheduler_first=scheduler_first)
    for name in in_the_way(stand):
        stand.delete(PODS, name)
        run(stand, leader, FIRST_PAUSE + 10, scheduler_first=scheduler_first)

    assert (len(counts(stand)), sum(counts(stand)), in_the_way(stand)) == (nodes, 9, [])


def test_a_pinned_member_whose_node_a_guarded_sibling_got_first_is_decided_anew() -> None:
    """Both wait when the scheduler looks: nobody is on the node yet, so the guard lets the other one there."""
    stand = Stand(*a_v1_world(node_count=4))
    pinned, guarded = a_pod("db-tikv-0"), a_pod("db-tikv-1")
    stand.cluster.admit(with_floor(guarded), namespace=SPACE)
    taken = stand.admit(pinned).node
    stand.bind("db-tikv-1", taken)
    leader = Leader(stand)
    for _ in range(4):
        leader.turns(5)
        play_owner(stand, pinned)

    assert leader.deleted == ["db-tikv-0"]
    assert pods_of(stand)["db-tikv-0"]["metadata"]["annotations"][keys.ASSIGNED_NODE] not in ("", taken)


def test_those_that_the_floor_guarded_by_hostname_do_not_wait_for_each_other_where_zones_are_kept_apart() -> None:
    """By zone each of them could go anywhere, so that each stands in the others' way."""
    zones = [a_node("n1", zone="za"), a_node("n2", zone="zb")]
    world = [*a_v1_world(replicas=6, node_count=0, topology_key=ZONE, min_domains="2"), *zones]
    stand = Stand(*world)
    for ordinal, node in ((0, "n1"), (1, "n2")):
        stand.admit(a_pod(f"db-tikv-{ordinal}"))
        stand.bind(f"db-tikv-{ordinal}", node)
    waiting = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(2, 6)]
    for pod in waiting:
        stand.cluster.admit(with_floor(json.loads(json.dumps(pod))), namespace=SPACE)
    leader = Leader(stand)
    for _ in range(12):
        leader.turns(5)
        play_owner(stand, *waiting)

    assigned = [pods_of(stand)[pod["metadata"]["name"]]["metadata"]["annotations"] for pod in waiting]
    assert sorted(annotations[keys.ASSIGNED_NODE] for annotations in assigned) == ["n1", "n1", "n2", "n2"]
    assert "by kubernetes.io/hostname, while its group is kept apart by topology.kubernetes.io/zone" in str(
        leader.notices
    )


def test_a_member_whose_own_guard_keeps_it_off_its_node_is_pinned_there_without_it() -> None:
    """While few nodes are used one store goes to each, so the guard kept an open sibling off. It came first."""
    stand = Stand(*a_v1_world(replicas=6))
    stand.cluster.admit(a_pod("db-tikv-5"), namespace=SPACE)
    pinned = stand.admit(a_pod("db-tikv-0"))
    assert pinned.guarded
    stand.bind("db-tikv-5", pinned.node)
    for ordinal in range(1, 5):
        name = f"db-tikv-{ordinal}"
        stand.bind(name, stand.admit(a_pod(name)).node)
    leader = Leader(stand)
    for _ in range(4):
        leader.turns(5)
        play_owner(stand, a_pod("db-tikv-0"))

    annotations = pods_of(stand)["db-tikv-0"]["metadata"]["annotations"]
    assert (annotations[keys.ASSIGNED_NODE], keys.GUARD in annotations) == (pinned.node, False)
    assert leader.deleted == ["db-tikv-0"]
