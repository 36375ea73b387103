"""What a round reads, in which order, and how it writes: the store over the embedded cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from webhook.cluster.door import (
    ADVANCED_STATEFUL_SETS,
    CLAIMS,
    DM_CLUSTERS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    TIKV_GROUPS,
    TIKVS,
    V2_CLUSTERS,
    Listing,
    Manifest,
    Resource,
    WatchEvent,
)
from webhook.cluster.kinds import CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.store import GroupStore
from webhook.core import keys
from webhook.core.manifests import pod_from
from webhook.core.model import Family, Group, GroupState, MemberClass, Options, Placement, Placing
from webhook.core.objects import Claim
from webhook.deadline import Deadline
from webhook.errors import Conflict, Forbidden, Invalid, NotFound, OutOfTime

NOW = 1_800_000_000
SPACE = "prod"
V1_LABELS = {
    keys.V1_NAME: "tidb-cluster",
    keys.V1_MANAGED_BY: keys.TIDB_OPERATOR,
    keys.V1_INSTANCE: "db",
    keys.V1_COMPONENT: "tikv",
}
V2_LABELS = {keys.V2_MANAGED_BY: keys.TIDB_OPERATOR, keys.V2_CLUSTER: "db", keys.V2_COMPONENT: "tikv"}
GENERIC_LABELS = {"app": "raft"}
PLENTY = Deadline(at=10.0, clock=lambda: 0.0)


def a_group(family: Family, labels: Mapping[str, str], component: str = "tikv") -> Group:
    return Group(SPACE, "db", component, family, MemberClass.REPLICATED, tuple(labels.items()))


V1 = a_group(Family.OPERATOR_V1, V1_LABELS)
V2 = a_group(Family.OPERATOR_V2, V2_LABELS)
GENERIC = a_group(Family.GENERIC, GENERIC_LABELS, component="generic")


# Manifests


def an_object(resource: Resource, name: str, *, labels: Any = None, annotations: Any = None, **parts: Any) -> Manifest:
    api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    metadata: Manifest = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if resource.namespaced:
        metadata["namespace"] = SPACE
    metadata["ownerReferences"] = parts.pop("owners", [])
    return {"apiVersion": api_version, "kind": resource.kind, "metadata": metadata, **parts}


def owned_by(resource: Resource, name: str, *, controller: bool = True) -> Manifest:
    api_version = f"{resource.group}/{resource.version}"
    return {"apiVersion": api_version, "kind": resource.kind, "name": name, "uid": "u", "controller": controller}


def a_pod(
    ordinal: int | str,
    *,
    node: str = "",
    set_kind: Resource = STATEFUL_SETS,
    labels: Mapping[str, str] = V1_LABELS,
    annotations: Any = None,
    phase: str = "Pending",
    cpu: str = "1",
    **spec: Any,
) -> Manifest:
    name = f"db-tikv-{ordinal}"
    volumes = [{"name": "tikv", "persistentVolumeClaim": {"claimName": f"tikv-{name}"}}]
    containers = [{"name": "tikv", "resources": {"requests": {"cpu": cpu}}}]
    return an_object(
        PODS,
        name,
        labels=labels,
        annotations=annotations,
        owners=[owned_by(set_kind, "db-tikv")],
        spec={"nodeName": node, "volumes": volumes, "containers": containers, **spec},
        status={"phase": phase},
    )


def a_claim(
    name: str, *, volume: str = "", storage_class: str = "local", labels: Mapping[str, str] = V1_LABELS
) -> Manifest:
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return an_object(CLAIMS, name, labels=labels, spec=spec, status={"phase": "Bound" if volume else "Pending"})


def a_volume(name: str) -> Manifest:
    return an_object(PERSISTENT_VOLUMES, name, spec={})


def a_class(name: str) -> Manifest:
    return an_object(STORAGE_CLASSES, name, volumeBindingMode="WaitForFirstConsumer")


def a_node(name: str) -> Manifest:
    return an_object(NODES, name, status={"allocatable": {"cpu": "8"}})


def a_set(
    replicas: int = 3, *, kind: Resource = STATEFUL_SETS, owner: Resource | None = TIDB_CLUSTERS, **parts: Any
) -> Manifest:
    owners = [owned_by(owner, "db")] if owner else []
    return an_object(kind, "db-tikv", spec={"replicas": replicas}, owners=owners, **parts)


def pinned(node: str) -> Manifest:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


# The store, seen from its door


class Recorder:
    """A door that remembers what it was asked; calls in `failing` are refused."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.calls: list[str] = []
        self.timeouts: list[float] = []
        self.failing: set[str] = set()

    def list(self, resource: Resource, *, timeout: float, resource_version: str = "", **selectors: Any) -> Listing:
        stale = " (may be stale)" if resource_version == "0" else ""
        self._asked(f"list {resource.plural}{stale}", timeout)
        return self.cluster.list(resource, resource_version=resource_version, timeout=timeout, **selectors)

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        self._asked(f"scan {resource.plural}{' (may be stale)' if resource_version == '0' else ''}", timeout)
        return self.cluster.scan(resource, visit, resource_version=resource_version, timeout=timeout)

    def watch(self, resource: Resource, **arguments: Any) -> Iterator[WatchEvent]:
        return self.cluster.watch(resource, **arguments)

    def get(self, resource: Resource, name: str, *, namespace: str = "", timeout: float) -> Manifest:
        self._asked(f"get {resource.plural} {name}", timeout)
        return self.cluster.get(resource, name, namespace=namespace, timeout=timeout)

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, namespace: str = "", timeout: float
    ) -> Manifest:
        self._asked(f"patch {resource.plural} {name}", timeout)
        return self.cluster.merge_patch(resource, name, patch, namespace=namespace, timeout=timeout)

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        raise NotImplementedError

    def delete(self, resource: Resource, name: str, *, timeout: float, **conditions: str) -> None:
        raise NotImplementedError

    def _asked(self, call: str, timeout: float) -> None:
        self.calls.append(call)
        self.timeouts.append(timeout)
        if call in self.failing:
            verb, resource, *name = call.split()
            raise Forbidden(verb, resource, " ".join(name), status=403)


