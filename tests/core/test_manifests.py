"""The constructors: where each field lies, and that no JSON at all makes them raise."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import shapes
from webhook.core.manifests import (
    attach_limits_from,
    capacity_from,
    claim_from,
    label_selector_from,
    node_from,
    node_selector_from,
    placed_pod_from,
    pod_from,
    publishes_capacity,
    storage_class_from,
    volume_from,
)
from webhook.core.objects import (
    Claim,
    HostPort,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    PodAffinityTerm,
    PodOnNode,
    Requirement,
    Taint,
    Toleration,
)
from webhook.core.storage import PersistentVolume, StorageClass

LABELS = {"app.kubernetes.io/component": "tikv"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def parse_number(raw: object) -> Decimal | None:
    """Stands for the quantity parser: plain numbers only."""
    try:
        return Decimal(raw) if isinstance(raw, str) else None
    except InvalidOperation:
        return None


def pod_manifest() -> dict[str, Any]:
    """A pod with every field that a decision reads."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "t1",
            "name": "db-tikv-0",
            "generateName": "db-tikv-",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": LABELS,
            "annotations": {"a": "b"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "o0"},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db-tikv", "uid": "o1", "controller": True},
            ],
        },
        "spec": {
            "nodeName": "n1",
            "schedulerName": "default-scheduler",
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}, {"key": "k", "value": "v", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                        ]
                    }
                },
                "podAntiAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "zone",
                            "labelSelector": {"matchLabels": LABELS},
                            "namespaces": ["t1", "t2"],
                            "namespaceSelector": {},
                        }
                    ]
                },
            },
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "tikv-db-tikv-0"}},
                {"name": "config", "configMap": {"name": "db-tikv"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "again", "persistentVolumeClaim": {"claimName": "tikv-db-tikv-0"}},
            ],
        },
        "status": {
            "phase": "Running",
            "nominatedNodeName": "n2",
            "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
        },
    }


def test_every_field_of_a_pod_is_found_where_kubernetes_writes_it() -> None:
    assert pod_from(pod_manifest()) == Pod(
        namespace="t1",
        name="db-tikv-0",
        uid="u1",
        resource_version="7",
        labels=LABELS,
        annotations={"a": "b"},
        owner=OwnerReference("apps/v1", "StatefulSet", "db-tikv", "o1"),
        node_name="n1",
        nominated_node_name="n2",
        phase="Running",
        deleting=True,
        ready=True,
        scheduler_name="default-scheduler",
        node_selector={"disk": "ssd"},
        node_affinity=NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n1",)),)),)),
        anti_affinity=(
            PodAffinityTerm("zone", LabelSelector(LABELS), namespaces=("t1", "t2"), namespace_selector=LabelSelector()),
        ),
        tolerations=(Toleration(operator="Exists"), Toleration("k", "Equal", "v", "NoSchedule")),
        claim_names=("tikv-db-tikv-0", "db-tikv-0-scratch"),
        ephemeral_claims=(Claim("t1", "db-tikv-0-scratch", "", ""),),
    )


def test_of_a_pod_on_a_node_only_what_a_filter_may_need_is_kept() -> None:
    manifest = pod_manifest()
    manifest["metadata"]["annotations"] = {"tidb-ha-webhook.io/guard": "zone"}
    manifest["spec"] |= {"priority": 7, "containers": [{"ports": [{"hostPort": 80}]}]}
    requests = {"cpu": Decimal(1)}

    assert placed_pod_from(manifest, "n1", requests) == PodOnNode(
        namespace="t1",
        name="db-tikv-0",
        node_name="n1",
        labels=LABELS,
        requests=requests,
        priority=7,
        bound=True,
        deleting=True,
        host_ports=(HostPort(80),),
        anti_affinity=pod_from(manifest).anti_affinity,
        claim_names=("tikv-db-tikv-0", "db-tikv-0-scratch"),
        guard="zone",
    )


def test_a_pod_that_is_only_expected_on_a_node_is_not_bound() -> None:
    manifest = {"metadata": {"name": "a"}, "status": {"nominatedNodeName": "n2"}}

    assert not placed_pod_from(manifest, "n2", {}).bound


