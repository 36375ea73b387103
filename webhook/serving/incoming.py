"""One HTTP request, put together before a thread sees it, and its answer, collected before it is sent.

The head is parsed by gunicorn as soon as it is complete; the body is handed over when all of it is there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ENOTCONN
from http import HTTPStatus
from typing import Any, Final
from wsgiref.types import WSGIApplication

from gunicorn.http.body import LengthReader  # type: ignore[import-untyped]
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]

from webhook.serving.limits import Limits

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LINE_END: Final = b"\r\n"
_HEAD_END: Final = b"\r\n\r\n"
# By name, since not every version of gunicorn has all of them.
_STATUS_OF: Final = {
    "LimitRequestLine": HTTPStatus.REQUEST_URI_TOO_LONG,
    "LimitRequestHeaders": HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "ExpectationFailed": HTTPStatus.EXPECTATION_FAILED,
    "UnsupportedTransferCoding": HTTPStatus.NOT_IMPLEMENTED,
}


class Refusal(Exception):
    """A request that no application sees; it is answered with `status` and the text, then the connection ends."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status

    def answer(self) -> bytes:
        """The whole answer, in JSON like every other one."""
        body = json.dumps({"error": str(self)}).encode()
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + body


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request whose head is complete: gunicorn's `message`, and how many bytes of body follow."""

    message: Any
    length: int
    wants_continue: bool
    """The client waits for "100 Continue" before it sends the body, as curl does above 1 MiB."""

    _source: deque[bytes]

    def complete(self, body: bytes) -> None:
        """Add the body, all of it."""
        self._source.append(body)


def take_head(received: bytearray, client: tuple[str, int], limits: Limits, gunicorn: Any) -> Incoming | None:
    """Take a complete head off the front of `received`; None while it is not complete.

    `gunicorn` is its configuration. Raises `Refusal`, also for a body that is too large or of unknown length.
    """
    while received.startswith(_LINE_END):  # RFC 9112 2.2: ignore empty lines before the request line
        del received[: len(_LINE_END)]
    end = received.find(_HEAD_END, 0, limits.head_bytes)
    if end < 0 and len(received) < limits.head_bytes:
        return None
    if end < 0:
        raise Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"headers of more than {limits.head_bytes} bytes")
    end += len(_HEAD_END)
    source = deque([bytes(received[:end])])
    del received[:end]
    message = _parse(source, client, gunicorn)
    length = _body_length(message, limits)
    wants_continue = message.version >= (1, 1) and ("EXPECT", "100-continue") in _lowered(message.headers)
    return Incoming(message, length, wants_continue, source)


def _parse(source: deque[bytes], client: tuple[str, int], gunicorn: Any) -> Any:
    try:
        return next(RequestParser(gunicorn, _taken_from(source), client))
    except ParseException as error:
        status = _STATUS_OF.get(type(error).__name__, HTTPStatus.BAD_REQUEST)
        raise Refusal(status, f"no valid HTTP request: {error}") from error


def _taken_from(source: deque[bytes]) -> Iterator[bytes]:
    """What gunicorn reads: the head when it parses it, the body, which has been added by then, when it runs."""
    while source:
        yield source.popleft()


def _body_length(message: Any, limits: Limits) -> int:
    reader = message.body.reader
    if not isinstance(reader, LengthReader):
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "chunked bodies are not taken; send Content-Length")
    length = int(reader.length)
    if length > limits.body_bytes:
        raise Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a body of {length} bytes; at most {limits.body_bytes} are taken",
        )
    return length


def _lowered(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value.lower()) for name, value in headers]


class Answer:
    """Stands in for the connection and its socket before gunicorn: what it "sends" is collected here.

    So a thread never waits for a client, the answer leaves in one piece, and an application that fails halfway
    has sent nothing yet.
    """

    def __init__(
        self,
        client: tuple[str, int],
        server: tuple[str, int],
        application: WSGIApplication,
        received_at: float,
    ) -> None:
        self.client = client
        self.server = server
        self.application = application
        self.received_at = received_at
        self.sock = self
        self.data = bytearray()

    def sendall(self, data: bytes) -> None:
        """Collect a part of the answer."""
        self.data += data

    def send(self, data: bytes) -> int:
        """Collect a part of the answer, except "100 Continue", which the client has long had."""
        if data != CONTINUE:
            self.data += data
        return len(data)

    def shutdown(self, _how: int) -> None:
        """What gunicorn does to a socket after a failure: there is none."""
        raise OSError(ENOTCONN, "the answer is not on a socket yet")

    def close(self) -> None:
        """There is nothing to close."""