def a_recorder(*objects: Manifest, serve: Sequence[Resource] = CUSTOM) -> Recorder:
    return Recorder(MemoryCluster(objects, clock=lambda: NOW, serve=serve))


def placing(manifest: Manifest) -> Placing:
    return Placing(pod_from(manifest))


def read(recorder: Recorder, group: Group, *pods: Manifest) -> GroupState:
    """What a round that decides about these pods reads, claims first."""
    store = GroupStore(recorder)
    claims = store.list_claims(group, PLENTY).claims
    return store.read_group(group, claims, [placing(pod) for pod in pods], PLENTY)


def claim_of(recorder: Recorder, name: str) -> Claim:
    found = GroupStore(recorder).get_claim(SPACE, name, PLENTY)
    assert found is not None
    return found


# Claims


def test_the_groups_claims_are_found_by_label_with_the_servers_time() -> None:
    strangers = [
        a_claim("other", labels=V1_LABELS | {keys.V1_INSTANCE: "db2"}),
        a_claim("v2", labels=V1_LABELS | V2_LABELS),
        a_claim("none", labels={}),
    ]
    listing = GroupStore(a_recorder(a_claim("b"), a_claim("a"), *strangers)).list_claims(V1, PLENTY)
    assert [claim.name for claim in listing.claims] == ["a", "b"]
    assert listing.now == NOW


def test_a_claim_is_read_by_name() -> None:
    store = GroupStore(a_recorder(a_claim("a", volume="pv")))
    found = store.get_claim(SPACE, "a", PLENTY)
    assert found is not None
    assert (found.name, found.volume_name, found.bound) == ("a", "pv", True)


def test_a_claim_that_is_not_there_is_none() -> None:
    assert GroupStore(a_recorder()).get_claim(SPACE, "a", PLENTY) is None


# What is read, in which order


def test_pods_are_read_first_and_all_members_reads_are_consistent() -> None:
    recorder = a_recorder(
        a_pod(1, node="n1"), a_set(), an_object(TIDB_CLUSTERS, "db"), a_node("n1"), a_class("local"),
        a_claim("tikv-db-tikv-0"), a_claim("tikv-db-tikv-1", volume="pv1"), a_volume("pv1"),
    )  # fmt: skip
    read(recorder, V1, a_pod(0))
    assert recorder.calls == [
        "list persistentvolumeclaims",
        "list pods",
        "get statefulsets db-tikv",
        "get tidbclusters db",
        "scan nodes (may be stale)",
        "scan pods (may be stale)",
        "get storageclasses local",
        "scan persistentvolumes (may be stale)",
    ]


