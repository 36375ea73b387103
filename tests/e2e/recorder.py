"""Webhooks that allow everything and keep what the API server sent them."""

from __future__ import annotations

import base64
import json
import ssl
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.processes import free_port

SYSTEM, SERVICE = "webhook-system", "hook"
"""Namespace and name of the Service that they are behind."""

RECORDED, BESIDE = "/recorded", "/beside"
"""The paths of the one whose reviews are wanted, and of another webhook."""


class Recorder:
    """Webhooks that allow everything: what was sent, and the patches that they answer with, one call after another."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = defaultdict(list)
        self.patches: dict[str, list[list[Object]]] = defaultdict(list)

    def answer(self, path: str, body: bytes) -> Object:
        """Keep the review; its answer."""
        path = path.partition("?")[0]
        self.bodies[path].append(body)
        review = json.loads(body)
        response: Object = {"uid": review["request"]["uid"], "allowed": True}
        if self.patches[path]:
            patch = json.dumps(self.patches[path].pop(0)).encode()
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    def found(self, request: Object) -> list[bytes]:
        """The recorded reviews of the same call."""
        keys = ("operation", "subResource", "name", "namespace", "dryRun")

        def same(body: bytes) -> bool:
            seen = json.loads(body)["request"]
            return all(seen.get(key) == request.get(key) for key in keys)

        return [body for body in self.bodies[RECORDED] if same(body)]

    @contextmanager
    def serving(self, plane: ControlPlane) -> Iterator[int]:
        """Serve with TLS on a free port, which is given."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler) -> None:
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                answer = json.dumps(self.answer(handler.path, body)).encode()
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(answer)))
                handler.end_headers()
                handler.wfile.write(answer)

            def log_message(handler, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        plane.ca.issue_cert(f"{SERVICE}.{SYSTEM}.svc").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        # The API server keeps its connections: their threads would be waited for.
        server.daemon_threads, server.block_on_close = True, False
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
