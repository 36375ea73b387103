"""A cluster full of objects that nobody should have written: a reason for each, never a crash, never a pin to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cluster_objects import SPACE, a_node, a_pod, a_v1_world, an_object
from stand import Stand
from still_inventory import inventory_of

from webhook.cluster.door import (
    CLAIMS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Manifest,
)
from webhook.cluster.inventory import Inventory
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Placing
from webhook.core.outcomes import Cause, Outcome
from webhook.core.policy import decide_by_options
from webhook.deadline import Deadline
from webhook.locking.protocol import Answer, Request
from webhook.locking.round import Round

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110"}
CLASS, DRIVER = "odd", "disk.example.com"


def odd_node(name: str, **parts: Any) -> Manifest:
    return {**a_node(name), **parts}


NODES: dict[str, tuple[Manifest, str]] = {
    "without-status": (odd_node("without-status", status=None), "node(s) were not ready"),
    "without-conditions": (odd_node("without-conditions", status={"allocatable": ROOM}), "node(s) were not ready"),
    "without-room": (odd_node("without-room", status=READY), "Too many pods"),
    "apples": (
        odd_node("apples", status={**READY, "allocatable": {**ROOM, "cpu": "8 apples"}}),
        "Insufficient cpu",
    ),
    "listed": (odd_node("listed", status={**READY, "allocatable": ["cpu", "8"]}), "Too many pods"),
    "negative": (
        odd_node("negative", status={**READY, "allocatable": {**ROOM, "memory": "-1Gi"}}),
        "Insufficient memory",
    ),
    "tainted": (
        odd_node("tainted", spec={"taints": [{"effect": "NoSchedule"}, "x", None]}),
        "node(s) had untolerated taint(s)",
    ),
    "unlabelled": (odd_node("unlabelled", metadata={"name": "unlabelled", "labels": "none"}), "node(s) had no label"),
}  # fmt: skip

STORAGE: list[Manifest] = [
    an_object(STORAGE_CLASSES, CLASS, provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer",
              allowedTopologies="anywhere"),
    an_object(PERSISTENT_VOLUMES, "empty", spec=None),
    an_object(PERSISTENT_VOLUMES, "large", spec={"storageClassName": CLASS, "capacity": {"storage": "very"}}),
    an_object(PERSISTENT_VOLUMES, "kept", spec={"storageClassName": CLASS, "claimRef": "somebody"}),
    an_object(PERSISTENT_VOLUMES, "affine", spec={"storageClassName": CLASS, "nodeAffinity": {"required": []}}),
    an_object(CSI_DRIVERS, DRIVER, spec={"storageCapacity": "yes"}),
    an_object(CSI_NODES, "n1", spec={"drivers": [{"name": DRIVER, "allocatable": {"count": "many"}}, 7]}),
    an_object(CSI_STORAGE_CAPACITIES, "c", storageClassName=CLASS, nodeTopology=[], capacity="?"),
    an_object(VOLUME_ATTACHMENTS, "a", spec={"nodeName": ["n1"], "source": None}),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": 7}},
    an_object(CLAIMS, "stray", spec={"resources": "all"}),
]  # fmt: skip

PODS_THERE: list[Manifest] = [
    an_object(PODS, "greedy", spec={"nodeName": "n2", "containers": [{"resources": {"requests": {"cpu": "lots"}}}]}),
    an_object(PODS, "formless", spec={"nodeName": "n1", "containers": "c", "affinity": [], "volumes": {"v": 1}}),
    an_object(PODS, "nowhere", spec={"nodeName": 5}),
    an_object(
        PODS,
        "unsociable",
        spec={
            "nodeName": "n1",
            "containers": [],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [None, {"a": 1}]}},
        },
    ),
]


def followed(cluster: MemoryCluster) -> Inventory:
    return inventory_of(cluster)


def not_followed(_: MemoryCluster) -> None:
    return None


def decided(how: Callable[[MemoryCluster], Inventory | None], pod: Manifest, *more: Manifest) -> Decision:
    """What the pod gets in a cluster of n1, n2 and n3 with all that."""
    broken = [manifest for manifest, _ in NODES.values()]
    stand = Stand(*a_v1_world(), *broken, *STORAGE, *PODS_THERE, *more)
    tools = replace(stand.tools, cluster=GroupStore(stand.door, how(stand.cluster)), decide=decide_by_options)
    clock = stand.clock.monotonic
    placing = Placing(pod_from(pod, namespace=SPACE), requests_of(pod))
    group = recognise(placing.pod).group
    assert group is not None
    answers: list[Answer] = []

    def deliver(_: Request, answer: Answer) -> None:
        answers.append(answer)

    Round(group, [Request(placing, Deadline.after(9.0, clock), clock())], tools, deliver).run()
    return answers[0].decision


HOW = pytest.mark.parametrize("how", [followed, not_followed])


@HOW
def test_each_broken_node_has_its_reason_and_none_is_taken(how: Callable[[MemoryCluster], Inventory | None]) -> None:
    decision = decided(how, a_pod())
    assert (decision.outcome, decision.node in ("n1", "n3")) == (Outcome.PINNED, True)
    for name, (_, reason) in NODES.items():
        assert decision.passed_over[name].startswith(reason), name
    # What cannot be read is more than any node has.
    assert "Insufficient cpu" in decision.passed_over["n2"]


@HOW
@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        pytest.param({"containers": [{"resources": {"requests": {"cpu": "a lot"}}}]}, Outcome.GUARDED, id="quantity"),
        pytest.param({"tolerations": [None, {"operator": "Perhaps"}]}, Outcome.PINNED, id="tolerations"),
        pytest.param({"topologySpreadConstraints": [{"topologyKey": 5}]}, Outcome.GUARDED, id="spread"),
        pytest.param({"nodeSelector": {"a": 1}}, Outcome.PINNED, id="node selector"),
        pytest.param(
            {"volumes": [{"ephemeral": 3}, None, {"persistentVolumeClaim": "x"}]}, Outcome.PINNED, id="volumes"
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Resembles"}]}]}}}},
            Outcome.GUARDED,
            id="operator",
        ),
    ],
)  # fmt: skip
def test_a_broken_pod_is_guarded_rather_than_pinned_where_it_cannot_go(
    how: Callable[[MemoryCluster], Inventory | None], spec: Manifest, outcome: Outcome
) -> None:
    decision = decided(how, a_pod(**spec))
    assert decision.outcome is outcome
    assert decision.cause is (Cause.NONE if outcome is Outcome.PINNED else Cause.NO_SAFE_NODE)


@HOW
def test_a_claim_of_a_broken_class_gets_nowhere_that_is_not_known(
    how: Callable[[MemoryCluster], Inventory | None],
) -> None:
    claim = an_object(CLAIMS, "odd-claim", spec={"storageClassName": CLASS, "resources": {"requests": {"storage": []}}})
    claim["metadata"]["namespace"] = SPACE
    own = a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "odd-claim"}}])
    decision = decided(how, own, claim)
    # Nothing that exists fits it, and how much its driver can make is not published.
    assert decision.outcome is Outcome.PINNED
    assert decision.node in ("n1", "n3")
