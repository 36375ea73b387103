"""What is left after an uninstall, in which order things go, and what one command each takes away."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, path_of, running
from e2e.control_plane import ControlPlane, components
from e2e.install.helm import CHART
from e2e.install.load import member
from e2e.install.release import Release
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

LABELS = "app.kubernetes.io/component=tikv"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
SLOWLY = 60.0


def test_after_an_uninstall_of_pods_that_take_a_minute_to_stop_nothing_comes_back(
    api: Api, release: Release, create: Callable[..., list[objects.Object]], namespace: str
) -> None:
    release.kubelet.stopped_after = SLOWLY
    release.uninstall()
    assert not release.kubelet.all_ended()
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)]))
    create(objects.stateful_set(namespace))
    api.wait_for("Pod", running(3), namespace, labels=LABELS)

    def ended() -> bool:
        assert left(api, release) == []
        api.create(member(), dryRun="All")
        return release.kubelet.all_ended()

    wait_until(ended, "the last pod to stop", SLOWLY + 60)
    assert left(api, release) == []


def left(api: Api, release: Release) -> list[str]:
    """What is there of what the release or its processes have made."""
    name, namespace = release.name, release.namespace
    kinds = (("Secret", f"{name}-certificates"), ("Lease", f"{name}-certs"))
    found = [kind for kind, each in kinds if api.find(kind, each, namespace)]
    return found if release.configuration() is None else ["configuration", *found]


@pytest.mark.parametrize("major", [3, 4])
def test_an_uninstall_removes_the_floor_before_the_webhook_and_that_before_its_pods(
    api: Api, control_plane: ControlPlane, new_release: Callable[..., Release], major: int
) -> None:
    release = new_release(major)
    release.install(replicaCount=1)
    release.kubelet.wait_ready(1)
    paths = [
        f"{ADMISSION}/mutatingadmissionpolicybindings",
        f"{ADMISSION}/mutatingwebhookconfigurations",
        f"{path_of('Secret', release.namespace)}",
        f"{path_of('Deployment', release.namespace)}",
    ]
    versions = [api.request("GET", path)["metadata"]["resourceVersion"] for path in paths]
    release.uninstall()
    order = [deleted_at(control_plane, path, version) for path, version in zip(paths, versions, strict=True)]
    assert order == sorted(order)


def deleted_at(control_plane: ControlPlane, path: str, since: str) -> int:
    """The revision at which the release's object of this kind was deleted: all kinds share one count."""
    query = f"watch=true&resourceVersion={since}&timeoutSeconds=2"
    told = control_plane.kubectl("get", "--raw", f"{path}?{query}").stdout
    events = [json.loads(line) for line in told.splitlines()]
    names = ("rel", "rel-certificates")
    (found,) = (
        int(event["object"]["metadata"]["resourceVersion"])
        for event in events
        if event["type"] == "DELETED" and event["object"]["metadata"]["name"].partition(".")[0] in names
    )
    return found


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
    # Without a home its cache would be in the folder that the tests are run from.
    home = str(control_plane.kubeconfig.parent)
    environment = {"PATH": path, "KUBECONFIG": str(control_plane.kubeconfig), "HOME": home}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
