"""The certificates of a running release: rotation, renewal, damage; no call may fail."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from certs import checks
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.load import Tally, member, steady_load
from e2e.install.release import Release
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture
def release(new_release: Callable[..., Release]) -> Release:
    """Two ready replicas under failure policy Fail without a floor: every call that goes wrong shows."""
    made = new_release()
    made.install(webhook={"failurePolicy": "Fail"}, floor={"enabled": False})
    made.kubelet.wait_ready(2)
    made.wait_called(member())
    return made


@pytest.fixture
def load(api: Api, release: Release) -> Iterator[Tally]:
    with steady_load(api, member()) as tally:
        wait_until(lambda: tally.calls > 20, "the load to run", 30)
        yield tally


def untroubled(tally: Tally, at_least: int = 1) -> None:
    """All calls so far, and as many again, were answered by the webhook."""
    seen = tally.calls
    wait_until(lambda: tally.calls >= max(seen + 40, at_least), "some more calls", 60)
    print(tally)  # the transcript
    assert tally.failures == []
    assert tally.undecided == 0


def stored(release: Release) -> dict[str, bytes]:
    found = release.api.find("Secret", f"{release.name}-certificates", release.namespace)
    return {name: base64.b64decode(text) for name, text in ((found or {}).get("data") or {}).items()}


def served_by(release: Release, pod_index: int = 0) -> str:
    """The fingerprint that a handshake with one replica shows."""
    port = release.kubelet.backends(release.port)[pod_index]
    return checks.fingerprint(ssl.get_server_certificate(("127.0.0.1", port)).encode())


def served_everywhere(release: Release, wanted: str) -> bool:
    count = len(release.kubelet.backends(release.port))
    return count > 0 and all(served_by(release, index) == wanted for index in range(count))


def certs(control_plane: ControlPlane, release: Release, command: str) -> subprocess.CompletedProcess[str]:
    """`python -m certs` as an administrator calls it."""
    target = ["--namespace", release.namespace, "--service", release.name, "--kubeconfig", control_plane.kubeconfig]
    call = [sys.executable, "-m", "certs", command, *map(str, target)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_a_ca_is_changed_under_load_without_a_failed_call(
    control_plane: ControlPlane, release: Release, load: Tally
) -> None:
    before = stored(release)
    assert certs(control_plane, release, "rotate").returncode == 0
    wait_until(lambda: stored(release)["ca.crt"] != before["ca.crt"], "the new CA to be in use", 60)
    wanted = checks.fingerprint(stored(release)["tls.crt"])
    wait_until(lambda: served_everywhere(release, wanted), "the new certificate to be served", 10)
    untroubled(load, at_least=500)
    status = certs(control_plane, release, "status")
    assert status.returncode == 0, status.stdout
    assert "stage: retire" in status.stdout
    assert len(checks.certificates_in(base64.b64decode(release.bundles()[0]))) == 2


def test_a_replica_whose_files_follow_late_fails_no_call(
    control_plane: ControlPlane, release: Release, load: Tally
) -> None:
    before = stored(release)
    keepers = [pod.children["certs"] for pod in release.kubelet.running()]
    holder = release.api.get("Lease", f"{release.name}-certs", release.namespace)["spec"]["holderIdentity"]
    late = next(child for child in keepers if not holder.startswith(child.name.split("/")[0]))
    certs(control_plane, release, "rotate")
    wait_until(lambda: "next-ca.crt" in stored(release), "the next CA to be known", 30)
    late.freeze()
    try:
        # Half of the probes reach the frozen keeper and get no answer: it must be thawed for the change to go on.
        untroubled(load)
        late.thaw()
        wait_until(lambda: stored(release)["ca.crt"] != before["ca.crt"], "the new CA to be in use", 90)
        late.freeze()
        untroubled(load)
    finally:
        late.thaw()
    wanted = checks.fingerprint(stored(release)["tls.crt"])
    wait_until(lambda: served_everywhere(release, wanted), "the new certificate to be served", 10)
    untroubled(load)


def damage_bundle(text: str) -> Callable[[Api, Release], None]:
    def damage(api: Api, release: Release) -> None:
        found = release.configuration() or {}
        entries = [{"name": each["name"], "clientConfig": {"caBundle": text}} for each in found["webhooks"]]
        content_type = "application/strategic-merge-patch+json"
        kind = "MutatingWebhookConfiguration"
        api.patch(kind, release.cluster_name, {"webhooks": entries}, content_type=content_type)

    return damage


def test_a_bundle_that_is_wiped_is_back_within_seconds(api: Api, release: Release) -> None:
    before = release.bundles()
    damage_bundle("")(api, release)
    wait_until(lambda: release.bundles() == before, "the bundle to be back", 15)
    release.wait_called(member(), 15)


def test_a_configuration_that_is_deleted_and_made_again_gets_its_bundle(api: Api, release: Release) -> None:
    before = release.bundles()
    found = release.configuration()
    assert found is not None
    api.delete("MutatingWebhookConfiguration", release.cluster_name)
    for entry in found["webhooks"]:
        del entry["clientConfig"]["caBundle"]
    api.create({**found, "metadata": {"name": release.cluster_name, "labels": found["metadata"]["labels"]}})
    wait_until(lambda: release.bundles() == before, "the bundle to be back", 15)
    release.wait_called(member(), 15)


@pytest.mark.parametrize("damage", ["deleted", "emptied", "mixed up"])
def test_a_damaged_secret_is_mended_without_a_failed_call(api: Api, release: Release, load: Tally, damage: str) -> None:
    name, before = f"{release.name}-certificates", stored(release)
    if damage == "deleted":
        api.delete("Secret", name, release.namespace)
    else:
        gone = {key: None for key in before} if damage == "emptied" else {"ca.key": None, "tls.key": "bm8="}
        api.patch("Secret", name, {"data": gone}, release.namespace)
    wait_until(lambda: stored(release).get("ca.crt") not in (None, before["ca.crt"]), "a new CA to be in use", 90)
    wanted = checks.fingerprint(stored(release)["tls.crt"])
    wait_until(lambda: served_everywhere(release, wanted), "the new certificate to be served", 15)
    untroubled(load)


def test_a_foreign_managers_field_is_left_alone_and_nothing_is_written_in_the_steady_state(
    api: Api, release: Release
) -> None:
    theirs = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}
    entry = {"name": "pods.tidb-ha-webhook.io", "namespaceSelector": theirs}
    content_type = "application/strategic-merge-patch+json"
    kind = "MutatingWebhookConfiguration"
    api.patch(kind, release.cluster_name, {"webhooks": [entry]}, content_type=content_type, fieldManager="enforcer")
    before, secret = release.configuration(), api.get("Secret", f"{release.name}-certificates", release.namespace)
    assert before is not None
    lease = api.get("Lease", f"{release.name}-certs", release.namespace)["metadata"]["resourceVersion"]

    def lease_renewed(times: int = 10) -> bool:
        found = api.get("Lease", f"{release.name}-certs", release.namespace)["metadata"]["resourceVersion"]
        return int(found) > int(lease) + times

    wait_until(lease_renewed, "the leader to have looked many times", 60)
    assert release.configuration() == before
    assert api.get("Secret", f"{release.name}-certificates", release.namespace) == secret
    ours = [each for each in before["metadata"]["managedFields"] if each["manager"] == "tidb-ha-webhook-certs"]
    assert len(ours) == 1
    fields = json.dumps(ours[0]["fieldsV1"])
    assert "f:caBundle" in fields
    assert "f:namespaceSelector" not in fields
    assert "f:rules" not in fields


def test_three_replicas_that_start_at_once_make_one_authority(new_release: Callable[..., Release]) -> None:
    release = new_release()
    release.install(replicaCount=3)
    release.kubelet.wait_ready(3)
    logs = "".join(pod.log("certs") for pod in release.kubelet.running())
    assert logs.count("a first CA is made") == 1
    assert served_everywhere(release, checks.fingerprint(stored(release)["tls.crt"]))


def test_a_leaf_is_renewed_and_the_old_one_is_not_shown_for_longer_than_documented(
    api: Api, release: Release, load: Tally
) -> None:
    before = served_by(release)
    api.patch("Secret", f"{release.name}-certificates", {"data": {"tls.crt": None, "tls.key": None}}, release.namespace)
    wait_until(lambda: "tls.crt" in stored(release), "the leaf to be renewed", 15)
    wanted = checks.fingerprint(stored(release)["tls.crt"])
    assert wanted != before
    wait_until(lambda: served_everywhere(release, wanted), "the new leaf to be served", 0.5 + 1 + 2)
    untroubled(load)
