"""One address of the server: its listeners and the connections that came in there, moved on by a selector.

Everything here runs in the event loop's thread and never waits. Complete requests go out through `run`; `finish`
takes the connection back with its answer.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ, BaseSelector
from time import monotonic
from typing import Any, Final

from webhook.serving.acceptor import Acceptor
from webhook.serving.connections import Connection, Register
from webhook.serving.incoming import CONTINUE, Incoming, Refusal, take_head
from webhook.serving.limits import Limits, Phase

_LOG = logging.getLogger(__name__)

_READING: Final = frozenset({Phase.OPENING, Phase.IDLE, Phase.HEAD, Phase.BODY})

Run = Callable[["Frontend", Connection, Incoming], None]


class Frontend:
    """Accepts connections, receives whole requests, sends whole answers.

    `context` gives the TLS context for a new connection, None for plain HTTP; `gunicorn` is its configuration.
    """

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        selector: BaseSelector,
        limits: Limits,
        run: Run,
        context: Callable[[], ssl.SSLContext] | None,
        gunicorn: Any,
    ) -> None:
        self._selector = selector
        self._limits = limits
        self._run_request = run
        self._context = context
        self._gunicorn = gunicorn
        self._register = Register()
        self._held = 0
        self._acceptor = Acceptor(listeners, selector, self._may_accept, self._make_room, self._welcome)

    @property
    def busy(self) -> bool:
        """Whether a connection is open."""
        return len(self._register) > 0

    def stop_accepting(self) -> None:
        """Take the connections that wait to be accepted, and no more; idle ones go soon."""
        self._acceptor.stop()
        self._limits = replace(self._limits, idle=self._limits.linger)

    def cut_overdue(self) -> None:
        """Close the connections whose time in their phase is over."""
        for connection in self._register.overdue(self._limits, monotonic()):
            _LOG.debug("%s: cut off, too long in %s", connection.client, connection.phase.name)
            self._drop(connection)

    def finish(self, connection: Connection) -> None:
        """Go on with a connection whose request has run; it has the answer in `unsent`."""
        connection.running_bytes = 0
        self._count(connection)
        self._guarded(self._send, connection)

    def close(self) -> None:
        """Close everything, at once."""
        self._acceptor.close()
        for connection in self._register:
            self._drop(connection)

    # --- new connections

    @property
    def _is_full(self) -> bool:
        return len(self._register) >= self._limits.connections

    def _may_accept(self) -> bool:
        return not self._is_full or self._register.first_to_go(self._limits.connections) is not None

    def _make_room(self) -> bool:
        """Close the connection that is missed least, if there is one."""
        if connection := self._register.first_to_go(self._limits.connections):
            self._drop(connection)
        return connection is not None

    def _welcome(self, sock: socket.socket, client: tuple[str, int], server: tuple[str, int]) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context().wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            _LOG.debug("%s: gone before the handshake: %s", client, error)
            sock.close()
            return
        if self._is_full:
            self._make_room()
        connection = Connection(sock, client, server)
        self._enter(connection, Phase.OPENING)
        self._watch(connection, EVENT_READ)

    # --- events

    def _ready(self, connection: Connection) -> None:
        if connection.events:  # else it was closed earlier in this turn
            self._guarded(self._step, connection)

    def _guarded(self, step: Callable[..., None], connection: Connection, *arguments: object) -> None:
        """Take a step; a connection that turns out to be of no use any more is closed."""
        try:
            step(connection, *arguments)
        except OSError as error:
            # Probes that only connect, clients that went away, handshakes that fail: daily business.
            _LOG.debug("%s: closed in %s: %s", connection.client, connection.phase.name, error)
            self._drop(connection)

    def _step(self, connection: Connection) -> None:
        if connection.phase is Phase.ANSWERING:
            self._send(connection)
        elif connection.phase is Phase.LINGERING:
            self._watch(connection, connection.discard() or EVENT_READ)
            if connection.ended:
                self._drop(connection)
        elif connection.phase is Phase.OPENING and self._context is not None:
            self._shake_hands(connection)
        else:
            self._read(connection)

    def _shake_hands(self, connection: Connection) -> None:
        events = connection.shake_hands()
        self._watch(connection, events or EVENT_READ)
        if not events:
            self._enter(connection, Phase.IDLE)
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        self._watch(connection, connection.receive() or EVENT_READ)
        self._advance(connection)
        self._count(connection)
        self._shed()

    def _advance(self, connection: Connection) -> None:
        """Do what the bytes that have been received allow."""
        if connection.received and connection.phase in (Phase.OPENING, Phase.IDLE):
            self._enter(connection, Phase.HEAD)
            connection.received_at = connection.since
        if connection.phase is Phase.HEAD:
            self._take_head(connection)
        if connection.phase is Phase.BODY and connection.complete:
            self._run(connection)
        if connection.ended and connection.phase in _READING:
            self._drop(connection)

    def _take_head(self, connection: Connection) -> None:
        try:
            incoming = take_head(connection.received, connection.client, self._limits, self._gunicorn)
        except Refusal as refusal:
            self._refuse(connection, refusal)
            return
        if incoming is None:
            return
        connection.incoming = incoming
        self._enter(connection, Phase.BODY)
        if incoming.wants_continue and not connection.complete:
            connection.unsent = CONTINUE
            if connection.send():
                raise BlockingIOError("the client does not even take 25 bytes")

    def _run(self, connection: Connection) -> None:
        incoming, connection.incoming = connection.incoming, None
        assert incoming is not None  # noqa: S101 - a complete connection has it
        incoming.complete(bytes(connection.received[: incoming.length]))
        del connection.received[: incoming.length]
        connection.running_bytes = incoming.length
        self._watch(connection, 0)
        self._enter(connection, Phase.RUNNING)
        self._run_request(self, connection, incoming)

    def _send(self, connection: Connection) -> None:
        events = connection.send()
        if events:
            if connection.phase is not Phase.ANSWERING:
                self._enter(connection, Phase.ANSWERING)
            self._watch(connection, events)
        elif connection.ended:
            self._drop(connection)
        elif connection.keep:
            self._enter(connection, Phase.IDLE)
            self._watch(connection, EVENT_READ)
            self._advance(connection)
        else:
            connection.half_close()
            self._enter(connection, Phase.LINGERING)
            self._watch(connection, EVENT_READ)

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        connection.received.clear()
        connection.incoming = None
        connection.unsent = refusal.answer()
        connection.keep = False
        self._count(connection)
        self._send(connection)

    # --- books

    def _shed(self) -> None:
        """Refuse the requests that have been coming longest until what is held is within its limit."""
        while self._held > self._limits.held_bytes and (slowest := self._register.oldest(Phase.BODY)):
            refusal = Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many bytes of requests are waiting")
            self._guarded(self._refuse, slowest, refusal)

    def _count(self, connection: Connection) -> None:
        self._held += connection.held - connection.counted
        connection.counted = connection.held

    def _enter(self, connection: Connection, phase: Phase) -> None:
        self._register.enter(connection, phase, monotonic())

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.events:
            return
        if not events:
            self._selector.unregister(connection.sock)
        elif connection.events:
            self._selector.modify(connection.sock, events, partial(self._ready, connection))
        else:
            self._selector.register(connection.sock, events, partial(self._ready, connection))
        connection.events = events

    def _drop(self, connection: Connection) -> None:
        self._watch(connection, 0)
        self._register.leave(connection)
        connection.received.clear()
        connection.running_bytes = 0
        self._count(connection)
        connection.sock.close()
        self._acceptor.resume()
