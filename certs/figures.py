"""Metrics and health of one replica's keeper, plain HTTP: `/metrics`, `/startz`, `/livez`, `/readyz`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Final
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST, ThreadingWSGIServer, generate_latest

from certs import checks
from certs.cluster import Sighting
from certs.listening import DualStack
from certs.state import Stage

PREFIX: Final = "tidb_ha_webhook"


class Figures:
    """What the keeper tells of itself."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._expiry = self._gauge(
            "certificate_expiry_timestamp_seconds",
            "When the certificate in use expires (s since 1970).",
            "kind",
        )
        self._in_sync = self._gauge(
            "ca_bundle_in_sync", "1 if the API server is told to trust exactly what it shall, else 0."
        )
        self._stage = self._gauge("rotation_stage", "1 for the stage that a change of the CA is in, else 0.", "stage")
        self._leads = self._gauge("certs_leader", "1 if this replica writes, else 0.")
        self._looked = self._gauge("certs_last_success_timestamp_seconds", "When the API server was last read.")
        self._changes = Counter(
            f"{PREFIX}_certificate_changes", "Writes to the Secret or the bundle.", ("what",), registry=self._registry
        )
        self._failures = Counter(
            f"{PREFIX}_certs_failures", "Looks at the API server that failed.", registry=self._registry
        )
        self._sightings = Counter(
            f"{PREFIX}_trust_probes", "Observed calls, by what they met.", ("result",), registry=self._registry
        )
        for sighting in Sighting:
            self._sightings.labels(sighting.value)
        for what in ("secret", "bundle"):
            self._changes.labels(what)

    def looked(self, now: datetime, stage: Stage, *, in_sync: bool, leads: bool) -> None:
        """The API server was read."""
        self._looked.set(now.timestamp())
        self._in_sync.set(in_sync)
        self._leads.set(leads)
        for each in Stage:
            self._stage.labels(each.value).set(each is stage)

    def expires(self, kind: str, certificate: bytes) -> None:
        """The certificate of this kind (`ca`, `leaf`) is this one; one that cannot be read changes nothing."""
        with contextlib.suppress(ValueError):
            self._expiry.labels(kind).set(checks.expires_at(certificate).timestamp())

    def changed(self, what: str) -> None:
        """The `secret` or the `bundle` was written."""
        self._changes.labels(what).inc()

    def failed(self) -> None:
        """The API server could not be read, or not be written to."""
        self._failures.inc()

    def sighted(self, sighting: Sighting) -> None:
        """An observed call was made."""
        self._sightings.labels(sighting.value).inc()

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, labels, registry=self._registry)


def health_application(
    figures: Figures, problem: Callable[[], str | None], started: Callable[[], bool]
) -> WSGIApplication:
    """The WSGI application; it is ready while `problem` returns None.

    `started`: whether there is a certificate, so that the server may be started.
    """

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        path = environ.get("PATH_INFO", "")
        reason = problem() if path == "/readyz" else None
        if path == "/startz" and not started():
            reason = "there is no certificate yet"
        status, body, kind = "200 OK", b"ok\n", "text/plain; charset=utf-8"
        if path == "/metrics":
            body, kind = figures.exposition(), CONTENT_TYPE_LATEST
        elif reason is not None:
            status, body = "503 Service Unavailable", f"not ready: {reason}\n".encode()
        elif path not in ("/startz", "/livez", "/readyz"):
            status, body = "404 Not Found", b"nothing is here: try /startz, /livez, /readyz or /metrics\n"
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    return application


def health_server(port: int, application: WSGIApplication) -> ThreadingWSGIServer:
    """A server on all interfaces, to be run by `serve_forever` in a thread of its own."""
    server = make_server("", port, application, _Server, _SilentHandler)
    server.daemon_threads = True
    return server


class _Server(DualStack, ThreadingWSGIServer):
    """Of both IP families."""


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # the base class's word
        """Nothing: probes come every few seconds."""
