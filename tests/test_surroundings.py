"""Where nodes, pods and volumes come from: the inventory while it can be relied on, else a direct reading."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Event
from typing import Any

import pytest
from cluster_objects import SPACE, a_class, a_node, a_pod, a_v1_world, an_object
from stand import Clock as StandClock
from stand import WatchedDoor
from still_inventory import follow, inventory_of

from webhook.cluster.door import (
    CLAIMS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    Manifest,
    Resource,
)
from webhook.cluster.history import KEPT
from webhook.cluster.inventory import PromptInventory
from webhook.cluster.kinds import CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.promises import LONGEST, Promises
from webhook.cluster.quantities import requests_of
from webhook.cluster.reader import Reader
from webhook.cluster.shelves import Placed, placed
from webhook.cluster.store import GroupStore
from webhook.cluster.surroundings import SHARED_FOR, SurroundingsReader
from webhook.cluster.volume_reads import find_claim
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Group, GroupState, Placing
from webhook.core.objects import PodOnNode
from webhook.core.storage import CsiVolume
from webhook.deadline import Deadline
from webhook.errors import OutOfTime, UnknownOutcome

PLENTY = Deadline(at=10.0, clock=lambda: 0.0)
DRIVER = "disk.example.com"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A cluster seen through a door that remembers what it was asked, and an inventory of it."""

    def __init__(self, *objects: Manifest) -> None:
        self.clock = Clock()
        self.cluster = MemoryCluster(objects, serve=CUSTOM)
        self.door = WatchedDoor(self.cluster, StandClock())
        self.inventory = inventory_of(self.cluster, self.clock)
        self.reader = SurroundingsReader(self.inventory, self.clock)
        self.store = GroupStore(self.door, self.inventory)

    def break_watches(self) -> None:
        """Nothing has been heard for long."""
        self.clock.now += 60.0

    def read(self, deadline: Deadline = PLENTY) -> Any:
        return self.reader.read(Reader(self.door, deadline))

    def group_state(self, pod: Manifest | None = None) -> GroupState:
        pod = pod or a_pod()
        store, group = self.store, group_of(pod)
        claims = store.list_claims(group, PLENTY).claims
        self.door.calls.clear()
        return store.read_group(group, claims, [Placing(pod_from(pod, namespace=SPACE), requests_of(pod))], PLENTY)


