from __future__ import annotations

import errno
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from webhook.serving.acceptor import Acceptor
from webhook.serving.listeners import open_listeners


class Listener(socket.socket):
    """A listener whose `accept` fails first with the errors it is given."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            raise OSError(self.failures.pop(0), "accept failed")
        return super().accept()


class Bench:
    def __init__(self, stack: ExitStack, *failures: int, closable: int = 0) -> None:
        self._stack = stack
        (opened,) = open_listeners("127.0.0.1:0", "--bind")
        listener = Listener(fileno=opened.detach())
        listener.failures = list(failures)
        self._address = listener.getsockname()
        self.selector = stack.enter_context(selectors.DefaultSelector())
        self.welcomed = 0
        self.closable = closable
        self.room = True
        self.acceptor = Acceptor([listener], self.selector, lambda: self.room, self._make_room, self._welcome)
        stack.callback(self.acceptor.close)

    def _make_room(self) -> bool:
        self.closable -= 1
        return self.closable >= 0

    def _welcome(self, sock: socket.socket, _client: object, _server: object) -> None:
        sock.close()
        self.welcomed += 1

    def connect(self) -> None:
        self._stack.enter_context(socket.create_connection(self._address, timeout=30))

    def turn(self) -> None:
        for key, _events in self.selector.select(0.2):
            key.data()

    @property
    def watching(self) -> bool:
        return len(self.selector.get_map()) > 0


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_client_that_is_gone_before_it_is_accepted_harms_nobody(stack: ExitStack) -> None:
    bench = Bench(stack, errno.ECONNABORTED, errno.EPROTO)
    bench.connect()
    bench.turn()
    assert bench.welcomed == 1


def test_without_file_descriptors_a_connection_is_closed_for_the_next_turn(stack: ExitStack) -> None:
    bench = Bench(stack, errno.EMFILE, closable=1)
    bench.connect()
    bench.turn()
    assert (bench.welcomed, bench.closable, bench.watching) == (0, 0, True)
    bench.turn()
    assert bench.welcomed == 1


def test_without_file_descriptors_or_connections_to_close_it_waits_until_one_closes(stack: ExitStack) -> None:
    bench = Bench(stack, errno.ENFILE)
    bench.connect()
    bench.turn()
    assert not bench.watching
    bench.acceptor.resume()
    bench.turn()
    assert bench.welcomed == 1


def test_without_room_clients_wait_until_a_connection_closes(stack: ExitStack) -> None:
    bench = Bench(stack)
    bench.room = False
    bench.connect()
    bench.turn()
    assert (bench.welcomed, bench.watching) == (0, False)
    bench.room = True
    bench.acceptor.resume()
    bench.turn()
    assert bench.welcomed == 1


def test_a_large_crowd_is_let_in_over_several_turns(stack: ExitStack) -> None:
    bench = Bench(stack)
    for _ in range(70):
        bench.connect()
    bench.turn()
    assert bench.welcomed == 64
    bench.turn()
    assert bench.welcomed == 70


def test_stopping_lets_in_all_who_wait(stack: ExitStack) -> None:
    bench = Bench(stack)
    for _ in range(70):
        bench.connect()
    bench.acceptor.stop()
    assert bench.welcomed == 70
    with pytest.raises(ConnectionRefusedError):
        bench.connect()
