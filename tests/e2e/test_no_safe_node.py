"""Three members on two nodes: the third has no safe node."""

from __future__ import annotations

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.objects import Object
from e2e.place import Create, HandSet, Place, node_of, per_node
from e2e.replicas import outcome_of, tally
from e2e.rounds import at_once

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

TWO = ["n0", "n1"]
WHEN_UNPLACEABLE = "tidb-ha-webhook.io/when-unplaceable"


def test_the_third_waits_readably_and_is_placed_when_a_node_comes(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(TWO, volumes=10))

    def start(cluster: str) -> str:
        place.start(cluster=cluster)
        pods = place.wait_for(lambda pods: len(pods) == 3 and sum(map(bool, map(node_of, pods))) == 2, cluster)
        assert tally(pods) == {"pinned": 2, "guarded NoSafeNode": 1}
        (waiting,) = (pod["metadata"]["name"] for pod in pods if not node_of(pod))
        return str(waiting)

    waiting = set(at_once(start))

    def refused(found: list[Object]) -> bool:
        # The scheduler's first look may come before it knows the pod's claim.
        return {about(event) for event in found if "pod anti-affinity rules" in event["message"]} >= waiting

    def told_of(found: list[Object]) -> set[str]:
        return {name for event in found for name in waiting if name in event["message"] or name == about(event)}

    api.wait_for("Event", refused, place.namespace, fields="reason=FailedScheduling")
    ours = api.wait_for("Event", lambda found: told_of(found) == waiting, place.namespace, fields="reason=NoSafeNode")
    assert all("at most 1" in event["message"] for event in ours)

    create(*objects.local_cluster(["n2"], volumes=5)[1:])

    def wait(cluster: str) -> None:
        assert per_node(place.wait_running(3, cluster)) == [1, 1, 1]

    at_once(wait)


def about(event: Object) -> str:
    """The name of the object that an event is about."""
    name: str = event["involvedObject"]["name"]
    return name


@pytest.mark.parametrize("choice", ["Deny", "Admit"])
def test_the_owner_may_choose_to_have_it_refused_or_let_in(create: Create, place: Place, choice: str) -> None:
    create(*objects.local_cluster(TWO, volumes=10))

    def choose(cluster: str) -> None:
        members = HandSet(place, cluster)
        members.create_claims(range(3))
        members.create_pods([0, 1])
        pod = objects.member_pod(members.set, 2)
        pod["metadata"]["annotations"] = {WHEN_UNPLACEABLE: choice}

        if choice == "Deny":
            with pytest.raises(ApiError, match="no node that can take it is within the cap") as refused:
                place.api.create(pod)
            assert refused.value.status == 403
            assert tally(members.pods()) == {"pinned": 2}
        else:
            assert outcome_of(place.api.create(pod)) == "admitted NoSafeNode"
            assert tally(members.pods()) == {"pinned": 2, "admitted NoSafeNode": 1}

    at_once(choose)