def test_a_pod_as_a_review_of_its_creation_shows_it_has_empty_fields_only() -> None:
    manifest = {"metadata": {"generateName": "db-tikv-"}, "spec": {"containers": []}, "status": {}}

    assert pod_from(manifest) == Pod(namespace="", name="")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [pytest.param("t9", "t9", id="of-the-request"), pytest.param("", "t1", id="of-the-object")],
)
def test_the_namespace_of_the_request_wins(argument: str, expected: str) -> None:
    assert pod_from(pod_manifest(), namespace=argument).namespace == expected


def test_an_owner_that_is_not_the_controller_is_no_owner() -> None:
    manifest = {"metadata": {"ownerReferences": [{"kind": "StatefulSet", "name": "s", "controller": False}]}}

    assert pod_from(manifest).owner is None


def test_an_ephemeral_volume_of_a_pod_without_a_name_has_no_claim_yet() -> None:
    manifest = {"spec": {"volumes": [{"name": "scratch", "ephemeral": {}}]}}

    assert pod_from(manifest).claim_names == ()


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param(None, id="null"),
        pytest.param([], id="none"),
        pytest.param([None, {"type": "Ready"}], id="without-status"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], id="unknown"),
        pytest.param([{"type": "MemoryPressure", "status": "True"}], id="another-condition"),
    ],
)
def test_a_node_that_does_not_say_that_it_is_ready_is_not(conditions: object) -> None:
    assert not node_from({"status": {"conditions": conditions}}, parse_number).ready


def test_every_field_of_a_claim_is_found() -> None:
    manifest = {
        "metadata": {
            "namespace": "t1",
            "name": "tikv-db-tikv-0",
            "uid": "c1",
            "resourceVersion": "9",
            "labels": LABELS,
            "annotations": {"volume.kubernetes.io/selected-node": "n3"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"storageClassName": "local", "volumeName": "pv1"},
        "status": {"phase": "Bound"},
    }

    assert claim_from(manifest) == Claim(
        namespace="t1",
        name="tikv-db-tikv-0",
        uid="c1",
        resource_version="9",
        labels=LABELS,
        annotations={"volume.kubernetes.io/selected-node": "n3"},
        created="2026-01-01T00:00:00Z",
        phase="Bound",
        volume_name="pv1",
        storage_class="local",
        selected_node="n3",
    )


def test_a_claim_without_a_status_is_pending() -> None:
    claim = claim_from({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    assert (claim.phase, claim.bound, claim.deleting) == ("Pending", False, True)


def test_the_old_annotation_for_the_class_of_a_claim_wins_as_in_kubernetes() -> None:
    annotations = {"volume.beta.kubernetes.io/storage-class": "old"}

    claim = claim_from({"metadata": {"annotations": annotations}, "spec": {"storageClassName": "new"}})

    assert claim.storage_class == "old"


def test_every_field_of_a_node_is_found_and_unreadable_quantities_are_left_out() -> None:
    manifest = {
        "metadata": {"name": "n1", "labels": {"zone": "z1"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
        "status": {
            "allocatable": {"cpu": "7.9999", "memory": "lots", "pods": None},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }

    assert node_from(manifest, parse_number) == Node(
        name="n1",
        labels={"zone": "z1"},
        taints=(Taint("k", "", "NoExecute"),),
        unschedulable=True,
        ready=True,
        allocatable={"cpu": Decimal(8)},
    )


def test_a_volume_has_the_required_node_affinity() -> None:
    expressions = [{"key": "zone", "operator": "NotIn", "values": ["z1"]}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}

    assert volume_from({"metadata": {"name": "pv1"}, "spec": {"nodeAffinity": affinity}}) == PersistentVolume(
        "pv1", NodeSelector((NodeSelectorTerm((Requirement("zone", "NotIn", ("z1",)),)),))
    )


def test_a_volume_without_node_affinity_can_be_used_everywhere() -> None:
    assert volume_from({"metadata": {"name": "pv1"}, "spec": {"nodeAffinity": {}}}).node_affinity is None


def test_the_allowed_topologies_of_a_class_become_a_node_selector() -> None:
    manifest = {
        "metadata": {"name": "ebs"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["z1", "z2"]}]}],
    }

    assert storage_class_from(manifest) == StorageClass(
        name="ebs",
        provisioner="ebs.csi.aws.com",
        waits=True,
        allowed_topologies=NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("z1", "z2")),)),)),
    )


