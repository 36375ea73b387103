"""What a client of the server may hold, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from webhook.app import BODY_LIMIT


class Phase(Enum):
    """What a connection is doing."""

    OPENING = "TLS handshake; on plain HTTP: before the first byte"
    IDLE = "between requests"
    HEAD = "request line and headers are coming"
    BODY = "the body is coming"
    RUNNING = "a whole request is with a thread, or waits for one"
    ANSWERING = "the client has not taken the whole answer yet"
    LINGERING = "answered for the last time; the client closes first"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what clients may hold; times in seconds."""

    opening: float = 5.0
    """For the TLS handshake. A healthy one takes milliseconds, and a silent client must be gone within seconds."""

    idle: float = 120.0
    """Between requests: longer than the 90 s after which the API server drops an idle connection itself, so that
    it never sends a review into a connection that we are closing."""

    head: float = 5.0
    """From a request's first byte to the end of its headers."""

    body: float = 10.0
    """From there to the end of the body: 3 MiB at 300 KiB/s, and the API server's default time-out."""

    answer: float = 10.0
    """For the client to take an answer."""

    linger: float = 2.0
    """For the client to close after the last answer, and for idle connections once we are stopping."""

    finish: float = 30.0
    """For running requests once we are stopping: the longest time-out an API server may give a webhook."""

    connections: int = 1000
    """Open connections. Above it the oldest that does nothing goes; an API server keeps 25 idle ones."""

    head_bytes: int = 32 * 1024
    """Request line and headers; the API server sends a few hundred bytes."""

    body_bytes: int = BODY_LIMIT
    """A body, before it is read; the application counts once more what comes without a length."""

    held_bytes: int = 64 * 1024 * 1024
    """Bytes of all requests together, received or running, so that slow senders cannot eat the memory."""

    def of(self, phase: Phase) -> float | None:
        """Seconds that a connection may stay in the phase; None: as long as it takes."""
        return {
            Phase.OPENING: self.opening,
            Phase.IDLE: self.idle,
            Phase.HEAD: self.head,
            Phase.BODY: self.body,
            Phase.ANSWERING: self.answer,
            Phase.LINGERING: self.linger,
        }.get(phase)
