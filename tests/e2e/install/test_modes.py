"""Who makes the certificate is changed under load, under failure policy Fail without a floor: no call may fail."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trustme

from certs import checks
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.issuing import CertManager, missing
from e2e.install.load import Tally, member, steady_load
from e2e.install.release import Release
from e2e.objects import Object
from e2e.waiting import wait_until

# A rolling update waits for the Lease of the mode before (15 s), and a new CA without a probe for a minute more.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

STRICT: dict[str, Any] = {"webhook": {"failurePolicy": "Fail"}, "floor": {"enabled": False}}
SELF_MANAGED = {"mode": "selfManaged"}
PUBLISHED = {"mode": "certManager", "certManager": {"injector": False}}
INJECTED = {"mode": "certManager"}


@pytest.fixture(scope="module")
def cert_manager(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CertManager]:
    if problem := missing():
        pytest.fail(problem, pytrace=False)
    with CertManager(control_plane, tmp_path_factory.mktemp("cert-manager")) as running:
        yield running


class Theirs:
    """A certificate of the user's own, by an authority below their root, in a Secret."""

    def __init__(self, api: Api, namespace: str, name: str = "theirs") -> None:
        root = trustme.CA()
        issued = root.create_child_ca().issue_cert(f"rel.{namespace}.svc")
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        data = {"tls.crt": chain, "tls.key": issued.private_key_pem.bytes()}
        self.authority = root.cert_pem.bytes()
        encoded = {key: base64.b64encode(text).decode() for key, text in data.items()}
        metadata = {"name": name, "namespace": namespace}
        secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
        api.create({**secret, "data": encoded})
        bundle = base64.b64encode(self.authority).decode()
        self.values = {"mode": "existingSecret", "existingSecret": {"name": name, "caBundle": bundle}}


@contextmanager
def loaded(api: Api, release: Release) -> Iterator[Tally]:
    """A load from now on; at the end every call was answered by the webhook."""
    release.wait_called(member())
    with steady_load(api, member()) as tally:
        yield tally
        seen = tally.calls
        wait_until(lambda: tally.calls >= seen + 40, "some more calls", 60)
    print(tally)  # the transcript
    assert tally.failures == []
    assert tally.undecided == 0


def switch(release: Release, certificates: dict[str, Any]) -> None:
    """Upgrade, until only pods of the new mode are there."""
    old = release.kubelet.running()
    release.upgrade(**STRICT, certificates=certificates)
    release.kubelet.wait_replaced(old, 2)


def trusted(release: Release) -> set[bytes]:
    """What each entry's bundle trusts: one set for all."""
    (found,) = {frozenset(checks.certificates_in(base64.b64decode(bundle))) for bundle in release.bundles()}
    return set(found)


def pem(certificate: bytes) -> bytes:
    """A certificate as the bundle has it."""
    return checks.certificates_in(certificate)[0]


@pytest.mark.parametrize("major", [3, 4])
def test_to_a_secret_of_the_users_own_and_back(api: Api, new_release: Callable[..., Release], major: int) -> None:
    release = new_release(major)
    release.install(**STRICT)
    release.kubelet.wait_ready(2)
    with loaded(api, release):
        (ours,) = trusted(release)
        theirs = Theirs(api, release.namespace)
        switch(release, theirs.values)
        assert trusted(release) == {ours, pem(theirs.authority)}
        # The probe's entry is gone, though somebody else than Helm owned a field of it.
        assert len(release.bundles()) == 2
        switch(release, SELF_MANAGED)
        assert len(trusted(release)) == 3
        assert len(release.bundles()) == 3


def test_to_cert_manager_and_back(api: Api, new_release: Callable[..., Release], cert_manager: CertManager) -> None:
    release = new_release()
    release.install(**STRICT)
    release.kubelet.wait_ready(2)
    with loaded(api, release):
        (ours,) = trusted(release)
        switch(release, PUBLISHED)
        issued = pem(cert_manager.authority(release.namespace, "rel-cert-manager"))
        assert trusted(release) == {ours, issued}
        switch(release, INJECTED)
        wait_until(lambda: trusted(release) == {issued}, "the injector to be the one who writes", 30)
        switch(release, SELF_MANAGED)
        # Both of those before, of which our own first one is trusted for a day since it was left, and the new one.
        assert trusted(release) > {ours, issued}
        assert len(trusted(release)) == 3
    release.uninstall()
    assert [each["metadata"]["name"] for each in api.list("Secret", release.namespace)] == []


def test_from_a_secret_to_cert_manager_by_helm_3(
    api: Api, new_release: Callable[..., Release], cert_manager: CertManager
) -> None:
    release = new_release(3)
    theirs = Theirs(api, release.namespace)
    release.install(**STRICT, certificates=theirs.values)
    release.kubelet.wait_ready(2)
    with loaded(api, release):
        assert trusted(release) == {pem(theirs.authority)}
        switch(release, PUBLISHED)
        switch(release, INJECTED)
        issued = pem(cert_manager.authority(release.namespace, "rel-cert-manager"))
        wait_until(lambda: trusted(release) == {issued}, "the injector to be the one who writes", 30)
    release.uninstall()
    left = {each["metadata"]["name"] for each in api.list("Secret", release.namespace)}
    assert left == {"theirs"}


def test_cert_manager_alone_gives_a_webhook_that_is_called(
    api: Api, new_release: Callable[..., Release], cert_manager: CertManager
) -> None:
    release = new_release()
    release.install(**STRICT, certificates=INJECTED)
    release.kubelet.wait_ready(2)
    release.wait_called(member())
    assert trusted(release) == {pem(cert_manager.authority(release.namespace, "rel-cert-manager"))}
    # Each pod has the server alone, and none of them may touch the configuration.
    assert {name for pod in release.kubelet.running() for name in pod.children} == {"webhook"}
    assert api.find("Role", "rel", release.namespace) is None


def test_a_leaf_of_cert_managers_is_renewed_without_a_failed_call(
    api: Api, new_release: Callable[..., Release], cert_manager: CertManager
) -> None:
    release = new_release()
    release.install(**STRICT, certificates=INJECTED)
    release.kubelet.wait_ready(2)
    with loaded(api, release) as tally:
        before = api.get("Secret", "rel-cert-manager", release.namespace)["data"]["tls.crt"]
        # As its own command for people does it.
        path = f"/apis/cert-manager.io/v1/namespaces/{release.namespace}/certificates/rel-server"
        condition = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by a test"}
        certificate = api.request("GET", path)
        certificate["status"]["conditions"].append(condition)
        api.request("PUT", f"{path}/status", certificate)
        wait_until(
            lambda: api.get("Secret", "rel-cert-manager", release.namespace)["data"]["tls.crt"] != before,
            "the leaf to be renewed",
            60,
        )
        seen = tally.calls
        wait_until(lambda: tally.calls > seen + 100, "the new files to be in use", 60)