@pytest.mark.parametrize("topologies", [None, [], "z1"], ids=["null", "empty", "text"])
def test_a_class_without_topologies_allows_every_node(topologies: object) -> None:
    found = storage_class_from({"metadata": {"name": "c"}, "allowedTopologies": topologies})

    assert found == StorageClass(name="c")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(None, None, id="none"),
        pytest.param([], None, id="a-list"),
        pytest.param({}, NodeSelector(()), id="no-terms"),
        pytest.param({"nodeSelectorTerms": None}, NodeSelector(()), id="null-terms"),
        pytest.param({"nodeSelectorTerms": [{}]}, NodeSelector((NodeSelectorTerm(),)), id="an-empty-term"),
        pytest.param({"nodeSelectorTerms": ["n1"]}, NodeSelector((NodeSelectorTerm(),)), id="an-unreadable-term"),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [None, {"key": 1, "operator": "In", "values": [1, "a"]}]}]},
            NodeSelector((NodeSelectorTerm((Requirement("", ""), Requirement("", "In", ("a",)))),)),
            id="unreadable-requirements-stay-as-such",
        ),
    ],
)
def test_a_node_selector_that_cannot_be_read_matches_less_and_never_more(
    raw: object, expected: NodeSelector | None
) -> None:
    assert node_selector_from(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(None, None, id="none-matches-nothing"),
        pytest.param({}, LabelSelector(), id="empty-matches-everything"),
        pytest.param({"matchLabels": {"a": "b", "c": 1}}, LabelSelector({"a": "b"}), id="labels"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            LabelSelector(match_expressions=(Requirement("a", "Exists"),)),
            id="expressions",
        ),
    ],
)
def test_an_absent_label_selector_is_not_an_empty_one(raw: object, expected: LabelSelector | None) -> None:
    assert label_selector_from(raw) == expected


FIELD_NAMES = [
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "ownerReferences",
    "controller",
    "volumes",
    "persistentVolumeClaim",
    "claimName",
    "name",
    "ephemeral",
    "affinity",
    "nodeAffinity",
    "podAntiAffinity",
    "tolerations",
    "taints",
    "conditions",
    "type",
    "allocatable",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "matchLabels",
    "labelSelector",
    "values",
    "key",
    "allowedTopologies",
    "matchLabelExpressions",
    "required",
    "containers",
    "initContainers",
    "ports",
    "hostPort",
    "topologySpreadConstraints",
    "matchLabelKeys",
    "volumeClaimTemplate",
    "claimRef",
    "csi",
    "capacity",
    "storage",
    "drivers",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELD_NAMES, REQUIRED]) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=40,
)
CONSTRUCTORS: dict[str, Callable[[Any], object]] = {
    "pod": pod_from,
    "placed-pod": lambda raw: placed_pod_from(raw, "n1", {}),
    "claim": lambda raw: claim_from(raw, parse_number),
    "volume": lambda raw: volume_from(raw, parse_number),
    "capacity": lambda raw: capacity_from(raw, parse_number),
    "driver": publishes_capacity,
    "csi-node": attach_limits_from,
    "class": storage_class_from,
    "node": lambda raw: node_from(raw, parse_number),
    "node-selector": node_selector_from,
    "label-selector": label_selector_from,
}


@pytest.mark.parametrize("constructor", CONSTRUCTORS.values(), ids=CONSTRUCTORS.keys())
@settings(deadline=None, max_examples=60)
@given(raw=JSON)
def test_no_json_at_all_makes_a_constructor_raise(constructor: Callable[[Any], object], raw: object) -> None:
    constructor(raw)


def paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a manifest."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in paths(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], by: object) -> Any:
    """A copy of the manifest with another value at one path."""
    if not path:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], by)
    return copy


@settings(deadline=None, max_examples=200)
@given(path=st.sampled_from(paths(pod_manifest())), by=JSON)
def test_a_pod_with_one_odd_field_is_still_read(path: tuple[Any, ...], by: object) -> None:
    pod = pod_from(replaced(pod_manifest(), path, by), namespace="t1")

    assert pod.namespace == "t1"
    assert all(isinstance(value, str) for value in (*pod.labels.values(), *pod.claim_names, pod.name, pod.phase))


@pytest.mark.parametrize(
    ("raw", "expected"), [(3, 3), (0, 0), (True, None), ("3", None), (3.0, None), (None, None)], ids=repr
)
def test_only_whole_numbers_are_integers(raw: object, expected: int | None) -> None:
    assert shapes.integer(raw) == expected
