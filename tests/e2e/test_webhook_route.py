"""The API server calls a webhook on this machine through an ordinary configuration with a service reference."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.processes import free_port
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

PATCH = [{"op": "add", "path": "/metadata/annotations", "value": {"seen-by": "webhook"}}]


class _Webhook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    paths: list[str]

    def do_POST(self) -> None:
        self.paths.append(self.path)
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(PATCH).encode()).decode(),
        }
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def webhook(control_plane: ControlPlane, namespace: str) -> Iterator[tuple[int, list[str]]]:
    paths: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), type("Handler", (_Webhook,), {"paths": paths}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    control_plane.ca.issue_cert(f"hook.{namespace}.svc").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    # The API server keeps its connections: their threads would be waited for.
    server.daemon_threads, server.block_on_close = True, False
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server.server_port, paths
    server.shutdown()
    thread.join()
    server.server_close()


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