def test_each_call_may_take_what_is_left() -> None:
    times = iter(range(100))
    recorder = a_recorder(a_set(owner=None))
    deadline = Deadline(at=50.0, clock=lambda: float(next(times)))
    store = GroupStore(recorder)
    store.list_claims(V1, deadline)
    store.read_group(V1, (), [placing(a_pod(0))], deadline)
    assert recorder.timeouts == [50.0 - step for step in range(len(recorder.timeouts))]


def test_without_time_nothing_is_asked() -> None:
    recorder = a_recorder()
    with pytest.raises(OutOfTime):
        GroupStore(recorder).list_claims(V1, Deadline(at=0.0, clock=lambda: 0.0))
    assert recorder.calls == []


@pytest.mark.parametrize(
    "call",
    ["list persistentvolumeclaims", "list pods", "get statefulsets db-tikv", "get tidbclusters db",
     "scan nodes (may be stale)", "scan pods (may be stale)", "get storageclasses local"],
)  # fmt: skip
def test_whatever_cannot_be_read_is_api_trouble(call: str) -> None:
    recorder = a_recorder(a_set(), an_object(TIDB_CLUSTERS, "db"), a_claim("tikv-db-tikv-0"), a_class("local"))
    recorder.failing = {call}
    with pytest.raises(Forbidden):
        read(recorder, V1, a_pod(0))


def test_only_members_are_among_the_pods() -> None:
    strangers = [
        an_object(PODS, "job", labels=V1_LABELS, owners=[owned_by(DM_CLUSTERS, "x")]),
        a_pod("v2", labels=V1_LABELS | V2_LABELS),
    ]
    state = read(a_recorder(a_set(owner=None), a_pod(1), a_pod(2), *strangers), V1, a_pod(0))
    assert [pod.name for pod in state.pods] == ["db-tikv-1", "db-tikv-2"]


# Owners


@pytest.mark.parametrize("kind", [STATEFUL_SETS, ADVANCED_STATEFUL_SETS], ids=["apps", "advanced"])
def test_a_v1_group_wants_what_its_set_says(kind: Resource) -> None:
    state = read(a_recorder(a_set(2, kind=kind, owner=None)), V1, a_pod(0, set_kind=kind))
    assert (state.desired.replicas, state.desired.members) == (2, ("db-tikv-0", "db-tikv-1"))


def test_a_visible_pod_names_the_set_when_none_is_placed() -> None:
    assert read(a_recorder(a_set(2, owner=None), a_pod(1)), V1).desired.replicas == 2


def test_failure_members_come_from_the_cluster_object() -> None:
    status = {"tikv": {"failureStores": {"1": {"podName": "db-tikv-1"}}}}
    state = read(a_recorder(a_set(), an_object(TIDB_CLUSTERS, "db", status=status)), V1, a_pod(0))
    assert list(state.desired.failure_members) == ["db-tikv-1"]


def test_a_dm_cluster_owns_the_set_of_its_masters() -> None:
    options = {keys.PREFIX + keys.COPIES: "5"}
    recorder = a_recorder(a_set(owner=DM_CLUSTERS), an_object(DM_CLUSTERS, "db", annotations=options))
    assert read(recorder, V1, a_pod(0)).desired.options.copies == 5


@pytest.mark.parametrize(
    "owner",
    [owned_by(TIDB_CLUSTERS, "db", controller=False), owned_by(NODES, "db"), {"kind": "TidbCluster"}, None],
    ids=["not the controller", "another kind", "no group", "null"],
)
def test_what_is_no_cluster_object_is_not_read(owner: Any) -> None:
    stateful_set = a_set()
    stateful_set["metadata"]["ownerReferences"] = [owner]
    recorder = a_recorder(stateful_set, an_object(TIDB_CLUSTERS, "db"))
    read(recorder, V1, a_pod(0))
    assert "get tidbclusters db" not in recorder.calls


@pytest.mark.parametrize("serve", [CUSTOM, ()], ids=["no object", "no such kind"])
def test_an_absent_cluster_object_means_no_options(serve: Sequence[Resource]) -> None:
    assert read(a_recorder(a_set(), serve=serve), V1, a_pod(0)).desired.options == Options()


@pytest.mark.parametrize(
    "pods", [[a_pod(0)], [an_object(PODS, "db-tikv-0", labels=V1_LABELS)], []], ids=["no set", "no owner", "no pod"]
)
def test_a_group_whose_set_is_not_there_is_api_trouble(pods: list[Manifest]) -> None:
    with pytest.raises(NotFound):
        read(a_recorder(), V1, *pods)


