"""`can-drain`: its verdict is what removing the nodes really leaves; names, zones, exit codes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    ZONE,
    a_claim,
    a_cluster,
    a_node,
    a_pod,
    a_set,
    a_v1_world,
    a_volume,
    labels_v1,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from operating.asked import connected, dump, run
from stand import Stand

from webhook.cluster.door import CLAIMS, NODES, PODS
from webhook.core import keys
from webhook.core.audited import Survival
from webhook.errors import SettingsError
from webhook.operating.auditing import Report, read_report
from webhook.operating.draining import Verdict, nodes_of, verdict_on

# --- random clusters, and what is left of them by counting


@dataclass(frozen=True)
class Store:
    """A member: the node it is on, None for none yet, and whether it runs. `data`: the node of its local volume."""

    node: int | None
    runs: bool
    data: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it waits, and never had a volume: no copy and no vote can be there."""
        return self.node is None and self.data is None


@dataclass(frozen=True)
class World:
    """One group: its members by ordinal, the zone of each node ("" for all: no zones), what PD's file says."""

    component: str
    zones: tuple[str, ...]
    stores: tuple[Store, ...]
    replicas: int
    copies: int
    location_labels: tuple[str, ...] | None

    def manifests(self) -> Iterator[dict[str, Any]]:
        """The cluster as objects."""
        cluster = a_cluster(copies=str(self.copies))
        if self.location_labels is not None:
            cluster["spec"] = {"pd": {"config": {"replication": {"location-labels": list(self.location_labels)}}}}
        yield cluster
        yield a_set(self.component, self.replicas)
        labels = labels_v1(self.component)
        for ordinal, store in enumerate(self.stores):
            volume = f"pv-{ordinal}" if store.data is not None else ""
            yield a_claim(f"{self.component}-db-{self.component}-{ordinal}", labels, volume=volume)
            if volume:
                yield a_volume(volume, f"n{store.data}")
        for number, zone in enumerate(self.zones):
            yield a_node(f"n{number}", zone=zone)
        for ordinal, store in enumerate(self.stores):
            name = f"db-{self.component}-{ordinal}"
            pod = a_pod(name, claim=f"{self.component}-{name}")
            pod["metadata"]["labels"] = labels_v1(self.component)
            if store.node is not None:
                pod["spec"]["nodeName"] = f"n{store.node}"
            ready = store.runs and store.node is not None
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
            yield pod

    def place(self, store: Store, level: str) -> str:
        """The store's domain at a level."""
        if store.node is None:
            return ""
        return f"n{store.node}" if level == "host" else self.zones[store.node]


def stores(known: bool) -> st.SearchStrategy[list[Store]]:
    node = st.integers(0, 3) if known else st.none() | st.integers(0, 3)
    # Mostly running: with many lost already nothing is left to be found out.
    runs = st.sampled_from((True, True, True, True, True, False))
    data = st.none() if known else st.none() | st.integers(0, 3)
    return st.lists(st.builds(Store, node, runs, data), min_size=1, max_size=7)


def worlds(*, known: bool) -> st.SearchStrategy[World]:
    """`known`: every member has a pod on a node, so that nothing is left to be careful about."""
    zones = st.just(("",) * 4) | st.lists(st.sampled_from("abc"), min_size=4, max_size=4).map(tuple)
    more = st.just(0) if known else st.integers(0, 2)
    return st.tuples(
        st.sampled_from(("tikv", "tikv", "pd")),
        zones,
        stores(known),
        more,
        st.sampled_from((3, 3, 5)),
        st.sampled_from((None, None, (), ("host",), ("zone",))),
    ).map(lambda drawn: World(*drawn[:2], tuple(drawn[2]), len(drawn[2]) + drawn[3], *drawn[4:]))


