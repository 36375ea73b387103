"""What a dump seems to lack is said, and nothing is said of one that is whole."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from dumps import NAMESPACE, Manifest, a_class, a_cluster_with, a_node, a_set, pods_of_set, system_pods, write

from webhook.cluster.dump_gaps import Contents, gaps, lacks_the_indispensable
from webhook.cluster.kinds import DUMP_COMMAND
from webhook.core import keys
from webhook.wiring import objects_of

WHOLE = f"is it complete? A whole one is made by: {DUMP_COMMAND}"
OWNER = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "name": "db", "uid": "u", "controller": True}


def an_object(kind: str, name: str, api_version: str = "v1", namespace: str = "", **fields: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def a_claim(name: str = "tikv-db-tikv-0", volume: str = "") -> Manifest:
    return an_object("PersistentVolumeClaim", name, namespace=NAMESPACE, spec={"volumeName": volume} if volume else {})


def a_volume(name: str = "v", **spec: Any) -> Manifest:
    return an_object("PersistentVolume", name, spec=spec)


def a_whole_cluster(*more: Manifest, replicas: int = 1, **set_metadata: Any) -> list[Manifest]:
    """One store with its claim and volume, beside others' pods."""
    stateful_set = a_set(replicas=replicas)
    stateful_set["metadata"] |= set_metadata
    claims = [a_claim(f"tikv-db-tikv-{ordinal}", f"v{ordinal}") for ordinal in range(replicas)]
    volumes = [a_volume(f"v{ordinal}") for ordinal in range(replicas)]
    return a_cluster_with(stateful_set, *pods_of_set(stateful_set), *claims, *volumes, *more)


def without(objects: Iterable[Manifest], *kinds: str) -> list[Manifest]:
    return [found for found in objects if found["kind"] not in kinds]


def said_of(objects: Iterable[Manifest]) -> tuple[str, ...]:
    return gaps(Contents(objects))


def test_of_a_whole_dump_nothing_is_said():
    assert said_of(a_whole_cluster()) == ()
    assert not lacks_the_indispensable(Contents(a_whole_cluster()))


def test_a_cluster_that_has_no_claims_yet_is_whole():
    assert said_of(a_cluster_with()) == ()


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("Pod",), "no Pod"),
        (("Node",), "no Node"),
        (("PersistentVolumeClaim",), "no PersistentVolumeClaim"),
        (("PersistentVolume",), "no PersistentVolume"),
        (("StorageClass",), "no StorageClass"),
        (("StatefulSet",), "no StatefulSet"),
        (("PersistentVolume", "StorageClass"), "no PersistentVolume, no StorageClass"),
        (
            ("Pod", "PersistentVolumeClaim", "PersistentVolume", "StatefulSet"),
            "no Pod, no PersistentVolumeClaim, no PersistentVolume, no StatefulSet",
        ),
    ],
)
def test_kinds_that_are_missing_are_named_with_the_command_that_dumps_them(kinds: tuple[str, ...], said: str):
    lacking = without(a_whole_cluster(), *kinds)

    assert said_of(lacking)[0] == f"the dump holds {said}; {WHOLE}"
    assert lacks_the_indispensable(Contents(lacking)) == (not {"Pod", "Node"}.isdisjoint(kinds))


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (
            "tikv-db-tikv-0",
            f"PersistentVolumeClaim {NAMESPACE}/tikv-db-tikv-0, which Pod db-tikv-0 names, is not in the dump",
        ),
        (
            "v0",
            f"PersistentVolume v0, which PersistentVolumeClaim {NAMESPACE}/tikv-db-tikv-0 is bound to, is not in the "
            "dump",
        ),
    ],
)
def test_an_object_that_another_names_is_missed(gone: str, said: str):
    objects = [found for found in a_whole_cluster(replicas=2) if found["metadata"]["name"] != gone]

    assert said_of(objects) == (f"{said}; is it complete?",)


def test_several_objects_that_are_named_are_counted():
    others = a_set("other")
    objects = a_whole_cluster(*pods_of_set({**others, "spec": {**others["spec"], "volumeClaimTemplates": []}}))

    assert said_of(objects) == (
        f"StatefulSet {NAMESPACE}/other, which controls Pod other-0, is not in the dump (and 2 more such); is it "
        "complete?",
    )