def test_a_generic_group_has_options_on_its_set() -> None:
    annotations = {keys.PREFIX + keys.TOPOLOGY_KEY: "zone"}
    recorder = a_recorder(a_set(5, owner=None, labels=GENERIC_LABELS, annotations=annotations))
    state = read(recorder, GENERIC, a_pod(0, labels=GENERIC_LABELS))
    assert (state.desired.replicas, state.desired.options.topology_key) == (5, "zone")
    assert "get tidbclusters db" not in recorder.calls


def a_v2_world(*, own: Any = None, other: Any = None, cluster: Any = None) -> list[Manifest]:
    def spec(cluster_name: str, replicas: int) -> Manifest:
        return {"cluster": {"name": cluster_name}, "replicas": replicas}

    return [
        an_object(TIKV_GROUPS, "a", spec=spec("db", 3), annotations=own),
        an_object(TIKV_GROUPS, "b", spec=spec("db", 2), annotations=other),
        an_object(TIKV_GROUPS, "c", spec=spec("db2", 9), annotations={keys.PREFIX + keys.COPIES: "9"}),
        an_object(TIKVS, "alone", spec=spec("db", 1)),
        an_object(TIKVS, "a-x", spec=spec("db", 1), labels={keys.V2_GROUP: "a"}),
        an_object(V2_CLUSTERS, "db", annotations=cluster),
    ]


def a_v2_pod(group_name: str = "a", annotations: Any = None) -> Manifest:
    labels = V2_LABELS | ({keys.V2_GROUP: group_name} if group_name else {})
    pod = a_pod("abc123", labels=labels, annotations=annotations)
    pod["metadata"]["ownerReferences"] = [owned_by(TIKVS, "a-abc123")]
    return pod


def test_a_v2_group_wants_what_its_group_objects_and_lone_instances_say() -> None:
    recorder = a_recorder(*a_v2_world(cluster={keys.PREFIX + keys.COPIES: "5"}))
    desired = read(recorder, V2, a_v2_pod()).desired
    assert (desired.replicas, desired.members, desired.options.copies) == (6, None, 5)
    assert recorder.calls[2:5] == ["list tikvgroups", "list tikvs", "get clusters db"]


@pytest.mark.parametrize("serve", [CUSTOM, ()], ids=["no objects", "no such kinds"])
def test_a_v2_group_without_objects_is_api_trouble_and_no_set_of_one(serve: Sequence[Resource]) -> None:
    with pytest.raises(NotFound):
        read(a_recorder(serve=serve), V2, a_v2_pod())


# Options of one pod


@pytest.mark.parametrize(
    ("on_pod", "on_cluster", "placement"),
    [("Guard", "Pin", Placement.GUARD), ("", "Guard", Placement.GUARD), ("", "", Placement.PIN)],
    ids=["pod first", "cluster", "neither"],
)
def test_a_v1_pods_options_are_its_own_then_its_clusters(on_pod: str, on_cluster: str, placement: Placement) -> None:
    def annotated(value: str) -> dict[str, str]:
        return {keys.PREFIX + keys.PLACEMENT: value} if value else {}

    recorder = a_recorder(a_set(), an_object(TIDB_CLUSTERS, "db", annotations=annotated(on_cluster)))
    pod = a_pod(0, annotations=annotated(on_pod))
    assert read(recorder, V1, pod).desired.options_of("db-tikv-0").placement is placement


@pytest.mark.parametrize(("group_name", "skip"), [("a", True), ("b", False), ("", False)])
def test_a_v2_pods_options_are_those_of_the_group_object_that_made_it(group_name: str, skip: bool) -> None:
    recorder = a_recorder(*a_v2_world(own={keys.PREFIX + keys.SKIP: "true"}))
    pod = a_v2_pod(group_name)
    assert read(recorder, V2, pod).desired.options_of(pod["metadata"]["name"]).skip is skip


def test_a_pods_own_options_are_not_its_groups() -> None:
    recorder = a_recorder(a_set(owner=None))
    state = read(recorder, V1, a_pod(0, annotations={keys.PREFIX + keys.PLACEMENT: "Guard"}))
    assert state.desired.options.placement is Placement.PIN


# Owner of a pod


@pytest.mark.parametrize("kind", [STATEFUL_SETS, ADVANCED_STATEFUL_SETS], ids=["apps", "advanced"])
def test_the_set_that_controls_a_pod_is_found(kind: Resource) -> None:
    store = GroupStore(a_recorder(a_set(kind=kind)))
    owner = store.owner_of(pod_from(a_pod(0, set_kind=kind)), PLENTY)
    assert owner is not None
    assert owner["metadata"]["name"] == "db-tikv"


