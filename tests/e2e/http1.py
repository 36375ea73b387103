"""As much of HTTP/1.1 as a proxy needs that passes messages on byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

LONGEST_HEAD = 1 << 20
_PIECE = 1 << 16


@dataclass(frozen=True)
class Head:
    """The start line and the headers of a message."""

    start_line: str
    headers: tuple[tuple[str, str], ...]

    @property
    def method(self) -> str:
        """Of a request."""
        return self.start_line.split(" ")[0]

    @property
    def target(self) -> str:
        """Of a request: path and query."""
        return self.start_line.split(" ")[1]

    @property
    def status(self) -> int:
        """Of a response."""
        return int(self.start_line.split(" ")[1])

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def with_header(self, name: str, value: str) -> Head:
        """The same head with another value of a header that it has."""
        changed = ((key, value if key.lower() == name.lower() else old) for key, old in self.headers)
        return replace(self, headers=tuple(changed))

    def __bytes__(self) -> bytes:
        lines = [self.start_line, *(f"{key}: {value}" for key, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read the next head; None when the other side has closed between two messages."""
    try:
        block = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    start_line, *lines = block.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(start_line, tuple((key, value.strip()) for key, _, value in pairs))


async def request_body(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """The raw pieces of a request's body, which is there only if the head says so."""
    if _chunked(head):
        async for piece in _chunks(reader):
            yield piece
    else:
        yield await reader.readexactly(int(head.header("Content-Length") or 0))


async def response_body(reader: asyncio.StreamReader, head: Head, method: str) -> AsyncIterator[bytes]:
    """The raw pieces of a response's body as they come, so that a watch passes event by event."""
    if method == "HEAD" or head.status in (204, 304):
        return
    length = head.header("Content-Length")
    if _chunked(head):
        async for piece in _chunks(reader):
            yield piece
    elif length is not None:
        yield await reader.readexactly(int(length))
    else:
        while piece := await reader.read(_PIECE):
            yield piece


def ends_connection(head: Head) -> bool:
    """Whether no further message follows on the connection of this response."""
    framed = _chunked(head) or head.header("Content-Length") is not None or head.status in (204, 304)
    return not framed or (head.header("Connection") or "").lower() == "close"


def _chunked(head: Head) -> bool:
    return (head.header("Transfer-Encoding") or "").lower() == "chunked"


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        size_line = await reader.readuntil(b"\r\n")
        size = int(size_line.split(b";")[0], 16)
        if size:
            yield size_line + await reader.readexactly(size + 2)
            continue
        yield size_line
        # Trailers, if any, up to and including the empty line.
        line = b""
        while line != b"\r\n":
            line = await reader.readuntil(b"\r\n")
            yield line
        return
