"""The life of a cluster whose pods all pass the webhook: from bootstrap to the end of its namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api
from e2e.objects import ADVANCED_GROUP, ZONE, Object
from e2e.place import Create, HandSet, Place, gone, node_of, per_node
from e2e.replicas import SWITCH, outcome_of, record_of, tally, wait_until_called
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
FIVE = [f"n{i}" for i in range(5)]
Tell = Callable[[str], None]


def scale(place: Place, replicas: int, name: str = "db-tikv") -> None:
    """Change the number of replicas."""
    place.api.patch("StatefulSet", name, {"spec": {"replicas": replicas}}, place.namespace)


def restart(place: Place, number: int, name: str = "db-tikv", component: str = "tikv") -> list[Object]:
    """A rolling restart; the new pods."""
    revision = {"metadata": {"annotations": {"example.test/restarted": "yes"}}}
    place.api.patch("StatefulSet", name, {"spec": {"template": revision}}, place.namespace)

    def renewed(pods: list[Object]) -> bool:
        new = [pod for pod in pods if "example.test/restarted" in pod["metadata"].get("annotations", {})]
        return len(new) == len(pods) == number and not any(map(gone, pods)) and all(map(node_of, pods))

    return place.wait_for(renewed, component=component, timeout=90)


def homes(pods: list[Object]) -> dict[str, str]:
    """Each pod's node."""
    return {pod["metadata"]["name"]: node_of(pod) for pod in pods}


def events_of(place: Place, reason: str) -> list[Object]:
    """The events of one reason."""
    return place.api.list("Event", place.namespace, fields=f"reason={reason}")


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_pd_and_then_tikv_are_bootstrapped_one_to_a_node(create: Create, place: Place, policy: str) -> None:
    create(*objects.local_cluster(THREE, volumes=4))

    for component in ("pd", "tikv"):
        place.start(component=component, pod_management_policy=policy)
        pods = place.wait_running(3, component=component)
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}


def test_scaled_out_to_five_and_nine_and_in_again_it_stays_even(create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=6))
    place.start()
    place.wait_running(3)

    for replicas, expected in ((5, [2, 2, 1]), (9, [3, 3, 3]), (5, [2, 2, 1]), (3, [1, 1, 1])):
        scale(place, replicas)
        pods = place.wait_running(replicas)
        assert per_node(pods) == expected, replicas


def test_a_healthy_set_of_nine_restarts_onto_its_nodes_without_a_warning(create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=4))
    place.start(replicas=9)
    before = homes(place.wait_running(9))

    after = restart(place, 9)

    assert homes(after) == before
    assert tally(after) == {"pinned": 9}
    assert not events_of(place, "PodReturned")
    assert not events_of(place, "NoSafeNode")


def test_a_class_that_binds_at_once_gives_nine_members_the_nodes_of_their_volumes(
    create: Create, place: Place, tell: Tell
) -> None:
    create(*objects.local_cluster(THREE, volumes=0))
    create(objects.storage_class("at-once", binding_mode="Immediate"))
    create(*(objects.local_volume(f"{n}-{i}", n, storage_class="at-once") for n in THREE for i in range(3)))

    place.start(replicas=9, storage_class="at-once")

    # Nine volumes, three on each node: the binder deals them out, and every member goes to its own.
    pods = place.wait_running(9)
    assert per_node(pods) == [3, 3, 3]
    tell(f"{dict(tally(pods))}")


def test_a_member_whose_node_is_cordoned_waits_for_it_and_its_siblings_stay(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster(THREE))
    place.start()
    before = homes(place.wait_running(3))

    api.patch("Node", before["db-tikv-1"], {"spec": {"unschedulable": True}})
    api.delete("Pod", "db-tikv-1", place.namespace, gracePeriodSeconds=0)
    place.wait_for(lambda pods: len(pods) == 3 and sum(not node_of(pod) for pod in pods) == 1)
    waiting = api.get("Pod", "db-tikv-1", place.namespace)
    assert outcome_of(waiting).startswith("returned-waiting")
    api.patch("Node", before["db-tikv-1"], {"spec": {"unschedulable": None}})

    assert homes(place.wait_running(3)) == before


def test_a_drained_and_deleted_node_is_left_for_the_free_one_once_the_claim_is_gone(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster([*THREE, "n3"]))
    place.start()
    before = homes(place.wait_running(3))
    lost = before["db-tikv-2"]
    free = ({*THREE, "n3"} - set(before.values())).pop()

    api.patch("Node", lost, {"spec": {"unschedulable": True}})
    api.delete("Node", lost)
    # As tidb-operator does for a failed PD member, and people for a lost store: pod and claim go, the name returns.
    api.delete("PersistentVolumeClaim", "tikv-db-tikv-2", place.namespace)
    api.delete("Pod", "db-tikv-2", place.namespace, gracePeriodSeconds=0)

    after = homes(place.wait_running(3))
    assert after == {**before, "db-tikv-2": free}