class ListedCluster(MemoryCluster):
    """A cluster that remembers of what all was listed."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.listed: list[Resource] = []

    def scan(self, resource: Resource, *given: Any, **more: Any) -> str:
        self.listed.append(resource)
        return super().scan(resource, *given, **more)


def group_of(pod: Manifest) -> Group:
    group = recognise(pod_from(pod, namespace=SPACE)).group
    assert group is not None
    return group


def a_running_pod(name: str, node: str, **parts: Any) -> Manifest:
    pod = a_pod(name, labels={"app": name}, owner={}, claim="", nodeName=node, **parts)
    pod["metadata"]["namespace"] = "web"
    return pod


# Proposed, or read


def test_an_inventory_that_can_be_relied_on_proposes_and_nothing_is_listed() -> None:
    scene = Scene(*a_v1_world(), a_running_pod("a", "n1"))
    state = scene.group_state()
    assert state.proposed
    assert [node.name for node in state.nodes] == ["n1", "n2", "n3"]
    assert state.rooms["n1"].requested["pods"] == 1
    assert [pod.name for pod in state.placed_pods["n1"]] == ["a"]
    # The one list of pods is that of the members, which is never the inventory's.
    assert scene.door.calls.count("list pods") == 1
    assert "list nodes" not in scene.door.calls


def test_a_cluster_in_this_process_is_known_as_it_is_and_nothing_is_listed_or_confirmed() -> None:
    cluster = ListedCluster(a_v1_world(), serve=CUSTOM)
    reader = SurroundingsReader(PromptInventory(cluster))
    for number in range(3):
        cluster.create(NODES, a_node(f"more-{number}"), timeout=1)
        cluster.create(PODS, a_running_pod(f"web-{number}", f"more-{number}"), namespace="web", timeout=1)
        found = reader.read(Reader(cluster, PLENTY))
        assert not found.proposed
        assert [node.name for node in found.nodes] == [
            *(f"more-{each}" for each in range(number + 1)),
            "n1",
            "n2",
            "n3",
        ]
        assert found.placed.rooms.keys() == {f"more-{each}" for each in range(number + 1)}
    assert (cluster.listed.count(NODES), cluster.listed.count(PODS)) == (1, 1)


def test_a_cluster_in_this_process_is_listed_again_when_more_has_happened_than_it_remembers() -> None:
    cluster = MemoryCluster(a_v1_world(), serve=CUSTOM)
    inventory = PromptInventory(cluster)
    assert inventory.view() is not None
    for number in range(KEPT + 1):
        cluster.merge_patch(NODES, "n1", {"metadata": {"labels": {"number": str(number)}}}, timeout=1)
    view = inventory.view()
    assert view is not None
    assert view.nodes[0].labels["number"] == str(KEPT)


def test_members_and_claims_are_read_consistently_whatever_the_inventory_knows() -> None:
    scene = Scene(*a_v1_world())
    member = {**a_pod("db-tikv-1", nodeName="n2"), "status": {"phase": "Running"}}
    scene.cluster.create(PODS, member, namespace=SPACE, timeout=1)
    state = scene.group_state()
    assert [pod.name for pod in state.pods] == ["db-tikv-1"]
    assert state.placed_pods == {}


def test_an_inventory_whose_watch_is_broken_proposes_nothing_and_nodes_are_listed() -> None:
    scene = Scene(*a_v1_world())
    scene.break_watches()
    scene.cluster.merge_patch(NODES, "n1", {"spec": {"unschedulable": True}}, timeout=1)
    state = scene.group_state()
    assert not state.proposed
    assert [node.unschedulable for node in state.nodes] == [True, False, False]
    assert scene.door.calls.count("list nodes") == 1
    follow(scene.inventory)
    assert scene.group_state().proposed


def test_one_direct_reading_serves_whoever_asks_soon_and_its_nodes_have_to_be_confirmed() -> None:
    scene = Scene(a_node("n1"))
    scene.break_watches()
    assert not scene.read().proposed
    scene.clock.now += SHARED_FOR
    shared = scene.read()
    assert shared.proposed
    assert [node.name for node in shared.nodes] == ["n1"]
    assert scene.door.calls.count("list nodes") == 1
    scene.clock.now += 0.01
    assert not scene.read().proposed
    assert scene.door.calls.count("list nodes") == 2


def test_those_who_ask_while_one_reads_wait_for_what_it_finds() -> None:
    scene = Scene(a_node("n1"))
    scene.break_watches()
    reading, released = Event(), Event()

    def hold() -> None:
        reading.set()
        assert released.wait(20)

    scene.door.happens("list nodes", hold)
    with ThreadPoolExecutor(3) as callers:
        first = callers.submit(scene.read)
        assert reading.wait(20)
        others = [callers.submit(scene.read) for _ in range(2)]
        with pytest.raises(OutOfTime):
            scene.read(Deadline(at=0.01, clock=lambda: 0.0))
        released.set()
        assert not first.result(20).proposed
        assert all(other.result(20).proposed for other in others)
    assert scene.door.calls.count("list nodes") == 1


def test_a_reading_that_fails_is_its_own_and_the_next_one_reads_for_itself() -> None:
    scene = Scene(a_node("n1"))
    scene.break_watches()
    scene.door.fails("list nodes", UnknownOutcome("list", "nodes"), times=1)
    with pytest.raises(UnknownOutcome):
        scene.read()
    assert not scene.read().proposed


def test_without_an_inventory_every_round_reads_for_itself() -> None:
    scene = Scene(a_node("n1"))
    reader = SurroundingsReader()
    assert [reader.read(Reader(scene.door, PLENTY)).proposed for _ in range(2)] == [False, False]
    assert scene.door.calls.count("list nodes") == 2


# Namespaces


@pytest.mark.parametrize(
    ("own", "other", "read"),
    [
        ({}, {}, False),
        ({"namespaceSelector": {}}, {}, True),
        ({"namespaces": ["web"]}, {"namespaces": ["web"]}, False),
        ({}, {"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
    ],
    ids=["its own", "the pod selects", "by name", "another pod selects"],
)
def test_namespaces_are_listed_only_where_a_pod_selects_by_their_labels(
    own: Manifest, other: Manifest, read: bool
) -> None:
    def affinity(term: Manifest) -> Manifest:
        required = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **term}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [required]}}

    namespace = an_object(NAMESPACES, "web", labels={"team": "x"})
    scene = Scene(*a_v1_world(), namespace, a_running_pod("a", "n1", affinity=affinity(other)))
    proposed = scene.group_state(a_pod(affinity=affinity(own)))
    assert "list namespaces" not in scene.door.calls
    scene.break_watches()
    state = scene.group_state(a_pod(affinity=affinity(own)))
    assert state.namespaces == ({"web": {"team": "x"}} if read else {})
    assert ("list namespaces" in scene.door.calls) == read
    assert proposed.namespaces == {"web": {"team": "x"}}


# Storage


def a_csi_volume(name: str, driver: str = DRIVER, *, storage_class: str = "local") -> Manifest:
    csi = {"driver": driver, "volumeHandle": f"handle-{name}"}
    spec = {"capacity": {"storage": "10Gi"}, "csi": csi, "storageClassName": storage_class}
    return an_object(PERSISTENT_VOLUMES, name, spec=spec)


def a_used_claim(name: str, volume: str) -> Manifest:
    claim = an_object(CLAIMS, name, spec={"volumeName": volume}, status={"phase": "Bound"})
    claim["metadata"]["namespace"] = "web"
    return claim


def a_claim_without_a_volume(name: str, storage_class: str) -> Manifest:
    claim = an_object(CLAIMS, name, spec={"storageClassName": storage_class}, status={"phase": "Pending"})
    claim["metadata"]["namespace"] = "web"
    return claim


def an_attachment(name: str, node: str, volume: str) -> Manifest:
    return an_object(
        VOLUME_ATTACHMENTS,
        name,
        spec={"nodeName": node, "source": {"persistentVolumeName": volume}, "attacher": DRIVER},
    )


def a_csi_node(name: str, driver: str = DRIVER, count: int | None = 2) -> Manifest:
    allocatable = {"allocatable": {"count": count}} if count is not None else {}
    return an_object(CSI_NODES, name, spec={"drivers": [{"name": driver, "nodeID": name, **allocatable}]})


def a_capacity(name: str, storage_class: str = "local") -> Manifest:
    return an_object(CSI_STORAGE_CAPACITIES, name, storageClassName=storage_class, capacity="1Ti", nodeTopology={})


BOTH = pytest.mark.parametrize("broken", [False, True], ids=["proposed", "read"])


@BOTH
def test_the_free_volumes_of_an_unbound_claims_class_are_there(broken: bool) -> None:
    volumes = [a_csi_volume("a"), a_csi_volume("b"), a_csi_volume("c", storage_class="other")]
    scene = Scene(*a_v1_world(), a_class(), *volumes)
    if broken:
        scene.break_watches()
    of_class = scene.group_state().volumes.of_class
    assert {name: [volume.name for volume in found] for name, found in of_class.items()} == {"local": ["a", "b"]}


@BOTH
def test_a_class_that_has_no_volumes_was_read_all_the_same(broken: bool) -> None:
    scene = Scene(*a_v1_world(), a_class())
    if broken:
        scene.break_watches()
    assert {name: list(found) for name, found in scene.group_state().volumes.of_class.items()} == {"local": []}


@BOTH
@pytest.mark.parametrize(
    ("drivers", "capacities"),
    [
        ([an_object(CSI_DRIVERS, DRIVER, spec={"storageCapacity": True})], {DRIVER: 2}),
        ([an_object(CSI_DRIVERS, DRIVER, spec={"storageCapacity": False})], {}),
        ([], {}),
    ],
    ids=["published", "not published", "no driver object"],
)
def test_what_is_free_is_there_if_the_provisioner_publishes_it(
    drivers: list[Manifest], capacities: Mapping[str, int], broken: bool
) -> None:
    scene = Scene(*a_v1_world(), a_class(), *drivers, a_capacity("a"), a_capacity("b", "other"))
    if broken:
        scene.break_watches()
    found = scene.group_state().volumes.capacities
    assert {name: len(published) for name, published in found.items()} == capacities


@BOTH
def test_what_is_attached_to_nodes_and_what_claims_have_is_there(broken: bool) -> None:
    user = a_running_pod("user", "n1")
    user["spec"]["volumes"] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("c1", "c2", "c3", "c4", "no")
    ]
    scene = Scene(
        *a_v1_world(), a_class(), a_csi_node("n1"), a_csi_node("n2", count=None), a_csi_node("n3", "other.example.com"),
        user, a_used_claim("c1", "a"), a_used_claim("c2", "other"),
        a_claim_without_a_volume("c3", "local"), a_claim_without_a_volume("c4", "no-such-class"),
        a_csi_volume("a"), a_csi_volume("b"), a_csi_volume("c"), a_csi_volume("other", "other.example.com"),
        an_attachment("1", "n1", "a"), an_attachment("2", "n1", "b"), an_attachment("3", "n2", "c"),
        an_attachment("4", "n2", "gone"),
    )  # fmt: skip
    if broken:
        scene.break_watches()
    volumes = scene.group_state().volumes
    assert volumes.attach_limits == {"n1": {DRIVER: 2}, "n3": {"other.example.com": 2}}
    assert volumes.attached == {
        "n1": {CsiVolume(DRIVER, "handle-a"), CsiVolume(DRIVER, "handle-b")},
        "n2": {CsiVolume(DRIVER, "handle-c")},
    }
    assert {key: volume for key, volume in volumes.claimed.items() if key[0] == "web"} == {
        ("web", "c1"): CsiVolume(DRIVER, "handle-a"),
        ("web", "c2"): CsiVolume("other.example.com", "handle-other"),
        ("web", "c3"): CsiVolume(DRIVER, "web/c3"),
    }
    assert (len(volumes.attach_limits), len(volumes.attached), len(volumes.claimed)) == (2, 2, 3 + 3)


def test_where_no_node_limits_the_driver_nobody_is_counted() -> None:
    scene = Scene(*a_v1_world(), a_class(), an_attachment("1", "n1", "a"), a_csi_volume("a"))
    scene.break_watches()
    volumes = scene.group_state().volumes
    assert (volumes.attach_limits, volumes.attached) == ({}, {})
    assert "list volumeattachments" not in scene.door.calls


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner", "kubernetes.io/aws-ebs"])
def test_kubernetes_own_provisioners_have_no_driver_to_ask_for(provisioner: str) -> None:
    scene = Scene(*a_v1_world(), {**a_class(), "provisioner": provisioner})
    scene.break_watches()
    scene.group_state()
    assert not any("csi" in call for call in scene.door.calls)


def test_how_much_a_claim_asks_for_is_read() -> None:
    world = a_v1_world()
    for found in world:
        if found["kind"] == "PersistentVolumeClaim":
            found["spec"]["resources"] = {"requests": {"storage": "5Gi"}}
    scene = Scene(*world, a_class())
    [claim, *_] = scene.store.list_claims(group_of(a_pod()), PLENTY).claims
    assert claim.requested == Decimal(5 * 1024**3)
    again = scene.store.get_claim(SPACE, claim.name, PLENTY)
    assert again == claim


# A node that was chosen


def test_a_node_is_read_with_the_pods_that_are_bound_to_it() -> None:
    pinned = a_running_pod("pinned", "")
    pinned["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    done = {**a_running_pod("done", "n1"), "status": {"phase": "Succeeded"}}
    scene = Scene(*a_v1_world(), a_running_pod("a", "n1"), a_running_pod("b", "n2"), pinned, done)
    [one, gone] = scene.store.confirm_nodes(["n1", "gone"], PLENTY)[::-1]
    assert one.node is not None
    assert (one.name, one.node.name, [pod.name for pod in one.pods]) == ("n1", "n1", ["a"])
    assert (gone.name, gone.node, gone.pods) == ("gone", None, ())
    assert "list nodes" not in scene.door.calls


# Promises to other groups


def requests(cpu: int) -> Mapping[str, Decimal]:
    return {"cpu": Decimal(cpu), "pods": Decimal(1)}


def a_placing(name: str, cpu: int = 1) -> Placing:
    return Placing(pod_from(a_pod(name), namespace=SPACE), requests(cpu))


TIKV, PD = group_of(a_pod("db-tikv-0")), group_of(a_pod("db-pd-0"))
NOBODY = Placed()


def test_what_was_promised_to_other_groups_counts_by_node() -> None:
    promises = Promises(lambda: 0.0)
    promises.add(TIKV, a_placing("db-tikv-0", 1), "n1")
    promises.add(TIKV, a_placing("db-tikv-1", 2), "n1")
    promises.add(TIKV, a_placing("db-tikv-2", 4), "n2")
    assert promises.of_others(PD, NOBODY) == {"n1": {"cpu": 3, "pods": 2}, "n2": {"cpu": 4, "pods": 1}}
    assert promises.of_others(TIKV, NOBODY) == {}


def test_a_promise_is_kept_once_the_pod_is_seen_there() -> None:
    promises = Promises(lambda: 0.0)
    promises.add(TIKV, a_placing("db-tikv-0"), "n1")
    elsewhere = placed([PodOnNode(SPACE, "db-tikv-0", "n2"), PodOnNode("other", "db-tikv-0", "n1")])
    assert list(promises.of_others(PD, elsewhere)) == ["n1"]
    assert promises.of_others(PD, placed([PodOnNode(SPACE, "db-tikv-0", "n1")])) == {}
    assert promises.of_others(PD, NOBODY) == {}


def test_a_promise_ends_when_its_create_can_succeed_no_more() -> None:
    clock = Clock()
    promises = Promises(clock)
    promises.add(TIKV, a_placing("db-tikv-0"), "n1")
    clock.now += LONGEST
    assert list(promises.of_others(PD, NOBODY)) == ["n1"]
    clock.now += 0.01
    assert promises.of_others(PD, NOBODY) == {}


def test_a_member_that_is_answered_again_is_promised_one_node() -> None:
    promises = Promises(lambda: 0.0)
    promises.add(TIKV, a_placing("db-tikv-0"), "n1")
    promises.add(TIKV, a_placing("db-tikv-0"), "n2")
    assert list(promises.of_others(PD, NOBODY)) == ["n2"]


def test_a_round_sees_what_the_store_has_promised_to_another_group() -> None:
    scene = Scene(*a_v1_world())
    scene.store.promise(PD, a_placing("db-pd-0", 3), "n1", ())
    assert scene.group_state().promised == {"n1": {"cpu": 3, "pods": 1}}


# Volumes that other groups' pods will take


def a_waiting_claim(name: str, storage_class: str = "local") -> Manifest:
    claim = an_object(CLAIMS, name, spec={"storageClassName": storage_class})
    claim["metadata"]["namespace"] = "web"
    return claim


def a_pinned_pod(name: str, node: str, *claim_names: str) -> Manifest:
    pod = a_running_pod(name, "")
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    pod["spec"]["volumes"] = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claim_names]
    return pod


def promised(scene: Scene) -> dict[str, list[str]]:
    found = scene.group_state().volumes.promised
    return {node_name: [claim.name for claim in claims] for node_name, claims in found.items()}


@BOTH
def test_the_claims_of_pods_that_are_on_their_way_are_promised_so_far_as_they_have_no_volume(broken: bool) -> None:
    scene = Scene(
        *a_v1_world(), a_class(), a_waiting_claim("c1"), a_waiting_claim("c2", "other"), a_used_claim("c3", "pv"),
        a_pinned_pod("one", "n1", "c1", "c2", "c3", "gone"), a_pinned_pod("another", "n2"),
    )  # fmt: skip
    if broken:
        scene.break_watches()
    assert promised(scene) == {"n1": ["c1"]}


def test_the_claims_of_what_was_answered_are_promised_until_the_pod_is_seen() -> None:
    scene = Scene(*a_v1_world(), a_class(), a_waiting_claim("c1"))
    claims = [find_claim(Reader(scene.cluster, PLENTY), "web", "c1")]
    scene.store.promise(PD, a_placing("db-pd-0"), "n1", claims)
    scene.store.promise(TIKV, a_placing("db-tikv-1"), "n2", claims)
    assert promised(scene) == {"n1": ["c1"]}
    seen = a_pinned_pod("db-pd-0", "n1", "c9")
    seen["metadata"]["namespace"] = SPACE
    scene.cluster.create(PODS, seen, namespace=SPACE, timeout=1)
    follow(scene.inventory)
    assert promised(scene) == {}


def test_members_of_the_group_itself_are_no_others() -> None:
    scene = Scene(*a_v1_world(), a_class(), a_pod("db-tikv-1", nodeSelector={"kubernetes.io/hostname": "n1"}))
    assert promised(scene) == {}


def test_a_volume_is_read_directly_or_found_gone() -> None:
    scene = Scene(*a_v1_world(), a_csi_volume("a"))
    gone, found = scene.store.confirm_volumes(["a", "Gone"], PLENTY)
    assert (gone.name, gone.volume) == ("Gone", None)
    assert found.volume is not None
    assert (found.name, found.volume.csi) == ("a", CsiVolume(DRIVER, "handle-a"))
