"""What the embedded cluster does beyond the contract of a Door: loading, admitting, its clock, its speed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.cluster.door import (
    ADVANCED_STATEFUL_SETS,
    CLAIMS,
    NODES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Manifest,
    Resource,
)
from webhook.cluster.memory import MemoryCluster
from webhook.errors import DumpError, Invalid, NotFound, UnknownOutcome

NOW = 1_800_000_000
LABELS = {"app.kubernetes.io/component": "tikv"}


def an_object(kind: str, name: str, *, api_version: str = "v1", **parts: Any) -> Manifest:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def a_cluster(*objects: Manifest, **settings: Any) -> MemoryCluster:
    return MemoryCluster(objects, clock=lambda: NOW + 0.9, **settings)


def a_pod(name: str = "db-tikv-0", *claims: str, **metadata: Any) -> Manifest:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return {"metadata": {"name": name, **metadata}, "spec": {"volumes": volumes}}


def names(cluster: MemoryCluster, resource: Resource, **arguments: Any) -> list[tuple[str, str]]:
    listing = cluster.list(resource, timeout=1, **arguments)
    return [(found["metadata"].get("namespace", ""), found["metadata"]["name"]) for found in listing.items]


def test_the_date_is_the_clocks_in_whole_seconds() -> None:
    assert a_cluster().list(PODS, timeout=1).date == NOW


def test_times_are_written_by_the_clock() -> None:
    cluster = a_cluster()
    created = cluster.create(PODS, a_pod(finalizers=["example.com/hold"]), namespace="n", timeout=1)
    cluster.delete(PODS, "db-tikv-0", namespace="n", timeout=1)
    written = datetime.fromtimestamp(NOW, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert created["metadata"]["creationTimestamp"] == written
    deleted = cluster.get(PODS, "db-tikv-0", namespace="n", timeout=1)
    assert deleted["metadata"]["deletionTimestamp"] == written


def test_what_a_dump_says_is_kept() -> None:
    metadata = {"uid": "u", "resourceVersion": "41", "creationTimestamp": "2020-01-01T00:00:00Z"}
    cluster = a_cluster(an_object("Node", "a", metadata=metadata, status={"x": 1}))
    assert cluster.get(NODES, "a", timeout=1) == an_object("Node", "a", metadata=metadata, status={"x": 1})


def test_versions_go_on_from_the_greatest_of_the_dump() -> None:
    cluster = a_cluster(an_object("Node", "a", metadata={"resourceVersion": "41"}), an_object("Node", "b"))
    assert cluster.get(NODES, "b", timeout=1)["metadata"]["resourceVersion"] == "43"
    assert cluster.list(NODES, timeout=1).resource_version == "43"


@pytest.mark.parametrize("version", [None, "", "0", "abc", 5], ids=repr)
def test_an_unusable_version_of_a_dump_is_replaced(version: object) -> None:
    cluster = a_cluster(an_object("Node", "a", metadata={"resourceVersion": version}))
    assert cluster.get(NODES, "a", timeout=1)["metadata"]["resourceVersion"] == "1"


def test_every_object_gets_a_uid_of_its_own() -> None:
    cluster = a_cluster(an_object("Node", "a"), an_object("Node", "b"))
    uids = {found["metadata"]["uid"] for found in cluster.list(NODES, timeout=1).items}
    assert len(uids) == 2


def test_an_object_without_a_namespace_is_in_default() -> None:
    assert names(a_cluster(an_object("Pod", "a")), PODS, namespace="default") == [("default", "a")]


def test_a_list_of_all_namespaces_is_ordered_by_namespace_then_name() -> None:
    pods = [an_object("Pod", name, metadata={"namespace": space}) for space, name in ("ba", "ab", "aa")]
    assert names(a_cluster(*pods), PODS) == [("a", "a"), ("a", "b"), ("b", "a")]


def test_an_object_added_later_is_in_its_place() -> None:
    cluster = a_cluster(an_object("Node", "b"))
    assert names(cluster, NODES) == [("", "b")]
    cluster.create(NODES, {"metadata": {"name": "a"}}, timeout=1)
    assert names(cluster, NODES) == [("", "a"), ("", "b")]


def test_an_object_given_twice_is_refused() -> None:
    with pytest.raises(DumpError, match="Pod default/a: given twice"):
        a_cluster(an_object("Pod", "a"), an_object("Pod", "a", metadata={"namespace": "default"}))


@pytest.mark.parametrize("kind", ["Secret", 5, None], ids=str)
def test_a_kind_that_is_of_no_use_is_refused(kind: Any) -> None:
    with pytest.raises(DumpError, match=f"v1 {kind}"):
        a_cluster(an_object(kind, "a"))


def test_a_custom_kind_is_served_if_there_is_an_object_of_it() -> None:
    cluster = a_cluster(an_object("TidbCluster", "db", api_version="pingcap.com/v1alpha1"))
    assert names(cluster, TIDB_CLUSTERS) == [("default", "db")]


def test_a_custom_kind_is_served_if_it_is_named() -> None:
    assert names(a_cluster(serve=[TIDB_CLUSTERS]), TIDB_CLUSTERS) == []


def test_a_custom_kind_is_not_served_otherwise() -> None:
    with pytest.raises(NotFound):
        a_cluster().list(TIDB_CLUSTERS, timeout=1)


def test_a_list_of_a_version_to_come_is_an_unknown_outcome() -> None:
    with pytest.raises(UnknownOutcome, match="Too large resource version"):
        a_cluster().list(PODS, resource_version="99", timeout=1)


def test_a_list_of_a_version_that_is_none_is_invalid() -> None:
    with pytest.raises(Invalid):
        a_cluster().list(PODS, resource_version="abc", timeout=1)


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": None},
        {"metadata": 5},
        {"metadata": {"labels": 5}},
        {"metadata": {"labels": {"a": 5}}},
        {"metadata": {"resourceVersion": 5}},
        {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
    ],
    ids=str,
)
def test_a_patch_that_breaks_metadata_is_invalid(patch: Manifest) -> None:
    cluster = a_cluster()
    cluster.create(PODS, a_pod(), namespace="n", timeout=1)
    with pytest.raises(Invalid):
        cluster.merge_patch(PODS, "db-tikv-0", patch, namespace="n", timeout=1)


def test_a_patch_cannot_say_that_an_object_is_being_deleted() -> None:
    cluster = a_cluster()
    before = cluster.create(PODS, a_pod(), namespace="n", timeout=1)
    patch = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "uid": None}, "kind": "Node"}
    assert cluster.merge_patch(PODS, "db-tikv-0", patch, namespace="n", timeout=1) is before


def test_a_status_can_be_patched() -> None:
    cluster = a_cluster()
    cluster.create(PODS, a_pod(), namespace="n", timeout=1)
    patch = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    changed = cluster.merge_patch(PODS, "db-tikv-0", patch, namespace="n", timeout=1)
    assert (changed["spec"]["nodeName"], changed["status"]["phase"]) == ("n1", "Running")


@pytest.mark.parametrize("manifest", [{}, {"metadata": None}, {"metadata": {"name": 5}}], ids=str)
def test_a_manifest_without_a_name_cannot_be_created(manifest: Manifest) -> None:
    with pytest.raises(Invalid):
        a_cluster().create(PODS, manifest, namespace="n", timeout=1)


def test_a_manifest_stays_its_owners() -> None:
    cluster, manifest = a_cluster(), a_pod()
    cluster.create(PODS, manifest, namespace="n", timeout=1)
    manifest["metadata"]["labels"] = {"a": "b"}
    assert "labels" not in cluster.get(PODS, "db-tikv-0", namespace="n", timeout=1)["metadata"]
    assert "uid" not in manifest["metadata"]


# Admission


def test_an_admitted_pod_becomes_visible() -> None:
    cluster = a_cluster()
    admitted = cluster.admit(a_pod(), namespace="n")
    assert cluster.get(PODS, "db-tikv-0", namespace="n", timeout=1) is admitted
    assert admitted["status"] == {"phase": "Pending"}


def test_a_pod_that_is_there_is_not_admitted_again() -> None:
    cluster = a_cluster()
    first = cluster.admit(a_pod(), namespace="n")
    assert cluster.admit(a_pod(labels={"a": "b"}), namespace="n") is first


def test_admitted_pods_without_names_get_different_ones() -> None:
    cluster = a_cluster()
    pod = {"metadata": {"generateName": "job-"}}
    assert (
        cluster.admit(pod, namespace="n")["metadata"]["name"] != cluster.admit(pod, namespace="n")["metadata"]["name"]
    )


def test_a_pods_missing_claims_are_made_with_the_groups_labels() -> None:
    cluster = a_cluster()
    cluster.ensure_claims(a_pod("db-tikv-0", "tikv-db-tikv-0", "log-db-tikv-0"), LABELS, namespace="n")
    assert names(cluster, CLAIMS, labels=LABELS) == [("n", "log-db-tikv-0"), ("n", "tikv-db-tikv-0")]
    claim = cluster.get(CLAIMS, "tikv-db-tikv-0", namespace="n", timeout=1)
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert claim["status"] == {"phase": "Pending"}


def test_claims_that_are_there_stay() -> None:
    claim = an_object("PersistentVolumeClaim", "tikv-db-tikv-0", metadata={"namespace": "n", "uid": "u"})
    cluster = a_cluster(claim)
    cluster.ensure_claims(a_pod("db-tikv-0", "tikv-db-tikv-0"), LABELS, namespace="n")
    assert cluster.get(CLAIMS, "tikv-db-tikv-0", namespace="n", timeout=1)["metadata"]["uid"] == "u"


@pytest.mark.parametrize("resource", [STATEFUL_SETS, ADVANCED_STATEFUL_SETS], ids=["apps", "advanced"])
def test_missing_claims_follow_the_templates_of_the_set(resource: Resource) -> None:
    api_version = f"{resource.group}/{resource.version}"
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "9Gi"}}}
    metadata = {"name": "tikv", "labels": {"own": "label"}, "annotations": {"a": "b"}}
    templates = [{"metadata": metadata, "spec": spec}, {"metadata": {}}, None]
    owner = an_object(
        "StatefulSet",
        "db-tikv",
        api_version=api_version,
        metadata={"namespace": "n"},
        spec={"volumeClaimTemplates": templates},
    )
    references = [
        {"apiVersion": "v1", "kind": "Node", "name": "other"},
        {"apiVersion": api_version, "kind": "StatefulSet", "name": "db-tikv"},
    ]
    cluster = a_cluster(owner)
    cluster.ensure_claims(a_pod("db-tikv-0", "tikv-db-tikv-0", ownerReferences=references), LABELS, namespace="n")
    claim = cluster.get(CLAIMS, "tikv-db-tikv-0", namespace="n", timeout=1)
    assert claim["spec"] == spec
    assert claim["metadata"]["labels"] == {"own": "label"} | LABELS
    assert claim["metadata"]["annotations"] == {"a": "b"}


def test_missing_claims_of_a_set_that_is_not_served_are_made_too() -> None:
    references = [{"apiVersion": "apps.pingcap.com/v1", "kind": "StatefulSet", "name": "db-tikv"}]
    cluster = a_cluster()
    cluster.ensure_claims(a_pod("db-tikv-0", "a-db-tikv-0", ownerReferences=references), LABELS, namespace="n")
    assert names(cluster, CLAIMS) == [("n", "a-db-tikv-0")]


def test_missing_claims_get_the_default_class() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    classes = [
        an_object("StorageClass", "cheap", api_version="storage.k8s.io/v1"),
        an_object("StorageClass", "fast", api_version="storage.k8s.io/v1", metadata=default),
    ]
    cluster = a_cluster(*classes)
    cluster.ensure_claims(a_pod("db-tikv-0", "tikv-db-tikv-0"), LABELS, namespace="n")
    claim = cluster.get(CLAIMS, "tikv-db-tikv-0", namespace="n", timeout=1)
    assert claim["spec"]["storageClassName"] == "fast"
    assert names(cluster, STORAGE_CLASSES) == [("", "cheap"), ("", "fast")]


@pytest.mark.parametrize("volumes", [None, 5, [None], [{"emptyDir": {}}], [{"persistentVolumeClaim": {}}]], ids=str)
def test_a_pod_without_claims_needs_none(volumes: object) -> None:
    cluster = a_cluster()
    cluster.ensure_claims({"metadata": {"name": "a"}, "spec": {"volumes": volumes}}, LABELS, namespace="n")
    assert names(cluster, CLAIMS) == []


def test_a_list_copies_no_object() -> None:
    cluster = a_cluster(*(an_object("Node", f"n{number}") for number in range(100)))
    first, second = cluster.list(NODES, timeout=1), cluster.list(NODES, timeout=1)
    assert all(one is other for one, other in zip(first.items, second.items, strict=True))