def test_a_failed_pd_member_returns_under_its_name_on_a_node_of_its_own(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster([*THREE, "n3"]))
    place.start(component="pd")
    place.wait_running(3, component="pd")

    for _ in range(5):
        api.delete("PersistentVolumeClaim", "pd-db-pd-1", place.namespace)
        api.delete("Pod", "db-pd-1", place.namespace, gracePeriodSeconds=0)
        pods = place.wait_running(3, component="pd")
        assert per_node(pods) == [1, 1, 1]
        place.renew_volumes_released()


def test_a_store_that_failed_is_replaced_by_a_further_ordinal(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster([*THREE, "n3"]))
    place.start()
    before = homes(place.wait_running(3))
    # Its node is dead: the pod stays there, NotReady; tidb-operator adds a replica.
    api.patch("Node", before["db-tikv-0"], {"spec": {"unschedulable": True}})

    scale(place, 4)

    pods = place.wait_placed(4)
    assert per_node(pods) == [1, 1, 1, 1]


@pytest.mark.usefixtures("advanced_sets")
def test_a_deleted_slot_makes_room_for_the_ordinal_that_takes_its_place(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=4))
    members = HandSet(place)
    members.start(3)
    before = homes(members.wait_placed(3))

    slots = {"metadata": {"annotations": {"delete-slots": "[1]"}}}
    api.patch(f"{ADVANCED_GROUP}/StatefulSet", "db-tikv", slots, place.namespace)
    members.create_claims([3])
    # While the old one is still there: it is not desired any more, so it does not count.
    members.create_pods([3])
    api.delete("Pod", "db-tikv-1", place.namespace, gracePeriodSeconds=0)

    after = homes(members.wait_placed(3))
    assert after == {
        "db-tikv-0": before["db-tikv-0"],
        "db-tikv-2": before["db-tikv-2"],
        "db-tikv-3": before["db-tikv-1"],
    }


def test_a_set_deleted_without_its_pods_and_created_again_goes_on_as_before(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster(THREE))
    place.start()
    before = homes(place.wait_running(3))

    api.delete("StatefulSet", "db-tikv", place.namespace, propagationPolicy="Orphan")
    wait_until(lambda: api.find("StatefulSet", "db-tikv", place.namespace) is None, "the set to be gone", 30)
    place.start(replicas=5)

    after = homes(place.wait_running(5))
    assert before.items() <= after.items()
    assert sorted(Counter(after.values()).values()) == [1, 2, 2]


def test_a_namespace_full_of_members_can_be_deleted(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=4))
    place.start()
    place.start(component="pd")
    place.wait_running(3)

    api.delete("Namespace", place.namespace)

    wait_until(lambda: api.find("Namespace", place.namespace) is None, "the namespace to be gone", 90)


def test_clusters_that_share_a_namespace_or_a_name_do_not_see_each_other(
    api: Api, create: Create, place: Place, second_place: Place
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))

    for where, cluster in ((place, "db"), (place, "db-a"), (second_place, "db")):
        where.start(cluster=cluster)
    for where, cluster in ((place, "db"), (place, "db-a"), (second_place, "db")):
        pods = where.wait_running(3, cluster)
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}


@pytest.mark.usefixtures("tidb_cluster_kind")
def test_zones_are_the_domains_when_the_cluster_says_so_and_a_cordoned_zone_gets_nothing(
    api: Api, create: Create, place: Place, tell: Tell
) -> None:
    create(*objects.local_cluster([f"n{i}" for i in range(8)], zones=["z0", "z1", "z2", "z3"], volumes=2))
    for name in ("n3", "n7"):
        api.patch("Node", name, {"spec": {"unschedulable": True}})
    owner = api.create(objects.tidb_cluster(place.namespace, "db", {"pingcap.com/ha-topology-key": ZONE}))
    manifest = objects.stateful_set(place.namespace, replicas=6)
    manifest["metadata"]["ownerReferences"] = [objects.owner_reference(owner)]

    api.create(manifest)

    pods = place.wait_running(6)
    zones = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE] for n in api.list("Node")}
    assert Counter(zones[node_of(pod)] for pod in pods) == {"z0": 2, "z1": 2, "z2": 2}
    # Within a zone the hosts are different ones too.
    assert per_node(pods) == [1] * 6
    assert {record_of(pod)["topologyKey"] for pod in pods} == {ZONE}


