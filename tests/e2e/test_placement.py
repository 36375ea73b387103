"""Pods that are created together do not share nodes: what the webhook is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.place import Create, HandSet, Place, per_node
from e2e.replicas import tally
from e2e.rounds import rounds

pytestmark = pytest.mark.e2e

Tell = Callable[[str], None]
SIX = [f"n{i}" for i in range(6)]
THREE = ["n0", "n1", "n2"]


@pytest.mark.timeout(60 + 15 * rounds(50))
@pytest.mark.parametrize("zones", [["z0"], ["z0", "z1", "z2"]], ids=["one-zone", "three-zones"])
def test_three_stores_stack_on_the_emptiest_of_six_nodes_without_the_webhook_and_never_with_it(
    api: Api, create: Create, open_place: Place, place: Place, tell: Tell, zones: list[str]
) -> None:
    create(*objects.local_cluster(SIX, zones=zones))
    # 85 % of 8 CPUs and of 16 GiB.
    create(*(objects.filler_pod(open_place.namespace, n, cpu="6800m", memory="13926Mi") for n in SIX[1:]))
    api.wait_for("Pod", running(5), open_place.namespace)

    stacked: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for number in range(rounds(50)):
        for where, name in ((open_place, "without"), (place, "with")):
            where.start(cluster=f"db{number}")
            pods = where.wait_placed(3, cluster=f"db{number}")
            stacked[name] += max(per_node(pods)) > 1
            if where is place:
                given += tally(pods)
            where.remove(cluster=f"db{number}")

    tell(f"sets stacked, of {rounds(50)}: {dict(stacked)}; pods given: {dict(given)}")
    assert stacked["with"] == 0
    assert given == {"pinned": 3 * rounds(50)}
    # Else the rest of this test shows nothing.
    assert stacked["without"] > rounds(50) / 2


@pytest.mark.timeout(60 + 10 * rounds(30))
@pytest.mark.usefixtures("advanced_sets")
def test_nine_creates_at_once_on_three_nodes_become_three_on_each(create: Create, place: Place, tell: Tell) -> None:
    create(*objects.local_cluster(THREE, volumes=9))
    given: Counter[str] = Counter()

    for number in range(rounds(30)):
        members = HandSet(place, cluster=f"db{number}", replicas=9)
        members.start(9)
        pods = members.wait_pinned_placed(9)
        assert max(per_node(pods)) <= 3
        given += tally(pods)
        members.remove()

    tell(f"{rounds(30)} sets of 9: {dict(given)}")
    assert given == {"pinned": 9 * rounds(30)}


@pytest.mark.timeout(60 + 8 * rounds(200))
@pytest.mark.usefixtures("advanced_sets")
@pytest.mark.parametrize("component", ["pd", "tikv"])
def test_three_creates_at_once_on_three_nodes_become_one_on_each(
    create: Create, place: Place, tell: Tell, component: str
) -> None:
    create(*objects.local_cluster(THREE))
    given: Counter[str] = Counter()

    for number in range(rounds(200)):
        members = HandSet(place, cluster=f"db{number}", component=component)
        members.start(3)
        pods = members.wait_pinned_placed(3)
        assert max(per_node(pods)) == 1
        given += tally(pods)
        members.remove()

    tell(f"{rounds(200)} sets of 3: {dict(given)}")
    assert given == {"pinned": 3 * rounds(200)}
