"""The API server calls a webhook on this machine through an ordinary configuration with a service reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.waiting import wait_until
from e2e.webhook_servers import allowed, served_webhook

pytestmark = pytest.mark.e2e

PATCH = [{"op": "add", "path": "/metadata/annotations", "value": {"seen-by": "webhook"}}]


@pytest.fixture
def webhook(control_plane: ControlPlane, namespace: str) -> Iterator[tuple[int, list[str]]]:
    paths: list[str] = []

    def answer(path: str, body: bytes) -> objects.Object:
        paths.append(path)
        return allowed(body, PATCH)

    with served_webhook(control_plane, (namespace, "hook"), answer) as port:
        yield port, paths


def test_a_pod_is_patched_by_a_webhook_behind_an_external_name_service(
    api: Api,
    control_plane: ControlPlane,
    create: Callable[..., list[objects.Object]],
    namespace: str,
    webhook: tuple[int, list[str]],
) -> None:
    port, paths = webhook
    create(
        objects.external_name_service(namespace, "hook"),
        objects.webhook_configuration(
            namespace,
            service=(namespace, "hook"),
            port=port,
            ca_bundle=control_plane.ca.cert_pem.bytes(),
            failure_policy="Fail",
            namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        ),
    )

    pod = objects.filler_pod(namespace, "nowhere", cpu="1", memory="1Gi")
    # A new configuration takes a moment to reach the API server's own cache.
    wait_until(lambda: "annotations" in api.create(pod, dryRun="All")["metadata"], "the webhook to be called", 10)

    assert api.create(pod)["metadata"]["annotations"] == {"seen-by": "webhook"}
    assert set(paths) == {"/mutate?timeout=10s"}
