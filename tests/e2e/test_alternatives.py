"""What the README says of the alternatives: what manifests can ask of the default scheduler, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from e2e import objects
from e2e.api import Api, Objects, running
from e2e.objects import Object
from e2e.place import Create, Place, node_of, per_node
from e2e.rounds import few

pytestmark = pytest.mark.e2e

Tell = Callable[[str], None]

SIX: Final = [f"n{i}" for i in range(6)]
THREE: Final = SIX[:3]
ROUNDS: Final = few(20, most=3)
ONLY_N0: Final[Object] = {"nodeSelector": {objects.HOSTNAME: "n0"}}

NOTHING = "nothing"
SPREAD = "spread"
SPREAD_OVER_THREE = "spread, minDomains 3"
ANTI_AFFINITY = "anti-affinity"


def asked(alternative: str, cluster: str, component: str = "tikv") -> Object:
    """The fields of a pod's spec."""
    selector = {"matchLabels": objects.operator_labels(cluster, component)}
    spread = {"maxSkew": 1, "topologyKey": objects.HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    term = {"topologyKey": objects.HOSTNAME, "labelSelector": selector}
    return {
        NOTHING: {},
        SPREAD: {"topologySpreadConstraints": [{**spread, "labelSelector": selector}]},
        SPREAD_OVER_THREE: {"topologySpreadConstraints": [{**spread, "minDomains": 3, "labelSelector": selector}]},
        ANTI_AFFINITY: {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
    }[alternative]


def settled(pods: Objects) -> bool:
    """Whether the scheduler has had a look at each: it has a node, or there is none for it."""
    return all(node_of(pod) or is_unschedulable(pod) for pod in pods)


def is_unschedulable(pod: Object) -> bool:
    """Whether the scheduler has said so."""
    return any(condition.get("reason") == "Unschedulable" for condition in pod["status"].get("conditions", []))


@pytest.mark.timeout(60 + 15 * ROUNDS)
@pytest.mark.parametrize("zones", [[None], ["z0"], ["z0", "z1", "z2"]], ids=["no-zone", "one-zone", "three-zones"])
def test_what_stacks_three_stores_on_the_emptiest_of_six_nodes(
    api: Api, create: Create, open_place: Place, tell: Tell, zones: list[str | None]
) -> None:
    create(*objects.local_cluster(SIX, zones=zones))
    # 85 % of 8 CPUs and of 16 GiB.
    create(*(objects.filler_pod(open_place.namespace, n, cpu="6800m", memory="13926Mi") for n in SIX[1:]))
    api.wait_for("Pod", running(5), open_place.namespace)

    stacked: Counter[str] = Counter()
    for number in range(ROUNDS):
        for index, alternative in enumerate((NOTHING, SPREAD, SPREAD_OVER_THREE, ANTI_AFFINITY)):
            cluster = f"db{number}-{index}"
            open_place.start(cluster=cluster, pod_spec=asked(alternative, cluster))
            stacked[alternative] += max(per_node(open_place.wait_placed(3, cluster=cluster))) > 1
            open_place.remove(cluster=cluster)

    tell(f"sets stacked, of {ROUNDS} each: {dict(stacked)}")
    assert stacked[SPREAD] == stacked[SPREAD_OVER_THREE] == stacked[ANTI_AFFINITY] == 0
    # Else the rest of this test shows nothing.
    assert stacked[NOTHING] > ROUNDS / 2 or zones == [None]


@pytest.mark.parametrize(
    ("alternative", "nodes"), [(SPREAD, [3]), (SPREAD_OVER_THREE, [1]), (ANTI_AFFINITY, [1])], ids=str
)
def test_what_three_stores_get_of_the_only_usable_node(
    create: Create, open_place: Place, alternative: str, nodes: list[int]
) -> None:
    create(*objects.local_cluster(THREE))
    open_place.start(pod_spec={**asked(alternative, "db"), **ONLY_N0})
    assert per_node(open_place.wait_for(lambda pods: len(pods) == 3 and settled(pods))) == nodes


@pytest.mark.parametrize(
    ("alternative", "nodes"), [(SPREAD_OVER_THREE, [3, 3, 3]), (ANTI_AFFINITY, [1, 1, 1])], ids=str
)
def test_what_nine_stores_get_of_three_nodes(
    create: Create, open_place: Place, alternative: str, nodes: list[int]
) -> None:
    create(*objects.local_cluster(THREE, volumes=9))
    open_place.start(replicas=9, pod_spec=asked(alternative, "db"))
    placed = sum(nodes)

    def is_there(pods: Objects) -> bool:
        return len(pods) == 9 and settled(pods) and sum(per_node(pods)) == placed

    assert per_node(open_place.wait_for(is_there)) == nodes


def test_four_members_of_a_quorum_on_three_nodes_lose_it_with_one_node_where_spread_and_wait_with_the_webhook(
    create: Create, open_place: Place, place: Place
) -> None:
    create(*objects.local_cluster(THREE))
    open_place.start(component="pd", replicas=4, pod_spec=asked(SPREAD_OVER_THREE, "db", "pd"))
    place.start(component="pd", replicas=4)

    assert per_node(open_place.wait_placed(4, component="pd")) == [2, 1, 1]
    pods = place.wait_for(lambda pods: len(pods) == 4 and sum(per_node(pods)) == 3 and settled(pods), component="pd")
    assert per_node(pods) == [1, 1, 1]
