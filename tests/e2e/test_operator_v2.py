"""Pods as tidb-operator v2 makes them: applied again and again, random names, no StatefulSet."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.namespaces import define
from e2e.objects import HOSTNAME, ZONE, Object
from e2e.operator_v2 import Group, definitions
from e2e.place import Create, Place, node_of, per_node
from e2e.replicas import outcome_of, tally
from e2e.rounds import at_once
from e2e.steps import homes

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("v2_kinds")]

THREE = ["n0", "n1", "n2"]
ON_LINUX = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
OWN_NODE_AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ON_LINUX]}}
}
OWN_ANTI_AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "something-else"}}}
        ]
    }
}
SHAPES: dict[str, dict[str, Any]] = {
    "nothing-of-its-own": {},
    "own-zone-selector": {"nodeSelector": {ZONE: "z0"}},
    "own-node-affinity": {"affinity": OWN_NODE_AFFINITY},
    "own-anti-affinity": {"affinity": OWN_ANTI_AFFINITY},
    "own-node-affinity-and-anti-affinity": {"affinity": {**OWN_NODE_AFFINITY, **OWN_ANTI_AFFINITY}},
    "own-anti-affinity-and-selector": {"affinity": OWN_ANTI_AFFINITY, "nodeSelector": {ZONE: "z0"}},
}


@pytest.fixture(scope="module")
def v2_kinds(control_plane: ControlPlane) -> Iterator[None]:
    """The kinds of tidb-operator v2."""
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        define(api, *definitions())
        yield
        for definition in definitions():
            api.delete("CustomResourceDefinition", definition["metadata"]["name"])


def wait_placed(api: Api, namespace: str, number: int, component: str = "tikv", cluster: str = "db") -> list[Object]:
    """Wait until the pods of all groups of the component are there and have nodes."""
    return api.wait_for(
        "Pod",
        lambda pods: len(pods) == number and all(map(node_of, pods)),
        namespace,
        labels=f"pingcap.com/cluster={cluster},pingcap.com/component={component}",
    )


def apply_all(groups: list[Group]) -> None:
    """Claims and pods of all instances, as close together as they come."""
    for group in groups:
        group.apply_claims(group.instances)
    work = [(group, instance) for group in groups for instance in group.instances]
    with ThreadPoolExecutor(len(work)) as executor:
        list(executor.map(lambda pair: pair[0].apply_pod_patiently(pair[1]), work))


@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.parametrize("shape", SHAPES)
def test_after_each_admission_the_same_apply_and_one_with_a_new_label_succeed_and_the_spec_stays(
    api: Api, create: Create, place: Place, shape: str, component: str
) -> None:
    create(*objects.local_cluster(THREE, zones=["z0"], volumes=5))

    def admit_and_apply_again(cluster: str) -> None:
        group = Group(
            api, place.namespace, f"kv-{cluster}", component=component, cluster=cluster, pod_spec=SHAPES[shape]
        )
        group.create()
        apply_all([group])
        pods = wait_placed(api, place.namespace, 3, component, cluster)
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}
        for instance in group.instances:
            admitted = api.get("Pod", group.pod_name(instance), place.namespace)["spec"]
            assert group.apply_pod(instance)["spec"] == admitted
            changed = group.apply_pod(instance, {"tidb.pingcap.com/cluster-id": "7"})
            assert changed["metadata"]["labels"]["tidb.pingcap.com/cluster-id"] == "7"
            assert changed["spec"] == admitted
            assert objects.ASSIGNED_NODE in changed["metadata"]["annotations"]

    at_once(admit_and_apply_again)


def test_a_pod_whose_own_fields_leave_no_way_is_refused_for_a_second_try(
    api: Api, create: Create, place: Place
) -> None:
    create(*objects.local_cluster(THREE, zones=["z0"], volumes=5))
    shape = {"affinity": {**OWN_NODE_AFFINITY, **OWN_ANTI_AFFINITY}, "nodeSelector": {ZONE: "z0"}}

    def try_once(cluster: str) -> None:
        group = Group(api, place.namespace, f"kv-{cluster}", cluster=cluster, pod_spec=shape)
        group.create()
        group.apply_claims(group.instances)

        with pytest.raises(ApiError) as refused:
            group.apply_pod(group.instances[0])

        assert refused.value.status == 429
        assert refused.value.body["details"]["retryAfterSeconds"] == 1

    at_once(try_once)


def test_two_groups_of_one_component_are_kept_apart_as_one(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster([f"n{i}" for i in range(6)], volumes=5))

    def apply_two(cluster: str) -> None:
        groups = [Group(api, place.namespace, f"{name}-{cluster}", cluster=cluster) for name in ("kv-a", "kv-b")]
        for group in groups:
            group.create()
        apply_all(groups)
        # Six stores, copies 3: two to a node at most once three nodes are in use. There is room for one each, but where
        # the lock moves to a claim that has become Bound, what another replica has to decide anew counts until then.
        pods = wait_placed(api, place.namespace, 6, cluster=cluster)
        assert max(per_node(pods)) <= 2
        assert len(per_node(pods)) >= 5
        assert tally(pods) == {"pinned": 6}

    at_once(apply_two)


def test_pd_and_tikv_at_the_same_time_and_a_restart_with_bound_claims(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def apply_and_restart(cluster: str) -> None:
        pd, kv = (
            Group(api, place.namespace, f"{component}-{cluster}", component=component, cluster=cluster)
            for component in ("pd", "tikv")
        )
        for group in (pd, kv):
            group.create()
        apply_all([pd, kv])
        for component in ("pd", "tikv"):
            pods = wait_placed(api, place.namespace, 3, component, cluster)
            assert per_node(pods) == [1, 1, 1]
            assert tally(pods) == {"pinned": 3}

        store = kv.instances[0]
        name = kv.pod_name(store)
        home = homes(pods)[name]
        api.delete("Pod", name, place.namespace, gracePeriodSeconds=0)
        again = kv.apply_pod(store, {"pingcap.com/instance-revision-hash": "7d0"})

        assert outcome_of(again) == "pinned"
        assert homes(wait_placed(api, place.namespace, 3, cluster=cluster))[name] == home

    at_once(apply_and_restart)


def test_a_pod_in_a_zone_of_its_own_choice_stays_in_it(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster([f"n{i}" for i in range(6)], zones=["z0", "z1", "z2"], volumes=5))
    zones = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE] for n in api.list("Node")}

    def spread(cluster: str) -> None:
        group = Group(api, place.namespace, f"kv-{cluster}", cluster=cluster)
        group.create()
        group.apply_claims(group.instances)
        for number, instance in enumerate(group.instances):
            group.pod_spec = {"nodeSelector": {ZONE: f"z{number}"}}
            group.apply_pod(instance)

        pods = wait_placed(api, place.namespace, 3, cluster=cluster)
        assert {zones[node_of(pod)] for pod in pods} == {"z0", "z1", "z2"}
        assert tally(pods) == {"pinned": 3}

    at_once(spread)
