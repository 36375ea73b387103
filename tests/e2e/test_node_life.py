"""Nodes are cordoned, drained and lost, and members fail, under five clusters at once."""

from __future__ import annotations

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.place import Create, Place, node_of, per_node
from e2e.replicas import outcome_of, tally
from e2e.rounds import at_once
from e2e.steps import cordon, delete_members, homes, member_on, scale

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
OUT, FREE = "n0", "n3"


@pytest.fixture
def running(create: Create, place: Place) -> dict[str, list[Object]]:
    """The pods of five clusters, of which each has one member on the node that goes out of service."""
    create(*objects.local_cluster(THREE, volumes=5))

    def start(cluster: str) -> list[Object]:
        place.start(cluster=cluster)
        pods = place.wait_running(3, cluster)
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}
        return pods

    started = at_once(start)
    return {pods[0]["metadata"]["labels"]["app.kubernetes.io/instance"]: pods for pods in started}


@pytest.fixture
def leaving(running: dict[str, list[Object]]) -> list[str]:
    """The names of the members on that node."""
    return [member_on(pods, OUT) for pods in running.values()]


def add_a_node(create: Create) -> None:
    """A fourth node, with room for a member of each cluster."""
    create(objects.node(FREE), *(objects.local_volume(f"{FREE}-{i}", FREE) for i in range(5)))


def drain(control_plane: ControlPlane, leaving: list[str]) -> None:
    """Have that node's pods evicted, by kubectl."""
    done = control_plane.kubectl("drain", OUT, "--timeout=50s")
    assert done.returncode == 0, done.stderr
    assert all(f"pod/{name} evicted" in done.stdout for name in leaving), done.stdout


def wait_waiting(place: Place, running: dict[str, list[Object]], leaving: list[str]) -> None:
    """Wait until each of these members is there anew and has no node, while its siblings have stayed."""
    for cluster, before in running.items():
        old = {pod["metadata"]["uid"] for pod in before}
        pods = place.wait_for(
            lambda pods, old=old: (
                len(pods) == 3
                and [pod["metadata"]["uid"] in old for pod in pods] == list(map(bool, map(node_of, pods)))
                and sum(map(bool, map(node_of, pods))) == 2
            ),
            cluster,
        )
        (waiting,) = (pod for pod in pods if not node_of(pod))
        assert waiting["metadata"]["name"] in leaving
        assert outcome_of(waiting).startswith("returned-waiting")


def test_a_member_whose_node_is_cordoned_waits_for_it_and_its_siblings_stay(
    api: Api, place: Place, running: dict[str, list[Object]], leaving: list[str]
) -> None:
    cordon(api, OUT)
    delete_members(place, leaving)
    wait_waiting(place, running, leaving)

    cordon(api, OUT, cordoned=False)

    for cluster, before in running.items():
        assert homes(place.wait_running(3, cluster)) == homes(before)


def test_members_that_are_evicted_from_a_drained_node_wait_for_it_and_return(
    control_plane: ControlPlane,
    api: Api,
    create: Create,
    place: Place,
    running: dict[str, list[Object]],
    leaving: list[str],
) -> None:
    # There would be room elsewhere, but not for their data.
    add_a_node(create)

    drain(control_plane, leaving)
    wait_waiting(place, running, leaving)
    cordon(api, OUT, cordoned=False)

    for cluster, before in running.items():
        assert homes(place.wait_running(3, cluster)) == homes(before)


def test_members_of_a_drained_and_deleted_node_go_to_the_free_one_once_their_claims_are_gone(
    control_plane: ControlPlane,
    api: Api,
    create: Create,
    place: Place,
    running: dict[str, list[Object]],
    leaving: list[str],
) -> None:
    add_a_node(create)
    drain(control_plane, leaving)
    wait_waiting(place, running, leaving)
    api.delete("Node", OUT)

    # As people do for a lost store: pod and claim go, the name returns.
    delete_members(place, leaving, claims=True)

    for cluster, before in running.items():
        pods = place.wait_running(3, cluster)
        assert homes(pods) == {name: FREE if home == OUT else home for name, home in homes(before).items()}
        assert tally(pods) == {"pinned": 3}


def test_a_failed_pd_member_returns_under_its_name_on_a_node_of_its_own(create: Create, place: Place) -> None:
    create(*objects.local_cluster([*THREE, FREE], volumes=10))

    def fail(cluster: str) -> None:
        place.start(cluster=cluster, component="pd")
        before = place.wait_running(3, cluster, "pd")
        # As tidb-operator does it: claim and pod go, the name returns.
        delete_members(place, [f"{cluster}-pd-1"], claims=True)
        old = {pod["metadata"]["uid"] for pod in before if pod["metadata"]["name"] == f"{cluster}-pd-1"}
        place.wait_for(lambda pods: len(pods) == 3 and not old & {p["metadata"]["uid"] for p in pods}, cluster, "pd")
        pods = place.wait_running(3, cluster, "pd")
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}

    at_once(fail)


def test_a_store_that_failed_is_replaced_by_a_further_ordinal(
    api: Api, create: Create, place: Place, running: dict[str, list[Object]]
) -> None:
    # Its node is dead: the pod stays there; tidb-operator adds a replica.
    cordon(api, OUT)
    add_a_node(create)
    for cluster in running:
        scale(place, 4, f"{cluster}-tikv")

    for cluster, before in running.items():
        pods = place.wait_placed(4, cluster)
        assert homes(pods) == {**homes(before), f"{cluster}-tikv-3": FREE}
        assert tally(pods) == {"pinned": 4}
