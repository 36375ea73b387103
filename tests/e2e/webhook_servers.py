"""Webhooks of the tests, on this machine."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.processes import free_port


def allowed(body: bytes, patch: Sequence[Object] = ()) -> Object:
    """The answer to the review in a request's body: allowed, with a JSON patch if there is one."""
    review = json.loads(body)
    response: Object = {"uid": review["request"]["uid"], "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


@contextmanager
def served_webhook(
    plane: ControlPlane, service: tuple[str, str], answer: Callable[[str, bytes], Object]
) -> Iterator[int]:
    """Serve what `answer` says to path and body, with TLS for the Service of this namespace and name; the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            said = json.dumps(answer(self.path, body))
            # In one piece: two would wait for each other's acknowledgement.
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
            self.wfile.write((head + said).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    namespace, name = service
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    plane.ca.issue_cert(f"{name}.{namespace}.svc").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    # The API server keeps its connections: their threads would be waited for.
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