@pytest.mark.parametrize(
    "pod",
    [a_pod(0), a_v2_pod(), a_pod(0, set_kind=Resource("other.io", "v1", "x", "StatefulSet")), an_object(PODS, "lone")],
    ids=["not there", "another kind", "another group", "no owner"],
)
def test_a_pod_without_such_a_set_has_no_owner(pod: Manifest) -> None:
    assert GroupStore(a_recorder()).owner_of(pod_from(pod), PLENTY) is None


# Nodes and rooms


def test_nodes_come_by_name_with_what_they_have() -> None:
    state = read(a_recorder(a_set(owner=None), a_node("b"), a_node("a")), V1, a_pod(0))
    assert [(node.name, node.allocatable["cpu"]) for node in state.nodes] == [("a", Decimal(8)), ("b", Decimal(8))]


def test_a_nodes_room_is_what_its_pods_ask() -> None:
    pods = [
        a_pod(1, node="a", cpu="1"),
        a_pod(2, node="a", cpu="500m", phase="Running"),
        a_pod(3, node="a", cpu="4", phase="Succeeded"),
        a_pod(4, node="a", cpu="4", phase="Failed"),
        a_pod(5, affinity=pinned("b"), cpu="2"),
        a_pod(6, cpu="3"),
    ]
    nominated = a_pod(7, cpu="3")
    nominated["status"]["nominatedNodeName"] = "c"
    state = read(a_recorder(a_set(owner=None), *pods, nominated), V1, a_pod(0))
    assert {name: dict(room.requested) for name, room in state.rooms.items()} == {
        "a": {"cpu": Decimal("1.5"), "pods": 2},
        "b": {"cpu": 2, "pods": 1},
        "c": {"cpu": 3, "pods": 1},
    }


def test_what_changed_between_two_rounds_is_seen_and_what_did_not_is_not_read_again() -> None:
    recorder = a_recorder(a_set(owner=None), a_node("a"), a_node("b"), a_pod(1, node="a"))
    store = GroupStore(recorder)
    before = store.read_group(V1, (), [placing(a_pod(0))], PLENTY)
    recorder.cluster.merge_patch(NODES, "b", {"spec": {"unschedulable": True}}, timeout=1)
    recorder.cluster.merge_patch(PODS, "db-tikv-1", {"spec": {"nodeName": "b"}}, namespace=SPACE, timeout=1)
    after = store.read_group(V1, (), [placing(a_pod(0))], PLENTY)
    assert [node.unschedulable for node in after.nodes] == [False, True]
    assert after.nodes[0] is before.nodes[0]
    assert (list(before.rooms), list(after.rooms)) == (["a"], ["b"])


# Volumes


def test_the_volumes_of_the_pod_to_be_placed_are_read() -> None:
    recorder = a_recorder(a_set(owner=None), a_claim("tikv-db-tikv-0", volume="pv0"), a_volume("pv0"), a_class("local"))
    volumes = read(recorder, V1, a_pod(0)).volumes
    assert (list(volumes.claims), list(volumes.persistent_volumes)) == (["tikv-db-tikv-0"], ["pv0"])
    assert volumes.storage_classes == {}


def test_the_class_of_an_unbound_claim_is_read() -> None:
    recorder = a_recorder(a_set(owner=None), a_claim("tikv-db-tikv-0"), a_class("local"))
    assert read(recorder, V1, a_pod(0)).volumes.storage_classes["local"].waits


def test_an_own_claim_that_the_label_does_not_find_is_read_for_its_volume() -> None:
    recorder = a_recorder(a_set(owner=None), a_claim("tikv-db-tikv-0", volume="pv0", labels={}), a_volume("pv0"))
    volumes = read(recorder, V1, a_pod(0)).volumes
    assert (list(volumes.claims), list(volumes.persistent_volumes)) == (["tikv-db-tikv-0"], ["pv0"])


def test_what_does_not_exist_is_left_out() -> None:
    claims = [a_claim("tikv-db-tikv-0", volume="gone"), a_claim("tikv-db-tikv-1", storage_class="gone")]
    volumes = read(a_recorder(a_set(owner=None), *claims), V1, a_pod(0), a_pod(1), a_pod(2)).volumes
    assert (list(volumes.claims), volumes.persistent_volumes, volumes.storage_classes) == (
        ["tikv-db-tikv-0", "tikv-db-tikv-1"],
        {},
        {},
    )


