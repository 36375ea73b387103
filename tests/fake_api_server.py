"""An HTTP server on loopback that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

DATE = "Tue, 15 Sep 2026 10:20:30 GMT"
DATE_SECONDS = 1789467630


@dataclass(frozen=True)
class Reply:
    """One answer; `cut` closes the connection after so many bytes of the body, which its length promises."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Date": DATE})
    cut: int | None = None


RESET = "reset"
STALL = "stall"
END = "end"


@dataclass(frozen=True)
class Stream:
    """A chunked answer; `then` says how it goes on after its parts: END, RESET or STALL."""

    parts: tuple[bytes, ...]
    then: str = END


def watch_line(event_type: str, manifest: object) -> bytes:
    """One event as an API server writes it."""
    return json.dumps({"type": event_type, "object": manifest}).encode() + b"\n"


def json_reply(manifest: object, status: int = 200, **headers: str) -> Reply:
    """An answer that holds JSON; underscores of header names are hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(manifest).encode(), {"Date": DATE} | named)


def status_reply(status: int, message: str = "told so", **headers: str) -> Reply:
    """A refusal as an API server words it."""
    return json_reply({"kind": "Status", "code": status, "message": message}, status, **headers)


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; `connection` tells connections apart."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: object

    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)


class FakeApiServer:
    """Answers in the order of `replies`, the last one for ever; `asked` holds what came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: deque[Reply | Stream | str] = deque([Reply()])
        self.asked: list[Asked] = []
        self.released = Event()

    def answer_with(self, *replies: Reply | Stream | str) -> None:
        """Set the answers to come."""
        self.replies = deque(replies)

    def next_reply(self) -> Reply | Stream | str:
        """The answer whose turn it is."""
        return self.replies.popleft() if len(self.replies) > 1 else self.replies[0]


@contextmanager
def fake_api_server(context: ssl.SSLContext | None = None) -> Iterator[FakeApiServer]:
    """A running server, over TLS where a context is given."""
    server = _Server(("127.0.0.1", 0), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    server.fake = FakeApiServer(f"{scheme}://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.fake
    finally:
        server.fake.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    fake: FakeApiServer
    # Threads of kept-alive connections end with their clients, which the tests close.
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the output is the tests'."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        fake = self.server.fake
        fake.asked.append(Asked(self.command, self.path, dict(self.headers), body, self.connection))
        reply = fake.next_reply()
        if isinstance(reply, Reply):
            self.send(reply)
        elif isinstance(reply, Stream):
            self.stream(reply)
        else:
            self.break_off(reply)

    def break_off(self, how: str) -> None:
        self.close_connection = True
        if how == STALL:
            self.server.fake.released.wait(30)
        else:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def stream(self, reply: Stream) -> None:
        self.send_response_only(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in filter(None, reply.parts):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if reply.then == END:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.break_off(reply.then)

    def send(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut])
        self.close_connection = reply.cut is not None

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer
