from __future__ import annotations

import selectors
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from running_server import Authority

from webhook.serving.connections import Connection, Register
from webhook.serving.limits import Limits, Phase
from webhook.serving.tls import load_pair

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Moody(ssl.SSLSocket):
    """A TLS socket that first fails with the errors it is given, whatever it is asked."""

    moods: list[type[ssl.SSLError]]

    def _mood(self) -> None:
        if self.moods:
            raise self.moods.pop(0)

    def do_handshake(self, *arguments: Any) -> None:
        self._mood()

    def recv(self, *arguments: Any) -> bytes:
        self._mood()
        return b""

    def send(self, data: Any, *arguments: Any) -> int:
        self._mood()
        return len(data)


@pytest.fixture
def moody(tmp_path: Path) -> Iterator[tuple[Connection, list[type[ssl.SSLError]]]]:
    context = load_pair(*Authority().issue(tmp_path)).context
    context.sslsocket_class = Moody
    ours, theirs = socket.socketpair()
    with closing(theirs):
        sock = context.wrap_socket(ours, server_side=True, do_handshake_on_connect=False)
        assert isinstance(sock, Moody)
        sock.moods = []
        with closing(sock):
            yield Connection(sock, ("", 0), ("", 0)), sock.moods


@pytest.mark.parametrize("step", ["shake_hands", "receive", "send"])
def test_each_step_says_what_tls_waits_for(moody: tuple[Connection, list[type[ssl.SSLError]]], step: str) -> None:
    connection, moods = moody
    connection.unsent = b"answer"
    moods += [ssl.SSLWantReadError, ssl.SSLWantWriteError]
    take = getattr(connection, step)
    assert [take(), take(), take()] == [READ, WRITE, 0]


class Endless(socket.socket):
    """A socket on which there is always more."""

    def recv(self, *_arguments: Any) -> bytes:
        return b"x"


def test_a_sender_without_end_leaves_the_others_their_turn() -> None:
    with closing(Endless()) as sock:
        connection = Connection(sock, ("", 0), ("", 0))
        assert connection.receive() == READ
        assert connection.held == 16


def connections(count: int) -> list[Connection]:
    return [Connection(socket.socket(), ("", number), ("", 0)) for number in range(count)]


@pytest.fixture
def three() -> Iterator[list[Connection]]:
    made = connections(3)
    yield made
    for connection in made:
        connection.sock.close()


def test_the_one_that_has_been_in_a_phase_longest_comes_first(three: list[Connection]) -> None:
    register = Register()
    for moment, connection in enumerate(three):
        register.enter(connection, Phase.IDLE, moment)
    register.enter(three[0], Phase.IDLE, 3)
    assert register.oldest(Phase.IDLE) is three[1]
    assert register.oldest(Phase.BODY) is None
    assert len(register) == 3


def test_only_those_whose_time_is_over_are_overdue(three: list[Connection]) -> None:
    register, limits = Register(), Limits(head=5, body=10)
    register.enter(three[0], Phase.HEAD, 100)
    register.enter(three[1], Phase.HEAD, 101)
    register.enter(three[2], Phase.BODY, 100)
    assert list(register.overdue(limits, 104.9)) == []
    assert list(register.overdue(limits, 105)) == [three[0]]
    assert list(register.overdue(limits, 110)) == three


def test_a_running_request_is_never_overdue_and_never_goes_first(three: list[Connection]) -> None:
    register = Register()
    for connection in three:
        register.enter(connection, Phase.RUNNING, 0)
    assert list(register.overdue(Limits(), 1e9)) == []
    assert register.first_to_go(1) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Phase.LINGERING, Phase.IDLE),
        (Phase.IDLE, Phase.HEAD),
        (Phase.HEAD, Phase.BODY),
        (Phase.BODY, Phase.OPENING),
    ],
)
def test_whoever_is_missed_least_goes_first(three: list[Connection], first: Phase, second: Phase) -> None:
    register = Register()
    register.enter(three[0], second, 0)
    register.enter(three[1], first, 1)
    assert register.first_to_go(100) is three[1]


def test_beginners_go_first_once_they_are_half_of_all(three: list[Connection]) -> None:
    register = Register()
    register.enter(three[0], Phase.IDLE, 0)
    register.enter(three[1], Phase.OPENING, 1)
    assert register.first_to_go(3) is three[0]
    assert register.first_to_go(2) is three[1]