@pytest.mark.parametrize(
    ("others", "needed"),
    [
        ([a_pod(1, node="a", phase="Running")], []),
        ([a_pod(1, node="gone", phase="Running")], ["pv1"]),
        ([a_pod(1)], ["pv1"]),
        ([], ["pv1"]),
        ([a_pod(1, node="a", phase="Failed")], ["pv1"]),
    ],
    ids=["on a node", "its node is gone", "pending", "no pod", "finished: it returns"],
)
def test_other_members_volumes_are_read_where_they_tell_the_domain(others: list[Manifest], needed: list[str]) -> None:
    claims = [a_claim("tikv-db-tikv-0", storage_class=""), a_claim("tikv-db-tikv-1", volume="pv1")]
    volumes = [a_volume("pv1"), a_volume("pv9")]
    undesired = a_claim("tikv-db-tikv-9", volume="pv9")
    recorder = a_recorder(a_set(2, owner=None), a_node("a"), *claims, *volumes, undesired, *others)
    assert list(read(recorder, V1, a_pod(0)).volumes.persistent_volumes) == needed


# Writes


def test_a_swap_sets_and_takes_away_annotations() -> None:
    recorder = a_recorder(a_claim("a"))
    store = GroupStore(recorder)
    store.swap(claim_of(recorder, "a"), {keys.LOCK: "x", "other": "y"}, PLENTY)
    store.swap(claim_of(recorder, "a"), {"other": None}, PLENTY)
    assert dict(claim_of(recorder, "a").annotations) == {keys.LOCK: "x"}


def test_a_swap_on_a_claim_that_changed_is_lost() -> None:
    recorder = a_recorder(a_claim("a"))
    stale = claim_of(recorder, "a")
    store = GroupStore(recorder)
    store.swap(stale, {keys.LOCK: "x"}, PLENTY)
    with pytest.raises(Conflict):
        store.swap(stale, {keys.LOCK: "y"}, PLENTY)
    assert claim_of(recorder, "a").annotations[keys.LOCK] == "x"


@pytest.mark.parametrize("version", ["", "0"])
def test_a_swap_without_a_check_is_a_mistake(version: str) -> None:
    recorder = a_recorder(a_claim("a"))
    with pytest.raises(ValueError, match="is no check"):
        GroupStore(recorder).swap(Claim(SPACE, "a", "u", version), {keys.LOCK: "x"}, PLENTY)
    assert recorder.calls == []


def test_an_annotation_is_written_whatever_the_version() -> None:
    recorder = a_recorder(a_claim("a"))
    stale = claim_of(recorder, "a")
    store = GroupStore(recorder)
    store.annotate(stale, {keys.ENTRY_PREFIX + "1": "x"}, PLENTY)
    store.annotate(stale, {keys.ENTRY_PREFIX + "2": "y", keys.ENTRY_PREFIX + "1": None}, PLENTY)
    assert dict(claim_of(recorder, "a").annotations) == {keys.ENTRY_PREFIX + "2": "y"}


def test_an_annotation_is_not_written_on_another_claim_of_the_name() -> None:
    recorder = a_recorder(a_claim("a"))
    with pytest.raises(Invalid):
        GroupStore(recorder).annotate(Claim(SPACE, "a", "another", "1"), {"a": "b"}, PLENTY)


def test_an_annotation_without_a_uid_is_a_mistake() -> None:
    recorder = a_recorder(a_claim("a"))
    with pytest.raises(ValueError, match="without a uid"):
        GroupStore(recorder).annotate(Claim(SPACE, "a", "", "1"), {"a": "b"}, PLENTY)
    assert recorder.calls == []


@pytest.mark.parametrize(("left", "sent"), [(1.0, True), (0.99, False), (0.0, False)])
def test_a_write_is_sent_only_with_a_second_left(left: float, sent: bool) -> None:
    recorder = a_recorder(a_claim("a"))
    claim = claim_of(recorder, "a")
    store, deadline = GroupStore(recorder), Deadline(at=left, clock=lambda: 0.0)
    recorder.calls.clear()
    for write in (store.annotate, store.swap):
        if sent:
            write(claim_of(recorder, "a"), {"a": "b"}, deadline)
        else:
            with pytest.raises(OutOfTime):
                write(claim, {"a": "b"}, deadline)
    assert [call for call in recorder.calls if call.startswith("patch")] == ["patch persistentvolumeclaims a"] * (
        2 * sent
    )
