"""All replicas are away and come back: what slipped through is counted, and never made worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.namespaces import registered
from e2e.place import Create, Place, node_of, per_node
from e2e.replicas import SERVICE, Webhook, tally, wait_until_called
from e2e.rounds import at_once
from e2e.steps import delete_members, homes, restart, scale

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
Tell = Callable[[str], None]


@pytest.fixture
def lone(control_plane: ControlPlane, service_namespace: str, tmp_path: Path) -> Iterator[Webhook]:
    """A webhook of one replica, which runs when the test begins."""
    with Webhook(
        control_plane, tmp_path, replicas=1, chart_rights=True, service=(service_namespace, SERVICE)
    ) as webhook:
        yield webhook


def test_under_fail_nobody_comes_in_until_it_is_back(
    api: Api, create: Create, lone: Webhook, request: pytest.FixtureRequest
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))
    (replica,) = lone.replicas
    with registered(api, create, lone, request.node.name, failure_policy="Fail") as place:
        replica.child.kill()
        owners = at_once(lambda cluster: place.start(cluster=cluster)["metadata"]["name"])
        api.wait_for(
            "Event",
            lambda found: {event["involvedObject"]["name"] for event in found} == set(owners),
            place.namespace,
            fields="reason=FailedCreate",
        )
        assert not api.list("Pod", place.namespace)

        replica.start()

        def wait(cluster: str) -> None:
            pods = place.wait_running(3, cluster)
            assert per_node(pods) == [1, 1, 1]
            assert tally(pods) == {"pinned": 3}

        at_once(wait)


def test_under_ignore_what_slipped_through_is_counted_and_never_made_worse(
    api: Api, create: Create, lone: Webhook, request: pytest.FixtureRequest, tell: Tell
) -> None:
    create(*objects.local_cluster(["n0"], volumes=20))
    (replica,) = lone.replicas
    with registered(api, create, lone, request.node.name, failure_policy="Ignore") as place:
        replica.child.kill()

        def slip_through(cluster: str) -> None:
            place.start(cluster=cluster)
            pods = place.wait_running(3, cluster)
            assert tally(pods) == {"nothing": 3}
            assert per_node(pods) == [3]

        at_once(slip_through)
        replica.start()
        # Under Ignore a call that still meets the killed process lets its pod through.
        wait_until_called(api, place.namespace)
        create(*objects.local_cluster(["n1", "n2"], volumes=10)[1:])

        def go_on(cluster: str) -> None:
            scale(place, 4, f"{cluster}-tikv")
            pods = place.wait_running(4, cluster)
            assert per_node(pods) == [3, 1]
            assert tally(pods) == {"nothing": 3, "pinned": 1}
            # Back to its data, beside more than it should be: counted as what it is.
            delete_members(place, [f"{cluster}-tikv-0"])
            pods = place.wait_for(lambda pods: len(pods) == 4 and tally(pods)["nothing"] == 2, cluster)
            assert tally(pods) == {"nothing": 2, "returned": 1, "pinned": 1}
            assert per_node(place.wait_running(4, cluster)) == [3, 1]

        at_once(go_on)
        tell(f"{dict(tally(api.list('Pod', place.namespace)))}")


def test_under_ignore_with_the_floor_nobody_is_stacked_and_nobody_is_refused(
    api: Api, create: Create, lone: Webhook, request: pytest.FixtureRequest, tell: Tell
) -> None:
    create(*objects.local_cluster(THREE[:2], volumes=10))
    (replica,) = lone.replicas
    with registered(api, create, lone, request.node.name, failure_policy="Ignore", floor=True) as place:
        replica.child.kill()

        def start(cluster: str) -> None:
            place.start(cluster=cluster)
            # Two nodes, three members: two are placed apart, the third waits.
            pods = place.wait_for(
                lambda pods: len(pods) == 3 and len(list(filter(None, map(node_of, pods)))) == 2, cluster
            )
            assert per_node(pods) == [1, 1]
            assert tally(pods) == {"nothing": 3}
            assert all(objects.GUARD in pod["metadata"]["annotations"] for pod in pods)

        at_once(start)
        slipped = tally(api.list("Pod", place.namespace))
        assert not api.list("Event", place.namespace, fields="reason=FailedCreate")
        replica.start()
        # Under Ignore a call that still meets the killed process lets its pod through.
        wait_until_called(api, place.namespace)
        create(*objects.local_cluster(THREE[2:], volumes=10)[1:])

        def go_on(cluster: str) -> None:
            assert per_node(place.wait_running(3, cluster)) == [1, 1, 1]
            # A guarded member keeps all siblings off its node, until it comes anew.
            assert per_node(restart(place, 3, cluster)) == [1, 1, 1]
            scale(place, 6, f"{cluster}-tikv")
            pods = place.wait_running(6, cluster)
            assert per_node(pods) == [2, 2, 2]
            assert tally(pods) == {"pinned": 6}

        at_once(go_on)
        tell(f"{dict(slipped)} while it was away; then {dict(tally(api.list('Pod', place.namespace)))}")


def test_a_member_that_restarts_while_it_is_away_returns_to_its_data_under_the_floor(
    api: Api, create: Create, lone: Webhook, request: pytest.FixtureRequest
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))
    (replica,) = lone.replicas
    with registered(api, create, lone, request.node.name, failure_policy="Ignore", floor=True) as place:
        before = at_once(lambda cluster: running(place, cluster))
        assert all(tally(pods) == {"pinned": 3} for pods in before)
        replica.child.kill()

        def return_home(cluster: str) -> dict[str, str]:
            delete_members(place, [f"{cluster}-tikv-1"])
            pods = place.wait_for(lambda pods: len(pods) == 3 and tally(pods)["nothing"] == 1, cluster)
            assert tally(pods) == {"pinned": 2, "nothing": 1}
            return homes(place.wait_running(3, cluster))

        assert at_once(return_home) == list(map(homes, before))


def running(place: Place, cluster: str) -> list[objects.Object]:
    """Start a set; its pods."""
    place.start(cluster=cluster)
    return place.wait_running(3, cluster)
