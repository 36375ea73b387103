"""Stores that were placed before the webhook was installed go on with it, and are never made worse."""

from __future__ import annotations

from typing import Any

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.objects import Object
from e2e.place import Create, Place, is_ready, per_node
from e2e.replicas import tally
from e2e.rounds import at_once
from e2e.steps import homes, restart, scale, send_to_the_webhook
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
FOREIGN_LOCK = "tidb.pingcap.com/pod-scheduling"


def test_six_stores_placed_by_tidb_scheduler_go_on_after_the_upgrade(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=10))

    def upgrade(cluster: str) -> None:
        # What tidb-scheduler leaves behind: two to a node, its lock on a claim, and its name in the template.
        by_tidb_scheduler = {"schedulerName": "tidb-scheduler"}
        api.create(objects.stateful_set(place.namespace, cluster=cluster, replicas=6, pod_spec=by_tidb_scheduler))
        pods = place.wait_for(lambda pods: len(pods) == 6, cluster)
        assert tally(pods) == {"untouched TidbScheduler": 6}
        for pod in pods:
            bind(api, pod, THREE[int(pod["metadata"]["name"].rpartition("-")[2]) % 3])
        marked = f"tikv-{cluster}-tikv-5"
        mark = {"metadata": {"annotations": {FOREIGN_LOCK: "2026-01-01T00:00:00Z"}}}
        api.patch("PersistentVolumeClaim", marked, mark, place.namespace)
        before = homes(place.wait_running(6, cluster))

        template = {"spec": {"schedulerName": "default-scheduler"}}
        api.patch("StatefulSet", f"{cluster}-tikv", {"spec": {"template": template}}, place.namespace)
        after = place.wait_for(
            lambda pods: (
                len(pods) == 6
                and all(is_ready(pod) and pod["spec"]["schedulerName"] == "default-scheduler" for pod in pods)
            ),
            cluster,
            timeout=90,
        )

        assert homes(after) == before
        assert tally(after) == {"pinned": 6}
        claim = api.get("PersistentVolumeClaim", marked, place.namespace)
        assert claim["metadata"]["annotations"][FOREIGN_LOCK] == "2026-01-01T00:00:00Z"

    at_once(upgrade)


def bind(api: Api, pod: Object, node_name: str) -> None:
    """What a scheduler does: a volume for the claim, then the pod to its node."""
    metadata = pod["metadata"]
    claims = (v["persistentVolumeClaim"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v)
    claim = api.get("PersistentVolumeClaim", next(claims)["claimName"], metadata["namespace"])
    wait_until(lambda: reserved(api, claim, node_name), "a volume for the claim", 30)
    api.wait_for(
        "PersistentVolumeClaim",
        lambda claims: all(found["status"]["phase"] == "Bound" for found in claims),
        metadata["namespace"],
        fields=f"metadata.name={claim['metadata']['name']}",
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": metadata["name"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
    api.request("POST", path, binding)


def reserved(api: Api, claim: Object, node_name: str) -> bool:
    """Reserve a free volume on the node for a claim, unless somebody else was quicker."""
    volume = next(
        found
        for found in api.list("PersistentVolume")
        if found["metadata"]["name"].startswith(f"{node_name}-") and "claimRef" not in found["spec"]
    )
    metadata = claim["metadata"]
    reference: dict[str, Any] = {key: metadata[key] for key in ("name", "namespace", "uid")}
    reference |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    version = {"resourceVersion": volume["metadata"]["resourceVersion"]}
    try:
        api.patch(
            "PersistentVolume", volume["metadata"]["name"], {"metadata": version, "spec": {"claimRef": reference}}
        )
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def test_three_stores_stacked_before_the_webhook_came_return_with_a_warning_each_and_the_fourth_goes_elsewhere(
    api: Api, create: Create, open_place: Place
) -> None:
    place = open_place
    create(*objects.local_cluster(["n0"], volumes=20))

    def stack(cluster: str) -> str:
        place.start(cluster=cluster)
        assert per_node(place.wait_running(3, cluster)) == [3]
        return cluster

    clusters = at_once(stack)
    create(*objects.local_cluster(["n1", "n2"], volumes=10)[1:])
    # Now the webhook is installed.
    send_to_the_webhook(api, place)

    def go_on(cluster: str) -> None:
        after = restart(place, 3, cluster)
        assert per_node(after) == [3]
        assert tally(after) == {"returned": 3}

        scale(place, 4, f"{cluster}-tikv")
        pods = place.wait_running(4, cluster)
        assert per_node(pods) == [3, 1]
        assert tally(pods) == {"returned": 3, "pinned": 1}

    at_once(go_on)
    members = {f"{cluster}-tikv-{ordinal}" for cluster in clusters for ordinal in range(3)}
    for kind in ("StatefulSet", "PersistentVolumeClaim"):
        fields = f"reason=PodReturned,involvedObject.kind={kind}"
        events = api.wait_for(
            "Event", lambda found: len(found) == len(members), place.namespace, fields=fields, timeout=20
        )
        assert {event["message"].split()[0] for event in events} == members
        assert {event.get("count", 1) for event in events} == {1}
