"""Pods that are none of ours come in as they are, also when the API server asks about every pod."""

from __future__ import annotations

from typing import Any

import pytest

from e2e import objects
from e2e.api import Api
from e2e.namespaces import registered
from e2e.objects import Object
from e2e.place import Create
from e2e.replicas import Webhook

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
MEMBER = objects.operator_labels("db", "tikv")
CONTAINER = objects.container("main", cpu="10m", memory="16Mi")


def marks(pod: Object) -> list[str]:
    """What of ours is on a pod."""
    return [key for key in pod["metadata"].get("annotations", {}) if key.startswith("tidb-ha-webhook.io/")]


def controller(kind: str, namespace: str, labels: dict[str, str], **spec: Any) -> Object:
    """A Deployment or DaemonSet whose pods have these labels."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"generateName": f"{kind.lower()}-", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}},
            **spec,
        },
    }


def bound_pod(namespace: str, name: str, **annotations: str) -> Object:
    """A pod with a member's labels that names its node itself."""
    pod = objects.filler_pod(namespace, "n0", cpu="10m", memory="16Mi", name=name)
    pod["metadata"] |= {"labels": MEMBER, "annotations": annotations}
    return pod


@pytest.mark.parametrize("conditions", [True, False], ids=["match-conditions", "no-match-conditions"])
def test_pods_that_are_none_of_ours_are_not_touched(
    api: Api, create: Create, webhook: Webhook, request: pytest.FixtureRequest, conditions: bool
) -> None:
    create(*objects.local_cluster(THREE))
    fields: dict[str, Any] = {} if conditions else {"matchConditions": [], "objectSelector": {}}
    with registered(api, create, webhook, request.node.name, **fields) as place:
        for number, labels in enumerate(({"app": "web"}, MEMBER)):
            told_apart = {**labels, "e2e.test/number": str(number)}
            api.create(controller("Deployment", place.namespace, told_apart, replicas=5))
            api.create(controller("DaemonSet", place.namespace, {**told_apart, "e2e.test/daemon": "yes"}))
        metadata = {"generateName": "loose-", "namespace": place.namespace, "labels": MEMBER}
        loose = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [CONTAINER]}}
        admitted = [
            api.create(pod)
            for pod in (
                bound_pod(place.namespace, "bound"),
                bound_pod(place.namespace, "mirror", **{"kubernetes.io/config.mirror": "0123"}),
                loose,
            )
        ]

        expected = 2 * (5 + len(THREE)) + len(admitted)
        pods = api.wait_for("Pod", lambda pods: len(pods) == expected, place.namespace)

        assert [marks(pod) for pod in (*admitted, *pods)] == [[]] * (expected + len(admitted))
        by_daemon_sets = [pod for pod in pods if "e2e.test/daemon" in pod["metadata"]["labels"]]
        assert len(by_daemon_sets) == 2 * len(THREE)
        assert not any("affinity" in pod["spec"] for pod in pods if pod not in by_daemon_sets)
        if conditions:
            return
        # They were all sent to the webhook, so the silence is its own.
        assert webhook.decisions()["untouched NotAMember"] > 0
