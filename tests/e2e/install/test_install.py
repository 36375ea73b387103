"""Install, use, uninstall."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api, running
from e2e.install.release import Release

pytestmark = pytest.mark.e2e

LABELS = "app.kubernetes.io/component=tikv"


@pytest.mark.parametrize("major", [3, 4])
def test_a_set_is_placed_apart_after_install_and_nothing_is_left_after_uninstall(
    api: Api,
    new_release: Callable[..., Release],
    create: Callable[..., list[objects.Object]],
    namespace: str,
    major: int,
) -> None:
    release = new_release(major)
    release.install()
    release.kubelet.wait_ready(2)
    create(*objects.local_cluster([f"{namespace[:20]}-{i}" for i in range(3)]))
    create(objects.stateful_set(namespace))
    pods = api.wait_for("Pod", running(3), namespace, labels=LABELS)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    assert all("tidb-ha-webhook.io/assigned-node" in pod["metadata"]["annotations"] for pod in pods)

    release.uninstall()
    assert release.configuration() is None
    for kind in ("Secret", "Lease", "Deployment", "Service", "Role", "RoleBinding"):
        left = [found["metadata"]["name"] for found in api.list(kind, release.namespace)]
        assert not [name for name in left if not name.startswith("sh.helm")], kind
    release.kubelet.wait_ready(0)
