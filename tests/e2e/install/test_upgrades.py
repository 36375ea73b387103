"""Upgrades, outages, uninstalls."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.control_plane import ControlPlane, components
from e2e.install.helm import CHART, Helm
from e2e.install.load import member, steady_load
from e2e.install.release import Release
from e2e.objects import Object
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

LABELS = "app.kubernetes.io/component=tikv"
STRICT = {"webhook": {"failurePolicy": "Fail"}, "floor": {"enabled": False}}


@pytest.mark.parametrize("major", [3, 4])
def test_two_upgrades_fail_no_call_and_keep_the_bundle(
    api: Api, new_release: Callable[..., Release], major: int
) -> None:
    release = new_release(major)
    release.install(**STRICT)
    release.kubelet.wait_ready(2)
    release.wait_called(member())
    bundles = release.bundles()
    assert all(bundles)
    with steady_load(api, member()) as tally:
        for number in ("1", "2"):
            old = {pod.name for pod in release.kubelet.running()}
            release.upgrade(**STRICT, podAnnotations={"upgrade": number})
            wait_until(
                lambda old=old: not old & {pod.name for pod in release.kubelet.running()}, "the old pods to go", 90
            )
            release.kubelet.wait_ready(2)
            assert release.bundles() == bundles
        wait_until(lambda: tally.calls >= 500, "500 calls", 120)
    print(f"helm {major}: {tally}")  # the transcript
    assert tally.failures == []
    assert tally.undecided == 0


def test_a_release_of_helm_3_is_upgraded_by_helm_4(
    new_release: Callable[..., Release], helm: Callable[[int], Helm]
) -> None:
    release = new_release(3)
    release.install()
    release.kubelet.wait_ready(2)
    bundles = release.bundles()
    release.upgrade(helm(4))
    release.upgrade(helm(4), replicaCount=1)
    release.kubelet.wait_ready(1)
    assert release.bundles() == bundles


def test_with_no_replica_the_floor_keeps_apart_and_with_replicas_back_pods_get_places(
    api: Api, release: Release, create: Callable[..., list[objects.Object]], namespace: str
) -> None:
    api.patch("Deployment", release.name, {"spec": {"replicas": 0}}, release.namespace)
    release.kubelet.wait_ready(0)
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(2)]))
    create(objects.stateful_set(namespace))
    # Two nodes, three members: two are placed apart, the third waits, and nothing is refused.
    api.wait_for("Pod", lambda pods: len(pods) == 3 and _placed(pods) == 2, namespace, labels=LABELS)
    pods = api.list("Pod", namespace, labels=LABELS)
    nodes = [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]
    assert len(set(nodes)) == 2
    assert all(pod["metadata"]["annotations"]["tidb-ha-webhook.io/guard"] == objects.HOSTNAME for pod in pods)

    api.patch("Deployment", release.name, {"spec": {"replicas": 2}}, release.namespace)
    release.kubelet.wait_ready(2)
    create(objects.node(f"{namespace[:20]}-new"), objects.local_volume(f"{namespace[:20]}-v", f"{namespace[:20]}-new"))
    api.wait_for("Pod", running(3), namespace, labels=LABELS)


def _placed(pods: list[Object]) -> int:
    return sum("nodeName" in pod["spec"] for pod in pods)


def test_after_an_uninstall_of_pods_that_stop_slowly_nothing_comes_back(
    api: Api, release: Release, create: Callable[..., list[objects.Object]], namespace: str
) -> None:
    release.kubelet.stopped_after = 10
    release.uninstall()
    assert release.configuration() is None
    for _ in range(3):
        assert api.find("Secret", f"{release.name}-certificates", release.namespace) is None
        assert api.find("Lease", f"{release.name}-certs", release.namespace) is None
        api.create(member(), dryRun="All")
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)]))
    create(objects.stateful_set(namespace))
    api.wait_for("Pod", running(3), namespace, labels=LABELS)


def test_two_releases_live_beside_each_other(
    api: Api, new_release: Callable[..., Release], release_namespace: str, namespace: str
) -> None:
    first, second = new_release(), new_release(namespace=namespace)
    for each in (first, second):
        each.install(replicaCount=1)
        each.kubelet.wait_ready(1)
        each.wait_called(member())
    bundles = first.bundles()
    second.uninstall()
    assert first.bundles() == bundles
    assert second.configuration() is None
    first.wait_called(member())


@pytest.mark.parametrize("name", ["r" * 53, "short"])
def test_long_names_fit_together(new_release: Callable[..., Release], name: str) -> None:
    release = new_release(name=name)
    release.values["fullnameOverride"] = name[:50]
    release.service = name[:50]
    release.install()
    release.kubelet.wait_ready(2)
    release.wait_called(member())


def test_helm_test_passes_with_a_webhook_and_fails_without(api: Api, release: Release) -> None:
    said = release.helm.run("test", release.name, "-n", release.namespace, "--timeout=60s")
    assert "Succeeded" in said
    assert "a decision of the webhook" in "".join(release.kubelet.finished.values())


def test_a_diff_calls_the_webhook_and_changes_nothing(
    control_plane: ControlPlane, api: Api, release: Release, namespace: str
) -> None:
    pod = member(namespace)
    done = control_plane.kubectl("create", "--dry-run=server", "-o=json", "-f", "-", stdin=json.dumps(pod))
    assert done.returncode == 0, done.stderr
    assert "tidb-ha-webhook.io/decision" in json.loads(done.stdout)["metadata"]["annotations"]
    assert api.list("Pod", namespace) == []


def test_of_a_deleted_namespace_one_command_removes_what_is_left(
    control_plane: ControlPlane, api: Api, release: Release
) -> None:
    api.delete("Namespace", release.namespace)
    wait_until(lambda: api.find("Deployment", release.name, release.namespace) is None, "the Deployment to go", 60)
    assert shell(control_plane, documented("kubectl delete mutatingwebhookconfiguration")).returncode == 0
    assert release.configuration() is None
    api.create(member(), dryRun="All")


def test_one_command_takes_the_annotations_off_the_claims_and_leaves_those_of_others(
    control_plane: ControlPlane, api: Api, namespace: str
) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "plain", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    ours = {"tidb-ha-webhook.io/lock": "{}", "tidb-ha-webhook.io/entry.0123": "{}", "theirs": "1"}
    annotated = {**claim["metadata"], "name": "annotated", "annotations": ours}
    api.create(claim)
    api.create({**claim, "metadata": annotated})
    done = shell(control_plane, documented("kubectl get pvc"))
    assert done.returncode == 0, done.stderr
    found = api.get("PersistentVolumeClaim", "annotated", namespace)["metadata"]["annotations"]
    assert found == {"theirs": "1"}


def documented(begin: str) -> str:
    """The command of the chart's README that begins so."""
    blocks = re.findall(r"```sh\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)
    return next(block for block in blocks if block.startswith(begin))


def shell(control_plane: ControlPlane, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, as the administrator."""
    path = f"{components.binary('kubectl').parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "KUBECONFIG": str(control_plane.kubeconfig)}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
