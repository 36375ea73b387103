"""Upgrades, outages, uninstalls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from certs.api import ROTATE
from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.helm import Helm, HelmError
from e2e.install.load import member, steady_load
from e2e.install.release import Release
from e2e.place import HandSet, Place
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
            old = release.kubelet.running()
            release.upgrade(**STRICT, podAnnotations={"upgrade": number})
            release.kubelet.wait_replaced(old, 2)
            assert release.bundles() == bundles
        wait_until(lambda: tally.calls >= 500, "500 calls", 120)
    print(f"helm {major}: {tally}")  # the transcript
    assert tally.failures == []
    assert tally.undecided == 0


@pytest.mark.parametrize("major", [3, 4])
def test_an_upgrade_in_the_middle_of_a_change_of_the_ca_fails_no_call(
    api: Api, new_release: Callable[..., Release], major: int
) -> None:
    release = new_release(major)
    # Long enough for the upgrade to begin before the new certificate is served.
    release.install(**STRICT, certificates={"selfManaged": {"settleSeconds": 10}})
    release.kubelet.wait_ready(2)
    release.wait_called(member())
    secret = f"{release.name}-certificates"
    before = api.get("Secret", secret, release.namespace)["data"]
    with steady_load(api, member()) as tally:
        api.patch("Secret", secret, {"metadata": {"annotations": {ROTATE: "now"}}}, release.namespace)
        wait_until(lambda: "next-ca.crt" in api.get("Secret", secret, release.namespace)["data"], "it to begin", 30)
        old = release.kubelet.running()
        release.upgrade(**STRICT, certificates={"selfManaged": {"settleSeconds": 10}}, podAnnotations={"a": "b"})
        release.kubelet.wait_replaced(old, 2)

        def changed() -> bool:
            now = api.get("Secret", secret, release.namespace)["data"]
            return "next-ca.crt" not in now and bool(now["ca.crt"] != before["ca.crt"])

        wait_until(changed, "the new CA to be in use", 90)
        seen = tally.calls
        wait_until(lambda: tally.calls >= seen + 40, "some more calls", 60)
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


@pytest.mark.parametrize("major", [3, 4])
def test_helm_test_passes_with_a_webhook_and_fails_without(
    api: Api,
    new_release: Callable[..., Release],
    create: Callable[..., list[objects.Object]],
    namespace: str,
    major: int,
) -> None:
    release = new_release(major)
    release.install()
    release.kubelet.wait_ready(2)
    taint = {"key": "e2e", "effect": "NoSchedule"}
    create(objects.node(f"{namespace[:20]}-tainted", taints=[taint]))
    said = release.helm.run("test", release.name, "-n", release.namespace, "--timeout=60s")
    assert "Succeeded" in said
    assert f"pinned to node {namespace[:20]}-tainted" in "".join(release.kubelet.finished.values())
    assert not [each for kind in ("StatefulSet", "Pod") for each in api.list(kind, "default")]
    api.wait_for("PersistentVolumeClaim", lambda found: not found, "default")

    api.patch("Deployment", release.name, {"spec": {"replicas": 0}}, release.namespace)
    release.kubelet.wait_ready(0)
    # A pod that is gone answers on, over the connections that API servers keep, until it has stopped.
    wait_until(release.kubelet.all_ended, "the pods to stop", 60)
    with pytest.raises(HelmError):
        release.helm.run("test", release.name, "-n", release.namespace, "--timeout=60s")
    assert "without a decision: the floor has kept it apart" in "".join(release.kubelet.finished.values())


def test_kubectl_diff_shows_the_pin_of_a_pod_that_is_not_there_and_changes_nothing(
    control_plane: ControlPlane,
    api: Api,
    release: Release,
    create: Callable[..., list[objects.Object]],
    open_place: Place,
    advanced_sets: None,
) -> None:
    nodes = [f"{open_place.namespace[:20]}-{i}" for i in range(3)]
    create(*objects.local_cluster(nodes))
    hand_set = HandSet(open_place)
    hand_set.create_claims(range(3))
    claims = open_place.claims()
    done = control_plane.kubectl("diff", "-f", "-", stdin=json.dumps(objects.member_pod(hand_set.set, 0)))
    # 1: there is a difference; above: it could not be told.
    assert done.returncode == 1, done.stderr
    assert re.search(rf"\+ .*- {nodes[0][:-1]}", done.stdout), done.stdout
    assert f"+    {objects.ASSIGNED_NODE}: " in done.stdout
    assert api.list("Pod", open_place.namespace) == []
    assert open_place.claims() == claims
