"""Accepting connections from a server's listeners while there is room for more."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable
from functools import partial
from selectors import EVENT_READ, BaseSelector
from typing import Any, Final

# Before the connections that are open already have their turn.
_ACCEPTS_PER_TURN: Final = 64
# The process or the machine has no file descriptor or memory for one more connection.
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Welcome = Callable[[socket.socket, Any, Any], None]


class Acceptor:
    """Listeners that a selector watches, except while there is no room: then clients wait in the kernel's queue.

    `may_accept` says whether there is room for one more connection, or could be; `make_room` closes one if it can,
    and says so. `welcome` gets the socket, the client's address and the listener's.
    """

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        selector: BaseSelector,
        may_accept: Callable[[], bool],
        make_room: Callable[[], bool],
        welcome: Welcome,
    ) -> None:
        self._listeners = list(listeners)
        self._selector = selector
        self._may_accept = may_accept
        self._make_room = make_room
        self._welcome = welcome
        self._watching = False
        self.resume()

    def resume(self) -> None:
        """A connection has been closed: there is room again."""
        if self._watching:
            return
        for listener in self._listeners:
            self._selector.register(listener, EVENT_READ, partial(self._accept, listener))
        self._watching = True

    def stop(self) -> None:
        """Accept the connections that wait, then close the listeners: whoever has been let in gets an answer."""
        for listener in self._listeners:
            while self._accept(listener):
                pass
        self.close()

    def close(self) -> None:
        """Close the listeners."""
        self._pause()
        for listener in self._listeners:
            listener.close()
        self._listeners = []

    def _pause(self) -> None:
        if self._watching:
            for listener in self._listeners:
                self._selector.unregister(listener)
        self._watching = False

    def _accept(self, listener: socket.socket) -> bool:
        """Accept connections, up to a share; whether there may be more of them."""
        for _ in range(_ACCEPTS_PER_TURN):
            if not self._may_accept():
                self._pause()
                return False
            try:
                sock, client = listener.accept()
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    continue  # the client has gone again
                if not self._make_room():
                    self._pause()
                return False
            self._welcome(sock, client, listener.getsockname())
        return True