def left_by_counting(world: World, lost: Collection[int]) -> Survival:
    """What is certainly there without these nodes: every placement of the copies that PD may have made is tried."""
    there = [store for store in world.stores if not store.is_empty]
    gone = [store for store in there if not store.runs or store.node is None or store.node in lost]
    replicas = world.replicas - (len(world.stores) - len(there))
    if world.component == "pd":
        alive = len(there) - len(gone) > replicas // 2
        return Survival.SURVIVES if alive else Survival.BREAKS
    missing = [Store(None, False)] * (world.replicas - len(world.stores))
    everyone = [*((store, store in gone) for store in there), *((store, True) for store in missing)]
    copies = min(world.copies, replicas)
    placements = list(combinations(range(len(everyone)), copies))

    def holds(of: Sequence[tuple[int, ...]]) -> bool:
        return all(sum(everyone[number][1] for number in placement) <= (copies - 1) // 2 for placement in of)

    def kept_apart(level: str) -> list[tuple[int, ...]]:
        domains = [world.place(store, level) for store, _ in everyone]
        return [placement for placement in placements if is_even(placement, domains)]

    if holds(placements):
        return Survival.SURVIVES
    levels = ("host", "zone") if world.location_labels is None else world.location_labels
    if not any(holds(kept_apart(level)) for level in levels):
        return Survival.BREAKS
    return Survival.IF_ISOLATED if world.location_labels is None else Survival.SURVIVES


def is_even(placement: Sequence[int], domains: Sequence[str]) -> bool:
    """Whether no copy could go to a domain that holds two fewer; stores in no domain say nothing of that."""
    if "" in domains:
        return True
    room, used = Counter(domains), Counter(domains[number] for number in placement)
    return all(used[one] <= used[other] + 1 for one in room for other in room if used[other] < room[other])


def dense() -> st.SearchStrategy[World]:
    """Several stores to a node, all running: what is left hangs on where PD has put the copies."""
    zones = st.sampled_from((("",) * 4, ("a", "b", "c", "c"), ("a", "a", "b", "b")))
    on_nodes = st.lists(st.integers(0, 3), min_size=6, max_size=9)
    labels = st.sampled_from((None, ("host",), ("zone",)))
    return st.builds(
        lambda where, zones, labels: World(
            "tikv", zones, tuple(Store(node, True) for node in where), len(where), 3, labels
        ),
        on_nodes,
        zones,
        labels,
    )


SOME = st.sets(st.integers(0, 3), max_size=2)


def judged(world: World, lost: Collection[int]) -> tuple[Stand, Report, Verdict]:
    stand = Stand(*world.manifests())
    report = read_report(connected(stand))
    return stand, report, verdict_on(report, [f"n{number}" for number in lost])


def survival_in(verdict: Verdict, report: Report) -> Survival:
    """The verdict on the one group; one that loses nothing is as it was."""
    (row,) = report.rows
    return verdict.losses[0].loss.survival if verdict.losses else row.audited.now


@settings(max_examples=300)
@given(worlds(known=True) | dense(), SOME)
@example(World("tikv", ("a", "a", "b", "c"), tuple(Store(n % 4, True) for n in range(8)), 8, 3, None), {0})
@example(World("tikv", ("a", "a", "b", "c"), tuple(Store(n % 4, True) for n in range(8)), 8, 3, ("zone",)), {0, 1})
@example(World("tikv", ("a", "a", "b", "c"), tuple(Store(n % 4, True) for n in range(8)), 8, 3, ("host",)), {0, 1})
def test_the_verdict_is_what_every_possible_placement_of_the_copies_leaves(world: World, lost: set[int]):
    _, report, verdict = judged(world, lost)

    assert survival_in(verdict, report) is left_by_counting(world, lost)


@given(worlds(known=False), SOME)
@example(World("tikv", ("",) * 4, (*(Store(n, True) for n in range(4)), *[Store(None, False)] * 2), 6, 3, None), set())
@example(World("pd", ("",) * 4, (*(Store(n, True) for n in range(3)), *[Store(None, False)] * 4), 7, 3, None), set())
@example(
    World("pd", ("",) * 4, (*(Store(n % 4, n < 3) for n in range(7)), *[Store(None, False)] * 2), 9, 3, None), set()
)
def test_where_members_are_in_no_known_place_it_never_promises_more_than_is_left(world: World, lost: set[int]):
    _, report, verdict = judged(world, lost)

    rank = [Survival.BREAKS, Survival.IF_ISOLATED, Survival.SURVIVES]
    assert rank.index(survival_in(verdict, report)) <= rank.index(left_by_counting(world, lost))


@given(worlds(known=False), st.integers(0, 4))
@example(World("tikv", ("",) * 4, tuple(Store(n, True) for n in range(4)), 4, 3, None), 2)
@example(World("pd", ("",) * 4, tuple(Store(n, True) for n in range(3)), 3, 3, None), 4)
def test_new_members_that_wait_without_data_make_nothing_lost_already(world: World, more: int):
    _, before, _ = judged(world, ())
    grown = replace(world, stores=(*world.stores, *[Store(None, False)] * more), replicas=world.replicas + more)
    if world.replicas > len(world.stores) or any(store.is_empty for store in world.stores):
        return

    _, after, _ = judged(grown, ())

    running = sum(store.runs and store.node is not None for store in world.stores)
    enough = 3 if world.component == "pd" else world.copies
    if running >= enough:
        assert after.rows[0].audited.now is before.rows[0].audited.now
    assert after.rows[0].audited.margin.survives <= before.rows[0].audited.margin.survives


@given(worlds(known=False), SOME)
@example(World("tikv", ("",) * 4, (Store(None, False, 0), Store(None, False, 1), Store(2, True)), 3, 3, None), {0})
@example(World("pd", ("",) * 4, (Store(0, False), Store(1, False), Store(2, True)), 3, 3, None), {1})
def test_no_node_may_go_that_holds_what_a_broken_group_would_come_back_to(world: World, lost: set[int]):
    _, _, verdict = judged(world, lost)

    held = any(store.data in lost or store.node in lost for store in world.stores)
    if held and left_by_counting(world, lost) is Survival.BREAKS:
        assert not verdict.safe
        assert [str(loss.group) for loss in verdict.losses] == [f"shop/db/{world.component}"]


@given(worlds(known=True), SOME)
def test_removing_the_nodes_leaves_who_the_verdict_does_not_name(world: World, lost: set[int]):
    stand, report, verdict = judged(world, lost)
    (before,) = report.rows
    for pod in stand.cluster.list(PODS, namespace=SPACE, timeout=1).items:
        if pod["spec"].get("nodeName") in verdict.nodes:
            stand.delete(PODS, pod["metadata"]["name"])
    for name in verdict.nodes:
        stand.delete(NODES, name)

    rows = read_report(connected(stand)).rows

    named = {member for loss in verdict.losses for member in loss.loss.members}
    runs = {member.name for member in before.audited.members if member.running}
    left = {member.name for row in rows for member in row.audited.members if member.running}
    assert left == runs - named
    # Of a set without any pod nobody knows the group, and of its lost stores nobody knows the domains.
    if rows and world.component == "pd":
        assert rows[0].audited.now is survival_in(verdict, report)


# --- the command


def a_cluster_of(*nodes: str, component: str = "pd", zones: str = "") -> Stand:
    """A set with a running member on each of these nodes."""
    named = sorted({*nodes, "n1", "n2", "n3"})
    made = [a_node(name, zone=zones[number] if zones else "") for number, name in enumerate(named)]
    stand = Stand(*made, *a_v1_world(len(nodes), component, node_count=0))
    for number, node in enumerate(nodes):
        name = f"db-{component}-{number}"
        stand.cluster.admit(a_pod(name), namespace=SPACE)
        stand.bind(name, node)
        stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    return stand


def drain(tmp_path: Path, stand: Stand, *arguments: str) -> Any:
    return run("can-drain", *arguments, "--cluster", dump(tmp_path / "dump.json", stand.cluster))


def test_a_node_that_may_go_is_exit_code_0(tmp_path: Path):
    result = drain(tmp_path, a_cluster_of("n1", "n2", "n3"), "n1")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "yes: without n1 quorum and data of every group are still there",
        "  ok  shop/db/pd  loses 1 member (db-pd-0): survives",
    ]


