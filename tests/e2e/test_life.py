"""The life of clusters whose pods all pass the webhook, from bootstrap to the end of their namespace; five at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api
from e2e.objects import ADVANCED_GROUP, ZONE
from e2e.place import Create, HandSet, Place, node_of, per_node
from e2e.replicas import record_of, tally
from e2e.rounds import at_once, rounds
from e2e.steps import events_of, homes, restart, scale
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
Tell = Callable[[str], None]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_pd_and_then_tikv_are_bootstrapped_one_to_a_node(create: Create, place: Place, policy: str) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def bootstrap(cluster: str) -> None:
        for component in ("pd", "tikv"):
            place.start(cluster=cluster, component=component, pod_management_policy=policy)
            pods = place.wait_running(3, cluster, component)
            assert per_node(pods) == [1, 1, 1]
            assert tally(pods) == {"pinned": 3}

    at_once(bootstrap)


def test_scaled_out_to_five_and_nine_and_in_again_it_stays_even(create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=15))

    def grow_and_shrink(cluster: str) -> None:
        place.start(cluster=cluster)
        place.wait_running(3, cluster)
        for replicas, expected in ((5, [2, 2, 1]), (9, [3, 3, 3]), (5, [2, 2, 1]), (3, [1, 1, 1])):
            scale(place, replicas, f"{cluster}-tikv")
            pods = place.wait_running(replicas, cluster)
            assert per_node(pods) == expected, replicas
            assert tally(pods) == {"pinned": replicas}

    at_once(grow_and_shrink)


def test_a_healthy_set_of_nine_restarts_onto_its_nodes_without_a_warning(create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=15))

    def start_and_restart(cluster: str) -> None:
        place.start(cluster=cluster, replicas=9)
        before = homes(place.wait_running(9, cluster))
        after = restart(place, 9, cluster)
        assert homes(after) == before
        assert per_node(after) == [3, 3, 3]
        assert tally(after) == {"pinned": 9}

    at_once(start_and_restart)
    assert not events_of(place, "PodReturned")
    assert not events_of(place, "NoSafeNode")


def test_a_class_that_binds_at_once_gives_nine_members_the_nodes_of_their_volumes(
    create: Create, place: Place, tell: Tell
) -> None:
    create(*objects.local_cluster(THREE, volumes=0))

    def start(cluster: str) -> Counter[str]:
        name = f"at-once-{cluster}"
        create(objects.storage_class(name, binding_mode="Immediate"))
        create(*(objects.local_volume(f"{n}-{cluster}-{i}", n, storage_class=name) for n in THREE for i in range(3)))
        place.start(cluster=cluster, replicas=9, storage_class=name)
        # Nine volumes, three on each node: the binder deals them out, and every member goes to its own.
        pods = place.wait_running(9, cluster)
        assert per_node(pods) == [3, 3, 3]
        return tally(pods)

    # One after the other: how fast the binder is with very many is not what is asked here.
    given = sum((start(f"db{number}") for number in range(rounds(5))), Counter[str]())
    tell(f"{dict(given)}")
    # Returned: those whose node was full by then for all that is known of siblings whose volumes are not bound yet.
    assert set(given) <= {"pinned", "returned"}


@pytest.mark.usefixtures("advanced_sets")
def test_a_deleted_slot_makes_room_for_the_ordinal_that_takes_its_place(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def replace(cluster: str) -> None:
        members = HandSet(place, cluster)
        members.start(3)
        before = homes(members.wait_placed(3))
        name = f"{cluster}-tikv"

        slots = {"metadata": {"annotations": {"delete-slots": "[1]"}}}
        api.patch(f"{ADVANCED_GROUP}/StatefulSet", name, slots, place.namespace)
        members.create_claims([3])
        # While the old one is still there: it is not desired any more, so it does not count.
        members.create_pods([3])
        api.delete("Pod", f"{name}-1", place.namespace, gracePeriodSeconds=0)

        pods = members.wait_placed(3)
        expected = {f"{name}-0": f"{name}-0", f"{name}-2": f"{name}-2", f"{name}-3": f"{name}-1"}
        assert homes(pods) == {new: before[old] for new, old in expected.items()}
        assert tally(pods) == {"pinned": 3}

    at_once(replace)


def test_a_set_deleted_without_its_pods_and_created_again_goes_on_as_before(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def delete_and_create(cluster: str) -> None:
        name = f"{cluster}-tikv"
        place.start(cluster=cluster)
        before = homes(place.wait_running(3, cluster))

        api.delete("StatefulSet", name, place.namespace, propagationPolicy="Orphan")
        wait_until(lambda: api.find("StatefulSet", name, place.namespace) is None, "the set to be gone", 30)
        place.start(cluster=cluster, replicas=5)

        pods = place.wait_running(5, cluster)
        assert before.items() <= homes(pods).items()
        assert per_node(pods) == [2, 2, 1]
        assert tally(pods) == {"pinned": 5}

    at_once(delete_and_create)


def test_a_namespace_full_of_members_can_be_deleted(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def start(cluster: str) -> None:
        for component in ("pd", "tikv"):
            place.start(cluster=cluster, component=component)
        for component in ("pd", "tikv"):
            assert tally(place.wait_running(3, cluster, component)) == {"pinned": 3}

    at_once(start)
    api.delete("Namespace", place.namespace)

    wait_until(lambda: api.find("Namespace", place.namespace) is None, "the namespace to be gone", 90)


def test_clusters_that_share_a_namespace_or_a_name_do_not_see_each_other(
    create: Create, place: Place, second_place: Place
) -> None:
    create(*objects.local_cluster(THREE, volumes=15))

    def start_three(cluster: str) -> None:
        neighbours = ((place, cluster), (place, f"{cluster}-a"), (second_place, cluster))
        for where, name in neighbours:
            where.start(cluster=name)
        for where, name in neighbours:
            pods = where.wait_running(3, name)
            assert per_node(pods) == [1, 1, 1]
            assert tally(pods) == {"pinned": 3}

    at_once(start_three)


@pytest.mark.usefixtures("tidb_cluster_kind")
def test_zones_are_the_domains_when_the_cluster_says_so_and_a_cordoned_zone_gets_nothing(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster([f"n{i}" for i in range(8)], zones=["z0", "z1", "z2", "z3"], volumes=5))
    for name in ("n3", "n7"):
        api.patch("Node", name, {"spec": {"unschedulable": True}})
    zones = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE] for n in api.list("Node")}

    def start(cluster: str) -> None:
        owner = api.create(objects.tidb_cluster(place.namespace, cluster, {"pingcap.com/ha-topology-key": ZONE}))
        manifest = objects.stateful_set(place.namespace, cluster=cluster, replicas=6)
        manifest["metadata"]["ownerReferences"] = [objects.owner_reference(owner)]
        api.create(manifest)

        pods = place.wait_running(6, cluster)
        assert Counter(zones[node_of(pod)] for pod in pods) == {"z0": 2, "z1": 2, "z2": 2}
        # Within a zone the hosts are different ones too.
        assert per_node(pods) == [1] * 6
        assert tally(pods) == {"pinned": 6}
        assert {record_of(pod)["topologyKey"] for pod in pods} == {ZONE}

    at_once(start)
