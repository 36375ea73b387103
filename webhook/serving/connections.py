"""Connections of the server: sockets that never block, the phase each is in, and how long it may stay there.

    OPENING ──► IDLE ──► HEAD ──► BODY ──► RUNNING ──► ANSWERING ──► IDLE (kept alive) or LINGERING ──► closed

Only RUNNING occupies a thread. In every other phase a client that stalls costs a socket and the bytes it has
sent, until the phase's time is over.
"""

from __future__ import annotations

import socket
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from selectors import EVENT_READ, EVENT_WRITE
from typing import Final

from webhook.serving.incoming import Incoming
from webhook.serving.limits import Limits, Phase

# One TLS record holds at most 16 KiB, so a read this large never leaves half of one inside OpenSSL, where the
# selector would not see it.
_PART: Final = 64 * 1024
# Reads of one connection before the others have their turn.
_READS_PER_TURN: Final = 16


@dataclass(eq=False, slots=True)
class Connection:
    """One client's socket with what has been received and what has still to be sent.

    The methods never block. Those that return events say what to wait for before calling again, 0 meaning done.
    They raise `OSError` (of which `ssl.SSLError` is one) when the connection is of no use any more.
    """

    sock: socket.socket
    client: tuple[str, int]
    server: tuple[str, int]

    since: float = 0.0
    """Monotonic time at which the phase was entered."""

    phase: Phase = Phase.OPENING
    events: int = 0
    """What the selector watches; 0: not registered."""

    received: bytearray = field(default_factory=bytearray)
    received_at: float = 0.0
    """Monotonic time of the first byte of the request that is coming or running."""

    incoming: Incoming | None = None
    """The request, from the end of its head until it runs."""

    running_bytes: int = 0
    """Size of the body that is with a thread."""

    counted: int = 0
    """What of `held` the server has added up."""

    unsent: bytes | memoryview = b""
    keep: bool = True
    """Whether the connection lives on after this answer."""

    ended: bool = False
    """The client sends no more."""

    @property
    def complete(self) -> bool:
        """Whether the whole body is here."""
        return self.incoming is not None and len(self.received) >= self.incoming.length

    @property
    def held(self) -> int:
        """Bytes of requests that this connection keeps in memory."""
        return len(self.received) + self.running_bytes

    def shake_hands(self) -> int:
        """Go on with the TLS handshake."""
        assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - the caller has wrapped it
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            return EVENT_READ
        except ssl.SSLWantWriteError:
            return EVENT_WRITE
        return 0

    def receive(self) -> int:
        """Take what has come, up to a share that leaves others their turn."""
        for _ in range(_READS_PER_TURN):
            try:
                part = self.sock.recv(_PART)
            except (BlockingIOError, ssl.SSLWantReadError):
                return EVENT_READ
            except ssl.SSLWantWriteError:
                return EVENT_WRITE
            if not part:
                self.ended = True
                return 0
            self.received += part
        return EVENT_READ

    def send(self) -> int:
        """Send what is left of the answer."""
        while self.unsent:
            try:
                sent = self.sock.send(self.unsent)
            except (BlockingIOError, ssl.SSLWantWriteError):
                return EVENT_WRITE
            except ssl.SSLWantReadError:
                return EVENT_READ
            self.unsent = memoryview(self.unsent)[sent:]
        return 0

    def discard(self) -> int:
        """Read and forget, so that closing does not reset the connection before the answer has arrived."""
        events = self.receive()
        self.received.clear()
        return events

    def half_close(self) -> None:
        """Tell the client that nothing more comes, while what it still sends is read."""
        self.sock.shutdown(socket.SHUT_WR)


class Register:
    """All open connections by phase, in each phase the one that has been there longest first."""

    def __init__(self) -> None:
        self._phases: dict[Phase, OrderedDict[Connection, None]] = {phase: OrderedDict() for phase in Phase}

    def __len__(self) -> int:
        return sum(map(len, self._phases.values()))

    def __iter__(self) -> Iterator[Connection]:
        for connections in self._phases.values():
            yield from list(connections)

    def enter(self, connection: Connection, phase: Phase, now: float) -> None:
        """Note that the connection is in the phase from `now` (monotonic seconds) on."""
        self.leave(connection)
        connection.phase, connection.since = phase, now
        self._phases[phase][connection] = None

    def leave(self, connection: Connection) -> None:
        """Forget the connection; harmless if it is unknown."""
        self._phases[connection.phase].pop(connection, None)

    def oldest(self, phase: Phase) -> Connection | None:
        """The connection that has been in the phase longest."""
        return next(iter(self._phases[phase]), None)

    def overdue(self, limits: Limits, now: float) -> Iterator[Connection]:
        """The connections whose time in their phase is over."""
        for phase, connections in self._phases.items():
            seconds = limits.of(phase)
            if seconds is None:
                continue
            for connection in list(connections):
                if now - connection.since < seconds:
                    break
                yield connection

    def first_to_go(self, most: int) -> Connection | None:
        """Whom to close when one more wants in: never one whose request is running or being answered.

        Idle ones before those that are sending. Beginners come first once they are half of the `most`
        connections, so that a flood of silent ones cannot push out the API server's idle connections.
        """
        order = [Phase.LINGERING, Phase.IDLE, Phase.HEAD, Phase.BODY, Phase.OPENING]
        if len(self._phases[Phase.OPENING]) * 2 >= most:
            order.insert(0, Phase.OPENING)
        found = (self.oldest(phase) for phase in order)
        return next((connection for connection in found if connection is not None), None)