def test_nodes_that_may_not_go_together_may_go_one_at_a_time(tmp_path: Path):
    result = drain(tmp_path, a_cluster_of("n1", "n2", "n3"), "n1", "n2")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "no: without n1, n2 shop/db/pd would not certainly have enough left",
        "  NO  shop/db/pd  loses 2 members (db-pd-0, db-pd-1): its quorum may be lost: 3 of 3 run now and 1 then, "
        "2 are needed",
        "alone, each of them could go: one at a time, and the next when all members run again",
    ]


def test_only_those_that_can_go_alone_are_named(tmp_path: Path):
    result = drain(tmp_path, a_cluster_of("n1", "n1", "n2"), "n1", "n2")

    assert result.stdout.splitlines()[-1].startswith("alone, n2 could go")


def test_a_node_without_members_may_go(tmp_path: Path):
    result = drain(tmp_path, a_cluster_of("n1", "n1", "n2"), "n3")

    assert result.exit_code == 0
    assert "1 group(s) have nothing there" in result.stdout


def test_a_zone_is_all_its_nodes(tmp_path: Path):
    stand = a_cluster_of("n1", "n2", "n3", zones="aab")

    assert drain(tmp_path, stand, "--zone", "b").exit_code == 0
    result = drain(tmp_path, stand, "--zone", "a")
    assert result.exit_code == 1
    assert "without n1, n2 " in result.stdout
    assert drain(tmp_path, stand, "n3", "--zone", "a").exit_code == 1


def test_what_is_not_known_of_pd_is_no_yes_unless_it_is_assumed(tmp_path: Path):
    stand = a_cluster_of("n1", "n1", "n2", "n2", "n3", "n3", component="tikv")

    result = drain(tmp_path, stand, "n1")
    assert result.exit_code == 1
    assert "loses 2 members (db-tikv-0, db-tikv-1): survives if PD isolates by host: not checked" in result.stdout

    assert drain(tmp_path, stand, "n1", "--assume-isolation").exit_code == 0


