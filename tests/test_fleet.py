"""All groups of a cluster in few calls: the same that a round reads of one group, and those without any pod."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    a_claim,
    a_cluster,
    a_generic_pod,
    a_pod,
    a_set,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    a_volume,
    an_object,
    generic_world,
    labels_v1,
    labels_v2,
    nodes,
)
from stand import Stand

from webhook.cluster.door import PD_GROUPS, PDS, TIDB_CLUSTERS, TIKV_GROUPS
from webhook.cluster.fleet import Fleet, FoundGroup, read_fleet
from webhook.cluster.inventory import PromptInventory
from webhook.cluster.reader import Reader
from webhook.core import keys
from webhook.core.location_labels import location_labels
from webhook.deadline import Deadline
from webhook.errors import Forbidden


def fleet_of(stand: Stand, namespace: str = "") -> Fleet:
    return read_fleet(Reader(stand.door, Deadline.after(10)), namespace)  # type: ignore[arg-type]


def only(fleet: Fleet) -> FoundGroup:
    (found,) = fleet.groups
    assert fleet.unreadable == ()
    return found


@pytest.mark.parametrize(
    ("world", "pods", "name"),
    [
        (a_v1_world(), [a_pod("db-tikv-0"), a_pod("db-tikv-1")], "shop/db/tikv"),
        (a_v2_world(), [a_v2_pod("a1b2c3"), a_v2_pod("d4e5f6")], "shop/db/tikv"),
        (generic_world(), [a_generic_pod(0), a_generic_pod(1)], "shop/raft/quorum"),
    ],
    ids=["v1", "v2", "generic"],
)
def test_a_group_is_what_a_round_reads_of_it(world: list[Any], pods: list[Any], name: str):
    stand = Stand(*world)
    for pod in pods:
        stand.admit(pod)

    found = only(fleet_of(stand))

    deadline = Deadline.after(10)
    claims = stand.store.list_claims(found.group, deadline).claims
    state = stand.store.read_group(found.group, claims, (), deadline)
    assert str(found.group) == name
    assert sorted(pod.name for pod in found.snapshot.pods) == sorted(pod.name for pod in state.pods)
    assert sorted(claim.name for claim in found.snapshot.claims) == sorted(claim.name for claim in claims)
    assert found.snapshot.desired == state.desired
    assert found.snapshot.nodes == state.nodes
    assert found.snapshot.now > 0


@pytest.mark.parametrize("world", [a_v1_world(), a_v2_world(), generic_world()], ids=["v1", "v2", "generic without"])
def test_a_group_without_any_pod_is_found_by_its_owner(world: list[Any]):
    for found in world:
        if found["kind"] == "StatefulSet":
            label = {keys.CLASS_LABEL: "quorum", "app": "raft"} if "raft" in found["metadata"]["name"] else labels_v1()
            found["spec"]["template"] = {"metadata": {"labels": label}}

    found = only(fleet_of(Stand(*world)))

    assert found.snapshot.pods == ()
    assert found.snapshot.desired.replicas == 3
    assert len(found.snapshot.claims) == 3


def test_the_pods_of_a_set_whose_class_is_none_are_members_too():
    stand = Stand(*generic_world())
    for ordinal in range(3):
        stand.admit(a_generic_pod(ordinal, "quorumm"))

    found = only(fleet_of(stand))

    assert str(found.group) == "shop/raft/quorum"
    assert len(found.snapshot.pods) == 3


def test_pods_from_before_the_class_of_their_set_was_corrected_are_of_the_same_group():
    world = generic_world()
    for found in world:
        if found["kind"] == "StatefulSet":
            labels = {keys.CLASS_LABEL: "replicated", "app": "raft"}
            found["spec"]["template"] = {"metadata": {"labels": labels}}
    stand = Stand(*world)
    for ordinal, value in enumerate(("replicatd", "quorum", "replicated")):
        stand.admit(a_generic_pod(ordinal, value))

    group = only(fleet_of(stand))

    assert str(group.group) == "shop/raft/replicated"
    assert len(group.snapshot.pods) == 3


def test_a_set_that_wants_no_pods_is_no_group():
    empty = a_set(replicas=0)
    empty["spec"]["template"] = {"metadata": {"labels": labels_v1()}}

    assert fleet_of(Stand(empty, an_object(TIKV_GROUPS, "x", spec={}))).groups == ()


def test_the_pods_that_were_orphaned_are_members():
    alone = a_pod("db-tikv-1")
    v2 = a_v2_pod("a1b2c3")
    for pod in (alone, v2):
        pod["metadata"]["ownerReferences"] = []
    stand = Stand(*a_v1_world(), a_pod("db-tikv-0"), alone, *a_v2_world()[3:4], v2)
    labelled = labels_v2()
    assert v2["metadata"]["labels"] == labelled

    fleet = fleet_of(stand)

    names = {str(found.group.family): [pod.name for pod in found.snapshot.pods] for found in fleet.groups}
    assert names == {"tidb-operator v1": ["db-tikv-0", "db-tikv-1"], "tidb-operator v2": ["kv-tikv-a1b2c3"]}


def test_a_pod_that_only_looks_like_a_member_is_none():
    alone = a_pod("copy")
    alone["metadata"] |= {"ownerReferences": [], "labels": {"app": "raft", keys.CLASS_LABEL: "quorum"}}
    daemon = a_pod("db-tikv-x", owner={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True})

    assert fleet_of(Stand(*nodes(), alone, daemon)).groups == ()


def test_a_group_whose_owner_is_gone_is_named():
    fleet = fleet_of(Stand(*nodes(), a_pod()))

    (unreadable,) = fleet.unreadable
    assert str(unreadable.group) == "shop/db/tikv"
    assert [pod.name for pod in unreadable.pods] == ["db-tikv-0"]
    assert "what its owners want is not known: get statefulsets db-tikv: 404" in unreadable.why


def test_only_the_namespace_that_is_asked_for_is_read():
    stand = Stand(*a_v1_world(), a_pod())

    assert len(fleet_of(stand, SPACE).groups) == 1
    assert fleet_of(stand, "other").groups == ()


def test_volumes_are_those_of_the_groups_claims():
    world = [found for found in a_v1_world(1) if found["kind"] != "PersistentVolumeClaim"]
    stand = Stand(*world, a_pod(), a_claim("tikv-db-tikv-0", volume="pv-1"), a_volume("pv-1", "n1"), a_volume("pv-2"))

    assert list(only(fleet_of(stand)).snapshot.volumes.persistent_volumes) == ["pv-1"]


def test_the_calls_do_not_grow_with_the_groups():
    def calls(groups: int) -> int:
        world: list[Any] = []
        for number in range(groups):
            labels = labels_v1(cluster=f"db{number}")
            world += [a_set(cluster=f"db{number}"), a_cluster()] if number == 0 else [a_set(cluster=f"db{number}")]
            world.append(a_pod(f"db{number}-tikv-0", labels=labels))
            world.append(a_claim(f"tikv-db{number}-tikv-0", labels))
        stand = Stand(*world)
        assert len(fleet_of(stand).groups) == groups
        return len(stand.door.calls)

    assert calls(1) == calls(20) <= 25


def test_nodes_that_an_inventory_knows_are_not_read_again():
    stand = Stand(*a_v1_world())
    reader = Reader(stand.door, Deadline.after(10))  # type: ignore[arg-type]
    told = read_fleet(reader)
    stand.door.calls.clear()

    assert read_fleet(reader, view=PromptInventory(stand.cluster).view()) == told
    assert "list nodes" not in stand.door.calls


def test_what_may_not_be_read_is_an_error():
    stand = Stand(*a_v1_world())
    stand.door.fails("list statefulsets", Forbidden("list", "statefulsets", status=403))

    with pytest.raises(Forbidden):
        fleet_of(stand)


# --- location-labels

TOML = '[replication]\nlocation-labels = ["zone", "host"]\n'
KEYS = frozenset({keys.HOSTNAME, "topology.kubernetes.io/zone"})


def test_location_labels_of_a_v1_cluster_are_read():
    cluster = a_cluster()
    cluster["spec"] = {"pd": {"config": TOML}}
    world = [found for found in a_v1_world() if found["kind"] != TIDB_CLUSTERS.kind]

    assert only(fleet_of(Stand(*world, cluster, a_pod()))).isolated_by == KEYS


def test_location_labels_of_a_v2_cluster_are_read_where_its_pd_groups_agree():
    def a_group(name: str, config: str) -> Any:
        spec = {"cluster": {"name": "db"}, "replicas": 0, "template": {"spec": {"config": config}}}
        return an_object(PD_GROUPS, name, spec=spec)

    def isolated_by(*groups: Any) -> list[frozenset[str] | None]:
        fleet = fleet_of(Stand(*a_v2_world(), a_v2_pod(), *groups))
        return [found.isolated_by for found in fleet.groups if found.group.component == "tikv"]

    other = an_object(PDS, "alone", spec={"cluster": {"name": "another"}})
    assert isolated_by(a_group("pd", TOML), other) == [KEYS]
    assert isolated_by(a_group("pd", TOML), a_group("pd-2", "")) == [None]
    assert isolated_by() == [None]


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        (TOML, ("zone", "host")),
        ({"replication": {"location-labels": ["zone"]}}, ("zone",)),
        ({"replication": {"location-labels": "zone, host"}}, ("zone", "host")),
        ("[replication]\nlocation-labels = []", ()),
        ("[replication]\nmax-replicas = 5", None),
        ("not toml =", None),
        ("", None),
        (None, None),
        ([], None),
        ({"replication": {"location-labels": 3}}, None),
        ({"replication": 3}, None),
    ],
)
def test_location_labels_are_read_from_any_config(config: object, labels: tuple[str, ...] | None):
    assert location_labels(config) == labels
