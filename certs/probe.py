"""The observed call: an HTTPS server that presents the certificate that is to be served next.

The configuration of the webhook has an entry that sends ConfigMaps with our label here. The keeper creates
one, as a dry run, through the API server: if that trusts the new CA, the review arrives, and the answer names
the certificate that this very connection has met. Each call makes a new connection.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import tempfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

from certs import checks
from certs.api import PROBE
from certs.authority import Pair
from certs.listening import DualStack

_LOG: Final = logging.getLogger(__name__)
_LONGEST_REVIEW: Final = 1 << 20
# Seconds; the API server waits 5 for the answer.
_PATIENCE: Final = 5.0


class ProbeServer:
    """Serves on `port` of all interfaces (0: any free one) once there is a certificate to present."""

    def __init__(self, port: int) -> None:
        self._lock = Lock()
        self._presented: tuple[ssl.SSLContext, str] | None = None
        self._pair: Pair | None = None
        self._server = _Server(("", port), _Handler)
        self._server.probe = self
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def present(self, pair: Pair) -> None:
        """Present this pair to whoever connects from now on."""
        if pair == self._pair:
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The library loads files only.
        with tempfile.TemporaryDirectory() as directory:
            certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
            certificate.write_bytes(pair.certificate)
            key.touch(0o600)
            key.write_bytes(pair.key)
            context.load_cert_chain(certificate, key)
        with self._lock:
            self._pair = pair
            self._presented = context, checks.fingerprint(pair.certificate)

    def presented(self) -> tuple[ssl.SSLContext, str] | None:
        """What to present, and its fingerprint; None while there is nothing."""
        with self._lock:
            return self._presented


class _Server(DualStack, ThreadingHTTPServer):
    probe: ProbeServer
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 # the base class's words
        """A caller that refuses the certificate, or no TLS at all: the keeper learns it from the API server."""
        _LOG.debug("a connection to the probe failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    server: _Server
    fingerprint: str

    def setup(self) -> None:
        """Do the handshake in this connection's own thread: a silent caller holds up no other."""
        presented = self.server.probe.presented()
        if presented is None:
            raise ConnectionAbortedError
        context, self.fingerprint = presented
        self.request.settimeout(_PATIENCE)
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        """Close the wrapped connection: the server knows only the one that it was made from."""
        super().finish()
        self.request.close()

    def do_POST(self) -> None:
        """Answer a review; the answer is the fingerprint that the handshake of this connection has shown."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _LONGEST_REVIEW:
            self._send(HTTPStatus.BAD_REQUEST, b"")
            return
        answer = _answer(self.rfile.read(int(length)), self.fingerprint)
        self._send(HTTPStatus.OK if answer else HTTPStatus.BAD_REQUEST, answer)

    def log_message(self, format: str, *args: Any) -> None:  # the base class's word
        """Nothing: one line per probe would be most of the log."""

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # The next probe has to shake hands again.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _answer(body: bytes, fingerprint: str) -> bytes:
    """The review's answer; empty if it is none."""
    try:
        review = json.loads(body)
        uid, annotations = review["request"]["uid"], review["request"]["object"]["metadata"].get("annotations")
    except (ValueError, TypeError, KeyError, AttributeError):
        return b""
    missing = [] if annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    path = f"/metadata/annotations/{PROBE.replace('/', '~1')}"
    patch = json.dumps([*missing, {"op": "add", "path": path, "value": fingerprint}])
    response = {
        "uid": uid,
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(patch.encode()).decode(),
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
