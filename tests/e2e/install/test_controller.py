"""The controller as the chart runs it, with the rights that the chart gives it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.install.load import member, steady_load
from e2e.install.release import Release
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

LABELS = "app.kubernetes.io/component=tikv"
ENABLED = {"controller": {"enabled": True}}


@pytest.mark.parametrize("major", [3, 4])
def test_a_guarded_pod_that_only_the_controller_can_help_gets_its_place(
    api: Api,
    new_release: Callable[..., Release],
    create: Callable[..., list[objects.Object]],
    namespace: str,
    major: int,
) -> None:
    release = new_release(major)
    release.install(**ENABLED)
    release.kubelet.wait_ready(4)
    nodes = [f"{namespace[:20]}-{i}" for i in range(3)]
    create(*objects.local_cluster(nodes))
    api.patch("Node", nodes[2], {"spec": {"unschedulable": True}})
    create(objects.stateful_set(namespace, replicas=4))
    # Two nodes of at least three: one store goes to each, two wait.
    api.wait_for("Pod", lambda pods: len(pods) == 4 and placed(pods) == 2, namespace, labels=LABELS)

    # Left over from before the Service became a name outside of the cluster: nobody keeps them any more.
    api.delete_all("EndpointSlice", release.namespace)
    # The scheduler puts one on the third node. The other may go beside one that is there, now that three are in use:
    # but it is guarded.
    api.patch("Node", nodes[2], {"spec": {"unschedulable": None}})

    pods = api.wait_for("Pod", running(4), namespace, labels=LABELS)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    reasons = {event["reason"] for event in api.list("Event", namespace)}
    assert "PodReplaced" in reasons

    release.uninstall()
    for kind in ("Lease", "Deployment", "Service", "Role", "RoleBinding", "ServiceAccount"):
        left = {found["metadata"]["name"] for found in api.list(kind, release.namespace)}
        assert left <= {"default"}, kind
    release.kubelet.wait_ready(0)


def test_an_upgrade_keeps_who_leads(api: Api, new_release: Callable[..., Release]) -> None:
    release = new_release()
    release.install(**ENABLED, replicaCount=1)
    release.kubelet.wait_ready(3)
    lease = api.wait_for("Lease", lambda found: any(map(holder, found)), release.namespace)
    release.upgrade(**ENABLED, replicaCount=1, commonLabels={"upgraded": "yes"})
    (after,) = (each for each in api.list("Lease", release.namespace) if each["metadata"]["name"] == "rel-controller")
    assert after["metadata"]["labels"]["upgraded"] == "yes"
    assert holder(after) in set(map(holder, lease))


def test_an_upgrade_from_a_release_without_it_fails_no_call(api: Api, new_release: Callable[..., Release]) -> None:
    strict = {"webhook": {"failurePolicy": "Fail"}, "floor": {"enabled": False}}
    release = new_release()
    release.install(**strict)
    release.kubelet.wait_ready(2)
    release.wait_called(member())
    with steady_load(api, member()) as tally:
        release.upgrade(**strict, **ENABLED)
        release.kubelet.wait_ready(4)
        wait_until(lambda: tally.calls >= 300, "300 calls", 120)
    print(f"from a release without a controller: {tally}")  # the transcript
    assert (tally.failures, tally.undecided) == ([], 0)


def holder(lease: objects.Object) -> str:
    """Who leads, "" if nobody does; only the controller's Lease counts."""
    if not lease["metadata"]["name"].endswith("-controller"):
        return ""
    found: str = lease.get("spec", {}).get("holderIdentity", "")
    return found


def placed(pods: list[objects.Object]) -> int:
    """How many have a node."""
    return sum("nodeName" in pod["spec"] for pod in pods)
