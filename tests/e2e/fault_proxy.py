"""A proxy with TLS on both sides that stands between the webhook and the API server and misbehaves by rule.

Every connection of a client has one connection to the API server behind it, and when one of the two ends so
does the other: without a rule a client cannot tell the proxy from the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from urllib.parse import urlsplit

import trustme

from e2e import http1
from e2e.faults import (
    Answer,
    Call,
    CountedRules,
    Delay,
    DelayAnswer,
    DropAnswer,
    Reset,
    Rule,
    ShiftDate,
    Stall,
)
from e2e.processes import free_port
from e2e.serving_thread import ServingThread
from e2e.waiting import wait_until


@dataclass
class _Connection:
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def abort(self) -> None:
        for _, writer in filter(None, (self.client, self.upstream)):
            writer.transport.abort()


class FaultProxy(ServingThread):
    """The proxy, for the length of a `with` block."""

    def __init__(self, upstream: str, ca: trustme.CA, *rules: Rule) -> None:
        super().__init__("fault proxy")
        self._upstream = urlsplit(upstream)
        self._ca = ca
        self._lock = threading.Lock()
        self._rules = CountedRules(rules)
        self._calls: list[Call] = []
        self._port = free_port()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in the order of arrival."""
        with self._lock:
            return list(self._calls)

    def seen(self, method: str, path: str = "") -> list[Call]:
        """The calls of one method whose path (and query) the regular expression is found in."""
        return [call for call in self.calls if call.method == method and re.search(path, call.target)]

    def forget(self) -> None:
        """Forget the calls so far."""
        with self._lock:
            self._calls.clear()

    def wait_for_answered(self, method: str, path: str = "", *, count: int = 1, timeout: float = 30) -> list[Call]:
        """Wait until the API server (or a rule) has answered so many of these calls, and return them."""

        def answered() -> list[Call]:
            calls = [call for call in self.seen(method, path) if call.status is not None]
            return calls if len(calls) >= count else []

        return wait_until(answered, f"{count} answered {method} {path}", timeout)

    def set_rules(self, *rules: Rule) -> None:
        """Replace all rules from the next call on and count anew. Calls under way keep their faults."""
        with self._lock:
            self._rules = CountedRules(rules)

    async def opened(self) -> asyncio.Server:
        """Listen with TLS, by the same authority as the API server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        self._client_context = ssl.create_default_context()
        self._ca.configure_trust(self._client_context)
        return await asyncio.start_server(
            lambda reader, writer: self.spawn(self._handle(_Connection((reader, writer)))),
            "127.0.0.1",
            self._port,
            ssl=context,
            limit=http1.LONGEST_HEAD,
        )

    async def _handle(self, connection: _Connection) -> None:
        try:
            # A side that went away, at whatever point, is ordinary here: the other side goes too.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._exchange(connection):
                    pass
        finally:
            connection.abort()

    async def _exchange(self, connection: _Connection) -> bool:
        """One call and its answer; whether the connection can go on."""
        reader, writer = connection.client
        request = await _next_request(connection)
        if request is None:
            return False
        body = b"".join([piece async for piece in http1.request_body(reader, request)])
        call = self._arrived(request, body)
        for fault in call.faults:
            match fault:
                case Delay(seconds):
                    await asyncio.sleep(seconds)
                case Stall():
                    await reader.read()
                    return False
                case Reset():
                    _reset(writer)
                    return False
                case Answer(status):
                    call.status = status
                    writer.write(_answer(fault))
                    await writer.drain()
                    return True
        return await self._forward(connection, request, call)

    def _arrived(self, request: http1.Head, body: bytes) -> Call:
        call = Call(request.method, request.target, body)
        with self._lock:
            call.faults = tuple(self._rules.faults(request.method, request.target))
            self._calls.append(call)
        return call

    async def _forward(self, connection: _Connection, request: http1.Head, call: Call) -> bool:
        if connection.upstream is None:
            connection.upstream = await asyncio.open_connection(
                self._upstream.hostname,
                self._upstream.port,
                ssl=self._client_context,
                limit=http1.LONGEST_HEAD,
            )
        from_upstream, to_upstream = connection.upstream
        began = time.monotonic()
        to_upstream.write(bytes(request) + call.body)
        await to_upstream.drain()
        response = await http1.read_head(from_upstream)
        if response is None:
            return False
        call.status, call.seconds = response.status, time.monotonic() - began
        reader, writer = connection.client
        for fault in call.faults:
            match fault:
                case DelayAnswer(seconds):
                    await asyncio.sleep(seconds)
                case ShiftDate(seconds):
                    response = _shifted(response, seconds)
                case DropAnswer(stall):
                    if stall:
                        await reader.read()
                    _reset(writer)
                    return False
        writer.write(bytes(response))
        async for piece in http1.response_body(from_upstream, response, request.method):
            writer.write(piece)
            await writer.drain()
        return not http1.ends_connection(response)


async def _next_request(connection: _Connection) -> http1.Head | None:
    """The client's next head; None if either side closes first: an idle client learns of a dead server."""
    head = asyncio.ensure_future(http1.read_head(connection.client[0]))
    # Between two calls the server has nothing to say: only its end can be read.
    end = asyncio.ensure_future(connection.upstream[0].read(1)) if connection.upstream else None
    try:
        await asyncio.wait({head, end} if end else {head}, return_when=asyncio.FIRST_COMPLETED)
        return head.result() if head.done() else None
    finally:
        for task in filter(None, (head, end)):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    # Without lingering a close is sent as RST, and what is still to be sent is thrown away.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _shifted(response: http1.Head, seconds: float) -> http1.Head:
    date = response.header("Date")
    if date is None:
        return response
    moved = parsedate_to_datetime(date) + timedelta(seconds=seconds)
    return response.with_header("Date", format_datetime(moved, usegmt=True))


def _answer(fault: Answer) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "answered by the fault proxy",
        "reason": fault.reason,
        "code": fault.status,
    }
    body = json.dumps(status).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    if fault.retry_after is not None:
        headers.append(("Retry-After", str(fault.retry_after)))
    return bytes(http1.Head(f"HTTP/1.1 {fault.status} Injected", tuple(headers))) + body