def test_six_stores_placed_by_tidb_scheduler_go_on_after_the_upgrade(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=4))
    # What tidb-scheduler leaves behind: two to a node, its lock on a claim, and its name in the template.
    manifest = objects.stateful_set(place.namespace, replicas=6, pod_spec={"schedulerName": "tidb-scheduler"})
    api.create(manifest)
    pods = place.wait_for(lambda pods: len(pods) == 6)
    assert tally(pods) == {"untouched TidbScheduler": 6} or set(tally(pods)) <= {"untouched TidbScheduler", "nothing"}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        ordinal = int(pod["metadata"]["name"].rpartition("-")[2])
        bind(api, pod, THREE[ordinal % 3])
    mark = {"metadata": {"annotations": {"tidb.pingcap.com/pod-scheduling": "2026-01-01T00:00:00Z"}}}
    api.patch("PersistentVolumeClaim", "tikv-db-tikv-5", mark, place.namespace)
    before = homes(place.wait_running(6))

    api.patch(
        "StatefulSet",
        "db-tikv",
        {"spec": {"template": {"spec": {"schedulerName": "default-scheduler"}}}},
        place.namespace,
    )
    after = place.wait_for(
        lambda pods: (
            len(pods) == 6
            and all(node_of(pod) and pod["spec"]["schedulerName"] == "default-scheduler" for pod in pods)
            and not any(map(gone, pods))
        ),
        timeout=90,
    )

    assert homes(after) == before
    assert tally(after) == {"pinned": 6}
    claim = api.get("PersistentVolumeClaim", "tikv-db-tikv-5", place.namespace)
    assert claim["metadata"]["annotations"]["tidb.pingcap.com/pod-scheduling"] == "2026-01-01T00:00:00Z"


def bind(api: Api, pod: Object, node_name: str) -> None:
    """What a scheduler does: a volume for the claim, then the pod to its node."""
    metadata = pod["metadata"]
    claim = next(
        v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v
    )
    found = api.get("PersistentVolumeClaim", claim, metadata["namespace"])
    volume = next(
        v
        for v in api.list("PersistentVolume")
        if v["metadata"]["name"].startswith(f"{node_name}-") and "claimRef" not in v["spec"]
    )
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": claim,
        "namespace": metadata["namespace"],
        "uid": found["metadata"]["uid"],
    }
    api.patch("PersistentVolume", volume["metadata"]["name"], {"spec": {"claimRef": reference}})
    api.wait_for(
        "PersistentVolumeClaim",
        lambda claims: any(c["metadata"]["name"] == claim and c["status"]["phase"] == "Bound" for c in claims),
        metadata["namespace"],
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": metadata["name"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
    api.request("POST", path, binding)


def test_three_stores_stacked_before_the_webhook_came_return_with_a_warning_each_and_the_fourth_goes_elsewhere(
    api: Api, create: Create, open_place: Place
) -> None:
    place = open_place
    create(*objects.local_cluster(["n0"], volumes=4))
    place.start()
    assert per_node(place.wait_running(3)) == [3]
    create(*objects.local_cluster(["n1", "n2"], volumes=2)[1:])
    # Now the webhook is installed.
    send_to_the_webhook(api, place)

    after = restart(place, 3)
    assert per_node(after) == [3]
    assert tally(after) == {"returned": 3}
    events = api.wait_for(
        "Event", lambda found: len(found) == 3, place.namespace, fields="reason=PodReturned", timeout=20
    )
    assert {event["message"].split()[0] for event in events} == {f"db-tikv-{i}" for i in range(3)}

    scale(place, 4)
    pods = place.wait_running(4)
    assert per_node(pods) == [3, 1]


def send_to_the_webhook(api: Api, place: Place) -> None:
    """From now on the namespace's members go to the undisturbed webhook."""
    api.patch("Namespace", place.namespace, {"metadata": {"labels": {SWITCH: "undisturbed"}}})
    wait_until_called(api, place.namespace)


@pytest.mark.usefixtures("advanced_sets")
@pytest.mark.parametrize("guarded", range(3))
@pytest.mark.parametrize("first", [True, False], ids=["guarded-first", "guarded-last"])
def test_a_guarded_pod_beside_pinned_ones_is_never_on_their_node(
    create: Create, place: Place, guarded: int, first: bool
) -> None:
    create(*objects.local_cluster(THREE))
    members = HandSet(place)
    members.create_claims(range(3))
    pinned = [ordinal for ordinal in range(3) if ordinal != guarded]
    annotations = {"tidb-ha-webhook.io/placement": "Guard"}

    def create_guarded() -> None:
        pod = objects.member_pod(members.set, guarded)
        pod["metadata"]["annotations"] = annotations
        place.api.create(pod)

    if first:
        create_guarded()
        members.create_pods(pinned)
    else:
        members.create_pods(pinned)
        create_guarded()

    pods = members.wait_placed(3)
    assert per_node(pods) == [1, 1, 1]
    assert tally(pods) == {"pinned": 2, "guarded GuardOption": 1}
