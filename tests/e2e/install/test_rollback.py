"""A version that writes records of a later format was there: after the rollback pods are placed again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import webhook
from e2e import objects
from e2e.api import Api, running
from e2e.install.helm import CHART, HelmError
from e2e.install.pod import RunningPod
from e2e.install.release import Release, merged
from e2e.objects import Object
from e2e.place import pin_of
from e2e.replicas import outcome_of
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

EXPIRY = 30
LABELS = "app.kubernetes.io/component=tikv"
SETTINGS = {"webhook": {"expirySeconds": EXPIRY, "clockAllowanceSeconds": 0}}


@pytest.fixture
def newer() -> Iterator[str]:
    """A folder with the program as it might be one day: its records are of the format after today's."""
    # In the project's folder, which a container sees: it has a /tmp of its own.
    folder = CHART.parents[1] / ".cache" / "newer-version"
    shutil.rmtree(folder, ignore_errors=True)
    program = shutil.copytree(Path(webhook.__file__).parent, folder / "webhook")
    ledger = program / "core" / "ledger.py"
    text, changed = re.subn(r"(?m)^(FORMAT_VERSION: Final) = 1$", r"\1 = 2", ledger.read_text())
    assert changed == 1
    ledger.write_text(text)
    yield str(folder)
    shutil.rmtree(folder)


def wait_replaced(release: Release, before: list[RunningPod]) -> None:
    """Wait until other pods answer, and those from before have ended: API servers keep their connections to these."""
    release.kubelet.wait_replaced(before, 2)
    wait_until(lambda: not release.kubelet.busy(), "the old pods to end", 60)


def member(api: Api, namespace: str, ordinal: int) -> Object | None:
    return api.find("Pod", f"db-tikv-{ordinal}", namespace)


def recreated(api: Api, namespace: str, ordinal: int) -> Object:
    """The pod that its controller has made anew."""
    before = member(api, namespace, ordinal)
    assert before is not None
    uid = before["metadata"]["uid"]
    api.delete("Pod", before["metadata"]["name"], namespace, gracePeriodSeconds=0)

    def made() -> Object | None:
        found = member(api, namespace, ordinal)
        return found if found and found["metadata"]["uid"] != uid else None

    return wait_until(made, "the pod to be made anew", 30)


@pytest.mark.parametrize("major", [3, 4])
def test_after_a_failed_upgrade_and_a_rollback_pods_are_placed_again_within_twice_the_expiry(
    api: Api,
    new_release: Callable[..., Release],
    create: Callable[..., list[Object]],
    namespace: str,
    newer: str,
    major: int,
) -> None:
    release = new_release(major)
    release.install(**SETTINGS)
    release.kubelet.wait_ready(2)
    bundles = release.bundles()
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)]))
    create(objects.stateful_set(namespace))
    assert all(map(pin_of, api.wait_for("Pod", running(3), namespace, labels=LABELS)))

    first = release.kubelet.running()
    environment = [{"name": "PYTHONPATH", "value": newer}]
    release.upgrade(**merged(SETTINGS, {"webhook": {"extraEnv": environment}}))
    wait_replaced(release, first)
    assert outcome_of(recreated(api, namespace, 0)) == "pinned"
    assert any('"v":2' in record for record in records(api, namespace))
    # Pods of the next upgrade do not even start: it fails, and those of the upgrade before go on.
    environment.append({"name": "TIDB_HA_CONTROLLER", "value": "perhaps"})
    broken = merged(release.values, merged(SETTINGS, {"webhook": {"extraEnv": environment}}))
    arguments = ("upgrade", release.name, CHART, "-n", release.namespace, "--wait", "--timeout=15s")
    with pytest.raises(HelmError):
        release.helm.run(*arguments, values=broken)

    second = release.kubelet.running()
    release.helm.run("rollback", release.name, "1", "-n", release.namespace)
    release.swap_service()
    wait_replaced(release, second)
    assert release.bundles() == bundles
    assert outcome_of(recreated(api, namespace, 1)) == "guarded NewerFormat"

    def placed() -> bool:
        return outcome_of(recreated(api, namespace, 1)) == "pinned"

    wait_until(placed, "a pod to be placed again", 2 * EXPIRY)
    api.wait_for("Pod", running(3), namespace, labels=LABELS)
    assert not any('"v":2' in record for record in records(api, namespace, objects.LOCK))


def records(api: Api, namespace: str, begin: str = "tidb-ha-webhook.io/") -> list[str]:
    """Our annotations on claims, of which the keys begin so."""
    claims = api.list("PersistentVolumeClaim", namespace)
    annotations = (claim["metadata"].get("annotations", {}) for claim in claims)
    return [text for found in annotations for key, text in found.items() if key.startswith(begin)]
