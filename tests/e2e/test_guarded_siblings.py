"""A guarded pod beside pinned ones, in every order of arrival: never on one node."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from e2e import objects
from e2e.api import Api
from e2e.namespaces import registered
from e2e.objects import Object
from e2e.place import Create, HandSet, Place, per_node
from e2e.replicas import Webhook, tally
from e2e.rounds import at_once

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]
UNSEEN = "e2e.test/unseen"
# Admitted while the webhook was away.
SEEN_ONLY = {"objectSelector": {"matchExpressions": [{"key": UNSEEN, "operator": "DoesNotExist"}]}}
POSITIONS = pytest.mark.parametrize("position", range(3), ids=["guarded-first", "guarded-second", "guarded-last"])
ORDERS = {f"db{number}": order for number, order in enumerate(permutations(range(3)))}
"""A cluster for each order of arrival of three members, of which the one at the position is guarded."""


def arrive(place: Place, cluster: str, position: int, guard: Callable[[Object], None]) -> list[Object]:
    """The members come in the order of the cluster, the one at the position as `guard` makes it; all when placed."""
    members = HandSet(place, cluster)
    members.create_claims(range(3))
    for number, ordinal in enumerate(ORDERS[cluster]):
        pod = objects.member_pod(members.set, ordinal)
        if number == position:
            guard(pod)
        place.api.create(pod)
    pods = members.wait_placed(3)
    assert per_node(pods) == [1, 1, 1], ORDERS[cluster]
    return pods


@POSITIONS
def test_a_guarded_pod_beside_pinned_ones_is_never_on_their_node(create: Create, place: Place, position: int) -> None:
    create(*objects.local_cluster(THREE, volumes=len(ORDERS)))

    def ask_for_it(pod: Object) -> None:
        pod["metadata"]["annotations"] = {"tidb-ha-webhook.io/placement": "Guard"}

    for pods in at_once(lambda cluster: arrive(place, cluster, position, ask_for_it), len(ORDERS)):
        assert tally(pods) == {"pinned": 2, "guarded GuardOption": 1}


@POSITIONS
def test_a_pod_that_only_the_floor_has_seen_is_never_on_the_node_of_pinned_ones(
    api: Api, create: Create, webhook: Webhook, request: pytest.FixtureRequest, position: int
) -> None:
    create(*objects.local_cluster(THREE, volumes=len(ORDERS)))

    def hide(pod: Object) -> None:
        pod["metadata"]["labels"][UNSEEN] = "true"

    with registered(api, create, webhook, request.node.name, floor=True, **SEEN_ONLY) as place:
        for pods in at_once(lambda cluster: arrive(place, cluster, position, hide), len(ORDERS)):
            assert tally(pods) == {"pinned": 2, "nothing": 1}
            unseen = [pod for pod in pods if UNSEEN in pod["metadata"]["labels"]]
            assert [pod for pod in pods if objects.GUARD in pod["metadata"].get("annotations", {})] == unseen
