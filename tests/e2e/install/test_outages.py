"""Sets under the floor: while no replica answers, and what the webhook makes of the floor's guard when one does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.install.release import Release
from e2e.objects import Object
from e2e.place import is_ready, node_of, per_node, pin_of
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

Create = Callable[..., list[Object]]
LABELS = "app.kubernetes.io/component=tikv"
SIX_STORES = {"replicas": 6, "pod_management_policy": "OrderedReady"}


def scale(api: Api, release: Release, replicas: int) -> None:
    """Scale the webhook, and wait until so many replicas answer, and no other."""
    api.patch("Deployment", release.name, {"spec": {"replicas": replicas}}, release.namespace)
    release.kubelet.wait_ready(replicas)
    if not replicas:
        # A pod that is gone answers on, over the connections that API servers keep, until it has stopped.
        wait_until(release.kubelet.all_ended, "the pods to stop", 60)


def refusals(api: Api, namespace: str) -> list[str]:
    """What was refused to the controllers of a namespace."""
    return [each["message"] for each in api.list("Event", namespace) if each["reason"] == "FailedCreate"]


def anti_affinity(pod: Object) -> list[Object]:
    """The required terms."""
    found = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    terms: list[Object] = found.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return terms


def is_guarded(pod: Object) -> bool:
    """Whether the pod has the guard, or says so."""
    return objects.GUARD in pod["metadata"].get("annotations", {}) or bool(anti_affinity(pod))


def test_with_no_replica_the_floor_keeps_apart_and_with_replicas_back_pods_get_places(
    api: Api, release: Release, create: Create, namespace: str
) -> None:
    scale(api, release, 0)
    nodes = [f"{namespace[:20]}-{i}" for i in range(2)]
    create(*objects.local_cluster(nodes))
    clusters = ("one", "two")
    create(*(objects.stateful_set(namespace, cluster=cluster) for cluster in clusters))
    # Two nodes, three members each: two are placed apart, the third waits, and nothing is refused.
    pods = api.wait_for(
        "Pod", lambda pods: len(pods) == 6 and sum(map(bool, map(node_of, pods))) == 4, namespace, labels=LABELS
    )
    for cluster in clusters:
        assert per_node(pod for pod in pods if pod["metadata"]["name"].startswith(cluster)) == [1, 1]
    assert all(pod["metadata"]["annotations"][objects.GUARD] == objects.HOSTNAME for pod in pods)
    assert refusals(api, namespace) == []

    scale(api, release, 2)
    for waiting in (pod for pod in pods if not node_of(pod)):
        # What its message says, where no controller does it.
        api.delete("Pod", waiting["metadata"]["name"], namespace)
    new = f"{namespace[:20]}-new"
    create(objects.node(new), *(objects.local_volume(f"{new}-{i}", new) for i in range(2)))
    pods = api.wait_for("Pod", running(6), namespace, labels=LABELS)
    for cluster in clusters:
        assert per_node(pod for pod in pods if pod["metadata"]["name"].startswith(cluster)) == [1, 1, 1]
    assert refusals(api, namespace) == []


def test_six_stores_on_three_nodes_from_before_survive_their_rolling_restart_under_the_floor(
    api: Api, new_release: Callable[..., Release], create: Create, namespace: str
) -> None:
    """As tidb-scheduler has placed them: two on each node, which a guard would never allow."""
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)], volumes=2))
    made = create(objects.stateful_set(namespace, **SIX_STORES))[0]
    before = api.wait_for("Pod", running(6), namespace, labels=LABELS, timeout=90)
    assert per_node(before) == [2, 2, 2]

    release = new_release()
    release.install()
    release.kubelet.wait_ready(2)
    template = {"metadata": {"annotations": {"restarted": "once"}}}
    api.patch("StatefulSet", made["metadata"]["name"], {"spec": {"template": template}}, namespace)

    def restarted(pods: list[Object]) -> bool:
        new = [pod for pod in pods if pod["metadata"].get("annotations", {}).get("restarted")]
        return len(new) == 6 and all(map(is_ready, new))

    after = api.wait_for("Pod", restarted, namespace, labels=LABELS, timeout=150)
    assert {p["metadata"]["name"]: node_of(p) for p in after} == {p["metadata"]["name"]: node_of(p) for p in before}
    # The floor had guarded each of them; the webhook has taken that out again.
    assert all(objects.DECISION in pod["metadata"]["annotations"] for pod in after)
    assert not any(map(is_guarded, after))


def with_annotations(manifest: Object, annotations: dict[str, str]) -> Object:
    """The set, with annotations on its pod template."""
    manifest["spec"]["template"]["metadata"]["annotations"] = annotations
    return manifest


def test_who_is_to_have_no_guard_comes_out_without_the_one_of_the_floor(
    api: Api, release: Release, create: Create, namespace: str
) -> None:
    """A set of one, one that is skipped, and one that is admitted although it has no place."""
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(2)]))
    admitted = {"tidb-ha-webhook.io/when-unplaceable": "Admit"}
    nowhere: dict[str, Any] = {"nodeSelector": {"no": "such-node"}}
    create(
        objects.stateful_set(namespace, cluster="single", replicas=1),
        with_annotations(objects.stateful_set(namespace, cluster="skipped"), {"tidb-ha-webhook.io/skip": "true"}),
        with_annotations(objects.stateful_set(namespace, cluster="admitted", pod_spec=nowhere), admitted),
        objects.stateful_set(namespace, cluster="guarded", pod_spec=nowhere),
    )
    pods = api.wait_for("Pod", lambda pods: len(pods) == 10, namespace, labels=LABELS)
    guarded = Counter(pod["metadata"]["name"].partition("-")[0] for pod in pods if is_guarded(pod))
    assert guarded == {"guarded": 3}


def test_a_term_of_the_users_own_that_equals_the_guard_survives(
    api: Api, release: Release, create: Create, namespace: str
) -> None:
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)]))
    own = {
        "topologyKey": objects.HOSTNAME,
        "labelSelector": {"matchLabels": objects.operator_labels("db", "tikv")},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}
    create(objects.stateful_set(namespace, pod_spec={"affinity": affinity}))
    pods = api.wait_for("Pod", running(3), namespace, labels=LABELS)
    assert [anti_affinity(pod) for pod in pods] == [[own]] * 3
    assert all(pin_of(pod) == node_of(pod) for pod in pods)
    assert not any(objects.GUARD in pod["metadata"]["annotations"] for pod in pods)
