"""A cluster in memory that answers over HTTP as an API server does: what a command meets when it asks a live one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fake_api_server import DATE
from operating.ward import Ward

from webhook.cluster.door import ENDPOINT_SLICES, WEBHOOKS, Resource
from webhook.cluster.kinds import BUILT_IN, CUSTOM
from webhook.errors import ApiError
from webhook.operating.doctor.patient import BINDINGS, LEASES, POLICIES, SERVICES
from webhook.operating.doctor.permissions import REVIEWS, SELF_REVIEWS

Refusal = tuple[int, Mapping[str, str]]
"""A status, and headers."""
KINDS = (*BUILT_IN, *CUSTOM, WEBHOOKS, POLICIES, BINDINGS, LEASES, SERVICES, REVIEWS, SELF_REVIEWS, ENDPOINT_SLICES)
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}


@contextmanager
def served(cluster: Ward, refuse: Callable[[str], Refusal | None] = lambda path: None) -> Iterator[str]:
    """The URL of an API server that has these objects; `refuse` says which paths it refuses, and how."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer in one piece: two would wait for each other's acknowledgement.
        wbufsize = 1 << 16

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the output is the tests'."""

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            refusal = refuse(urlsplit(self.path).path)
            if refusal is not None:
                status, headers = refusal
                self.send(status, {"kind": "Status", "code": status, "message": "told so"}, headers)
                return
            try:
                self.send(200, _found(cluster, self.command, self.path, body))
            except ApiError as error:
                status = error.status or 500
                self.send(status, {"kind": "Status", "code": status, "message": error.detail})

        def send(self, status: int, document: Any, headers: Mapping[str, str] | None = None) -> None:
            content = json.dumps(document).encode()
            self.send_response_only(status)
            for name, value in {"Date": DATE, "Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _found(cluster: Ward, method: str, target: str, body: bytes) -> Any:
    url = urlsplit(target)
    if url.path == "/version":
        return VERSION
    resource, namespace, name = _meant(url.path)
    if method == "POST":
        return cluster.create(resource, json.loads(body), namespace=namespace, timeout=1)
    if name:
        return cluster.get(resource, name, namespace=namespace, timeout=1)
    query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
    listing = cluster.list(
        resource,
        namespace=namespace,
        labels=_pairs(query.get("labelSelector", "")),
        fields=_pairs(query.get("fieldSelector", "")),
        timeout=1,
    )
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    metadata = {"resourceVersion": listing.resource_version}
    return {"kind": f"{resource.kind}List", "apiVersion": version, "metadata": metadata, "items": listing.items}


def _meant(path: str) -> tuple[Resource, str, str]:
    words = path.strip("/").split("/")
    group, words = ("", words[2:]) if words[0] == "api" else (words[1], words[3:])
    namespace = ""
    if words[0] == "namespaces" and len(words) > 2:
        namespace, words = words[1], words[2:]
    resource = next(kind for kind in KINDS if (kind.group, kind.plural) == (group, words[0]))
    return resource, namespace, words[1] if len(words) > 1 else ""


def _pairs(selector: str) -> dict[str, str]:
    """A selector's parts; a key alone asks for any value."""
    parts = (part.partition("=") for part in selector.split(",") if part)
    return {key: value if equals else "*" for key, equals, value in parts}


def kubeconfig(path: Path, url: str, **user: str) -> Path:
    """A kubeconfig for this server, whose namespace is that of the tests' world."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))
    return path
