"""Pods that are created together do not share nodes: what the webhook is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.disturbed import Rounds
from e2e.place import Create, Place, per_node
from e2e.replicas import Webhook, tally
from e2e.rounds import rounds

pytestmark = pytest.mark.e2e

Tell = Callable[[str], None]
SIX = [f"n{i}" for i in range(6)]


@pytest.mark.timeout(60 + 15 * rounds(50))
@pytest.mark.parametrize("zones", [["z0"], ["z0", "z1", "z2"]], ids=["one-zone", "three-zones"])
def test_three_stores_stack_on_the_emptiest_of_six_nodes_without_the_webhook_and_never_with_it(
    api: Api, create: Create, open_place: Place, place: Place, tell: Tell, zones: list[str]
) -> None:
    # Room for both arms on one node.
    create(*objects.local_cluster(SIX, zones=zones, volumes=6))
    # 85 % of 8 CPUs and of 16 GiB.
    create(*(objects.filler_pod(open_place.namespace, n, cpu="6800m", memory="13926Mi") for n in SIX[1:]))
    api.wait_for("Pod", running(5), open_place.namespace)

    stacked: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for number in range(rounds(50)):
        arms = ((open_place, "without"), (place, "with"))
        for where, _ in arms:
            where.start(cluster=f"db{number}")
        for where, name in arms:
            pods = where.wait_placed(3, cluster=f"db{number}")
            stacked[name] += max(per_node(pods)) > 1
            if where is place:
                given += tally(pods)
        for where, _ in arms:
            where.remove(cluster=f"db{number}")

    tell(f"sets stacked, of {rounds(50)}: {dict(stacked)}; pods given: {dict(given)}")
    assert stacked["with"] == 0
    assert given == {"pinned": 3 * rounds(50)}
    # Else the rest of this test shows nothing.
    assert stacked["without"] > rounds(50) / 2


@pytest.mark.timeout(60 + 10 * rounds(200))
@pytest.mark.usefixtures("advanced_sets")
@pytest.mark.parametrize(
    ("component", "size", "times"),
    [("tikv", 9, rounds(30)), ("tikv", 3, rounds(200)), ("pd", 3, rounds(200))],
    ids=["nine-stores", "three-stores", "three-pd-members"],
)
def test_creates_at_once_on_three_nodes_become_the_same_number_on_each(
    webhook: Webhook, place: Place, tell: Tell, component: str, size: int, times: int
) -> None:
    scenario = Rounds(place, webhook, component=component, sizes=(size,))

    for _ in range(times):
        with scenario.one():
            pass

    tell(scenario.finish())
    # With everybody pinned and nobody beside too many, there are as many on each.
    assert scenario.given == {"pinned": size * times}