def test_a_group_that_cannot_be_judged_is_a_no_where_it_has_pods(tmp_path: Path):
    stand = a_cluster_of("n1", "n2", "n3")
    stranger = a_pod("xx-tikv-0", labels=labels_v1(cluster="xx"), nodeName="n1")
    stand.cluster.admit(stranger, namespace=SPACE)

    result = drain(tmp_path, stand, "n1")
    assert result.exit_code == 1
    assert "no: without n1 shop/xx/tikv cannot be judged" in result.stdout
    assert "NO  shop/xx/tikv  cannot be judged: what its owners want is not known" in result.stdout

    assert drain(tmp_path, stand, "n2").exit_code == 0


def a_broken_cluster() -> Stand:
    """One of three stores runs, on n3; the others wait for their data on n1 and n2."""
    found = (Store(None, False, 1), Store(None, False, 2), Store(3, True, 3))
    return Stand(*World("tikv", ("",) * 5, found, 3, 3, None).manifests())


def test_a_node_with_data_of_a_group_that_is_broken_already_may_not_go(tmp_path: Path):
    result = drain(tmp_path, a_broken_cluster(), "n1")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "no: without n1 shop/db/tikv would not certainly have enough left",
        "  NO  shop/db/tikv  holds what db-tikv-0 would come back to: a majority of some data's copies may be lost "
        "already: 1 of 3 run (db-tikv-0, db-tikv-1 do not), and whichever they are, 1 may be missing",
        "first see to those that do not run: tidb-ha-webhook why POD -n NAMESPACE",
    ]


def test_a_node_without_anything_of_a_broken_group_may_go_and_the_group_is_named(tmp_path: Path):
    result = drain(tmp_path, a_broken_cluster(), "n4")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "yes: n4 may go, but broken already are shop/db/tikv, which have nothing there",
        "  1 group(s) have nothing there",
    ]


def test_where_nobody_knows_where_a_broken_groups_data_is_no_node_may_go(tmp_path: Path):
    stand = a_cluster_of("n1", "n2", "n3")
    for name in ("db-pd-1", "db-pd-2"):
        stand.delete(PODS, name)
        stand.delete(CLAIMS, f"pd-{name}")

    result = drain(tmp_path, stand, "n2")

    assert result.exit_code == 1
    said = "NO  shop/db/pd  may hold data of 2 without a pod or a claim: its quorum may be lost already"
    assert said in result.stdout


def test_a_dump_without_pods_is_no_answer(tmp_path: Path):
    stand = a_cluster_of("n1", "n2", "n3")
    for name in ("db-pd-0", "db-pd-1", "db-pd-2"):
        stand.delete(PODS, name)

    result = drain(tmp_path, stand, "n1")

    assert result.exit_code == 3
    assert "the dump holds no pods, so what runs where is not known" in result.stderr


def test_json_has_the_same(tmp_path: Path):
    told = json.loads(drain(tmp_path, a_cluster_of("n1", "n2", "n3"), "n1", "n2", "-o", "json").stdout)

    assert (told["safe"], told["nodes"], told["alone"]) == (False, ["n1", "n2"], ["n1", "n2"])
    assert told["groups"][0]["members"] == ["db-pd-0", "db-pd-1"]
    assert told["groups"][0]["survival"] == "breaks"
    assert told["notJudged"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("n11",), "there is no node 'n11'; did you mean n1"),
        (("--zone", "aa"), f"there is no zone 'aa' by the node label {ZONE}; did you mean a"),
        ((), "no node was named: give nodes, or --zone"),
    ],
)
def test_names_that_are_not_there_get_near_matches(tmp_path: Path, arguments: tuple[str, ...], said: str):
    result = drain(tmp_path, a_cluster_of("n1", "n2", "n3", zones="abc"), *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_cluster_without_zones_has_none(tmp_path: Path):
    result = drain(tmp_path, a_cluster_of("n1", "n2", "n3"), "--zone", "a")

    assert "there is no zone at all" in result.stderr


def test_an_empty_cluster_has_no_such_node(tmp_path: Path):
    result = drain(tmp_path, Stand(), "n1")

    assert result.exit_code == 2
    assert "there is no node at all" in result.stderr


def test_a_zone_without_a_name_is_none():
    report = read_report(connected(a_cluster_of("n1", "n2", "n3")))

    with pytest.raises(SettingsError, match="no zone ''"):
        nodes_of(report, (), ("",))


def test_the_topology_label_of_the_group_does_not_change_who_is_lost():
    stand = a_cluster_of("n1", "n2", "n3")
    assert keys.HOSTNAME in stand.cluster.get(NODES, "n1", timeout=1)["metadata"]["labels"]
    report = read_report(connected(stand))

    assert verdict_on(report, ["n1"]).losses[0].loss.members == ("db-pd-0",)