def test_a_pod_that_is_over_needs_no_claim():
    pods = [{**pod, "status": {"phase": "Succeeded"}} for pod in pods_of_set(a_set())]

    assert said_of(a_cluster_with(a_set(), *pods)) == ()


def test_pods_of_one_namespace_alone_make_one_ask_for_minus_a():
    objects = [a_node("n1"), a_class(), system_pods()[0]]

    assert said_of(objects) == (
        "all Pods of the dump are of namespace kube-system: was kubectl run without -A? Others' pods take room on the "
        "nodes",
    )


def test_the_cluster_object_of_a_set_is_missed_since_options_stand_there():
    objects = a_whole_cluster(ownerReferences=[OWNER])

    assert said_of(objects) == (
        f"TidbCluster {NAMESPACE}/db is not in the dump, so no option that stands there is known; add "
        "tidbclusters.pingcap.com to the kinds that are dumped",
    )
    cluster = an_object("TidbCluster", "db", "pingcap.com/v1alpha1", NAMESPACE)
    assert said_of([*objects, cluster]) == ()


def test_several_cluster_objects_are_counted():
    others = {**a_set("other", claims=()), "metadata": {"name": "other", "namespace": NAMESPACE}}
    others["metadata"]["ownerReferences"] = [{**OWNER, "kind": "DMCluster", "name": "dm"}]

    (said,) = said_of(a_whole_cluster(others, ownerReferences=[OWNER]))

    assert "(and 1 more such)" in said
    assert "add tidbclusters.pingcap.com,dmclusters.pingcap.com to the kinds" in said


def test_v2s_groups_are_missed_where_there_are_pods_of_them():
    pod = an_object("Pod", "kv-tikv-a", namespace=NAMESPACE)
    pod["metadata"]["labels"] = {keys.V2_MANAGED_BY: keys.TIDB_OPERATOR, keys.V2_COMPONENT: "tikv"}
    instance = an_object("TiKV", "kv-a", "core.pingcap.com/v1alpha1", NAMESPACE)

    assert said_of(a_cluster_with(pod)) == (
        "the dump holds no TiKVGroup and no TiKV, though pods of such; add "
        "tikvgroups.core.pingcap.com,tikvs.core.pingcap.com to the kinds that are dumped",
    )
    assert said_of(a_cluster_with(pod, instance)) == ()


CSI = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "h"}}
CSI_NODE = an_object("CSINode", "n1", "storage.k8s.io/v1")
STORAGE = "storage.k8s.io/v1"


@pytest.mark.parametrize(
    "used",
    [
        pytest.param([a_volume("v", **CSI)], id="by a volume"),
        pytest.param(
            [
                an_object("StorageClass", "gp3", STORAGE, provisioner="ebs.csi.aws.com"),
                an_object("CSIDriver", "ebs.csi.aws.com", STORAGE),
            ],
            id="by a class",
        ),
    ],
)
def test_csi_nodes_are_missed_where_a_driver_is_used(used: list[Manifest]):
    (said,) = said_of(a_cluster_with(*used))

    assert said.startswith(
        "volumes of ebs.csi.aws.com are used and the dump holds no CSINode, so how many of them a node"
    )
    assert DUMP_COMMAND in said
    assert said_of(a_cluster_with(*used, CSI_NODE)) == ()


def test_what_is_free_is_missed_where_the_driver_publishes_it():
    driver = an_object("CSIDriver", "ebs.csi.aws.com", STORAGE, spec={"storageCapacity": True})
    capacity = an_object("CSIStorageCapacity", "c", STORAGE, "kube-system")
    objects = a_cluster_with(a_volume("v", **CSI), CSI_NODE, driver)

    (said,) = said_of(objects)

    assert said.startswith("ebs.csi.aws.com publishes what is free and the dump holds no CSIStorageCapacity")
    assert said_of([*objects, capacity]) == ()


def test_the_namespaces_are_those_that_are_there_and_those_that_something_is_in():
    contents = Contents([a_claim(), an_object("Namespace", "empty"), an_object("Pod", "p"), a_node("n1")])

    assert contents.namespaces() == {NAMESPACE, "empty", "default"}


def test_serve_logs_what_is_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    objects_of(write(tmp_path / "dump.json", *without(a_cluster_with(), "Pod")))

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("the dump holds no Pod, no PersistentVolumeClaim, ")
