"""The certificates of a running release: rotation, renewal, damage; no call may fail."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import trustme

from certs import checks
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.load import Tally, member, steady_load
from e2e.install.release import Release
from e2e.rounds import few
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

STRICT = {"webhook": {"failurePolicy": "Fail"}, "floor": {"enabled": False}}


@pytest.fixture
def release(new_release: Callable[..., Release]) -> Release:
    """Two ready replicas under failure policy Fail without a floor: every call that goes wrong shows."""
    made = new_release()
    made.install(**STRICT)
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


def served(release: Release) -> list[str]:
    """What each replica serves, sorted."""
    return sorted(served_by(release, index) for index in range(len(release.kubelet.backends(release.port))))


def served_everywhere(release: Release, wanted: str) -> bool:
    return set(served(release)) == {wanted}


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


LATE = 60.0


def test_a_ca_is_changed_under_load_though_the_files_of_one_replica_follow_a_minute_late(
    control_plane: ControlPlane, api: Api, new_release: Callable[..., Release]
) -> None:
    release = new_release()
    release.kubelet.first_is_late_by = LATE
    release.install(**STRICT)
    release.kubelet.wait_ready(2)
    release.wait_called(member())
    before = stored(release)
    old = checks.fingerprint(before["tls.crt"])
    with steady_load(api, member()) as tally:
        assert certs(control_plane, release, "rotate").returncode == 0
        wait_until(lambda: stored(release)["ca.crt"] != before["ca.crt"], "the new CA to be in use", 60)
        wanted = checks.fingerprint(stored(release)["tls.crt"])
        wait_until(lambda: served(release) == sorted([old, wanted]), "one of two to serve the new certificate", 10)
        begun = tally.calls
        wait_until(lambda: served(release) == [wanted, wanted], "the other to follow", LATE + 30)
        # At least so many calls while the two served certificates by different CAs.
        assert tally.calls - begun > LATE
        untroubled(tally)


FOREIGN = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
GARBAGE = base64.b64encode(b"no certificate at all").decode()


def damage_bundle(text: str) -> Callable[[Api, Release], None]:
    def damage(api: Api, release: Release) -> None:
        found = release.configuration() or {}
        entries = [{"name": each["name"], "clientConfig": {"caBundle": text}} for each in found["webhooks"]]
        content_type = "application/strategic-merge-patch+json"
        kind = "MutatingWebhookConfiguration"
        api.patch(kind, release.cluster_name, {"webhooks": entries}, content_type=content_type)

    return damage


@pytest.mark.parametrize("text", ["", FOREIGN, GARBAGE], ids=["wiped", "replaced by somebody else's", "garbage"])
def test_a_bundle_that_is_broken_is_back_within_seconds(api: Api, release: Release, text: str) -> None:
    before = release.bundles()
    damage_bundle(text)(api, release)
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


@pytest.mark.timeout(900)
def test_three_replicas_that_start_at_once_make_one_authority(
    api: Api, new_release: Callable[..., Release], tell: Callable[[str], None]
) -> None:
    release = new_release()
    release.install(replicaCount=3)
    count, seen = few(20), set()
    for number in range(count):
        if number:
            forget_certificates(api, release)
            api.patch("Deployment", release.name, {"spec": {"replicas": 3}}, release.namespace)
        pods = release.kubelet.wait_ready(3)
        assert "".join(pod.log("certs") for pod in pods).count("a first CA is made") == 1
        authority, leaf = stored(release)["ca.crt"], stored(release)["tls.crt"]
        assert served(release) == [checks.fingerprint(leaf)] * 3
        assert set(release.bundles()) == {base64.b64encode(authority).decode()}
        seen.add(authority)
    assert len(seen) == count
    tell(f"{count} times one CA of three replicas")


def forget_certificates(api: Api, release: Release) -> None:
    """Back to before the first start: no pod, no Secret, no leader, no bundle."""
    api.patch("Deployment", release.name, {"spec": {"replicas": 0}}, release.namespace)
    release.kubelet.wait_ready(0)
    wait_until(release.kubelet.all_ended, "the pods to stop", 60)
    for kind, name in (("Secret", f"{release.name}-certificates"), ("Lease", f"{release.name}-certs")):
        api.delete(kind, name, release.namespace)
    damage_bundle("")(api, release)


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
