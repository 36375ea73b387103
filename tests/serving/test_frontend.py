from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from errno import ENOTCONN
from time import monotonic
from typing import Any

import pytest
from gunicorn.config import Config

from webhook.serving.connections import Connection
from webhook.serving.frontend import Frontend
from webhook.serving.incoming import Incoming
from webhook.serving.limits import Limits
from webhook.serving.listeners import open_listeners

GUARD = 30.0
REQUEST = b"POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Bench:
    """A frontend on a loopback port, moved on by the test; requests wait in `running` until they are answered."""

    def __init__(self, stack: ExitStack, limits: Limits, context: Any = None) -> None:
        self._stack = stack
        self._selector = stack.enter_context(selectors.DefaultSelector())
        self.running: list[tuple[Connection, bytes]] = []
        (listener,) = open_listeners("127.0.0.1:0", "--bind")
        self._address = listener.getsockname()
        self.frontend = Frontend([listener], self._selector, limits, self._run, context, Config())
        stack.callback(self.frontend.close)

    def _run(self, _frontend: Frontend, connection: Connection, incoming: Incoming) -> None:
        self.running.append((connection, incoming.message.body.read()))

    def client(self, sent: bytes = b"", *, receive_buffer: int | None = None) -> socket.socket:
        client = self._stack.enter_context(socket.socket())
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(GUARD)
        client.connect(self._address)
        client.sendall(sent)
        client.setblocking(False)
        return client

    def turn(self) -> None:
        for key, _events in self._selector.select(0.01):
            key.data()
        self.frontend.cut_overdue()

    def until(self, condition: Callable[[], object], what: str) -> None:
        guard = monotonic() + GUARD
        while not condition():
            assert monotonic() < guard, f"waited {GUARD:g} s for {what}"
            self.turn()

    def answer(self, answer: bytes = OK, *, keep: bool = True) -> None:
        connection, _body = self.running.pop(0)
        connection.unsent, connection.keep = answer, keep
        self.frontend.finish(connection)

    def read(self, client: socket.socket, until: Callable[[bytearray], object]) -> bytes:
        """What the client receives, until it is enough."""
        received = bytearray()

        def enough() -> bool:
            try:
                received.extend(client.recv(65536))
            except BlockingIOError:
                return False
            return bool(until(received))

        self.until(enough, "the client to receive enough")
        return bytes(received)

    def read_to_end(self, client: socket.socket) -> bytes:
        """What the client receives until the server closes."""
        received: list[bytes] = []

        def ended() -> bool:
            try:
                received.append(client.recv(65536))
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True
            return received[-1] == b""

        self.until(ended, "the server to close")
        return b"".join(received)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def is_cut(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def error_of(answer: bytes) -> tuple[str, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    assert b"Connection: close" in head
    return head.split(b"\r\n")[0].decode(), json.loads(body)["error"]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([REQUEST], id="at-once"),
        pytest.param([REQUEST[:10], REQUEST[10:]], id="head-in-two"),
        pytest.param([REQUEST[:-4], REQUEST[-4:]], id="cut-in-the-end-of-the-head"),
        pytest.param([REQUEST[:-1], REQUEST[-1:]], id="body-in-two"),
        pytest.param([b"\r\n", REQUEST], id="empty-line-first"),
    ],
)
def test_a_request_runs_when_all_of_it_is_there(stack: ExitStack, pieces: list[bytes]) -> None:
    bench = Bench(stack, Limits())
    client = bench.client()
    for piece in pieces:
        assert bench.running == []
        client.sendall(piece)
        bench.turn()
    bench.until(lambda: bench.running, "the request to run")
    assert [body for _, body in bench.running] == [b"{}"]


def test_requests_sent_ahead_run_one_after_the_other(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST + REQUEST.replace(b"{}", b"[]"))
    bench.until(lambda: bench.running, "the first request to run")
    assert [body for _, body in bench.running] == [b"{}"]
    bench.answer()
    bench.until(lambda: bench.running, "the second request to run")
    assert [body for _, body in bench.running] == [b"[]"]
    bench.answer(keep=False)
    assert bench.read_to_end(client) == OK + OK


def test_a_client_that_sends_no_more_still_gets_its_answer(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST)
    client.shutdown(socket.SHUT_WR)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer()
    assert bench.read_to_end(client) == OK
    assert not bench.frontend.busy


def test_a_client_that_leaves_in_the_middle_is_forgotten(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST[:-1])
    bench.until(lambda: bench.frontend.busy, "the connection to be accepted")
    client.close()
    bench.until(lambda: not bench.frontend.busy, "the connection to be forgotten")
    assert bench.running == []


def test_a_client_that_leaves_while_its_request_runs_is_forgotten_when_it_is_answered(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    client.close()
    bench.answer(b"x" * 10_000_000)
    bench.until(lambda: not bench.frontend.busy, "the connection to be forgotten")


class Gone:
    """A TLS context that finds the client gone."""

    def wrap_socket(self, *_arguments: Any, **_options: Any) -> socket.socket:
        raise OSError(ENOTCONN, "not connected")


def test_a_client_that_leaves_before_the_handshake_is_forgotten(stack: ExitStack) -> None:
    bench = Bench(stack, Limits(), Gone)
    client = bench.client()
    assert bench.read_to_end(client) == b""
    assert not bench.frontend.busy


def test_a_connection_that_makes_room_is_not_read_although_it_has_just_sent(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), connections=1))
    idle = bench.client()
    bench.until(lambda: bench.frontend.busy, "the connection to be accepted")
    bench.client()
    idle.sendall(REQUEST)
    bench.turn()
    assert is_cut(idle)
    assert bench.running == []


def test_the_last_answer_arrives_although_the_client_still_sends(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST + b"x" * 100_000)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer(keep=False)
    assert bench.read_to_end(client) == OK
    assert bench.frontend.busy  # closing now could take the answer away from the client
    client.close()
    bench.until(lambda: not bench.frontend.busy, "the connection to be closed")


def test_an_answer_that_the_client_takes_slowly_arrives_whole(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer(b"x" * 10_000_000)
    assert len(bench.read(client, lambda received: len(received) == 10_000_000)) == 10_000_000
    client.sendall(REQUEST)
    bench.until(lambda: bench.running, "the next request to run")


@pytest.mark.parametrize(
    ("phase", "sent"),
    [
        pytest.param("opening", b"", id="silent"),
        pytest.param("head", REQUEST[:10], id="half-a-head"),
        pytest.param("body", REQUEST[:-1], id="half-a-body"),
    ],
)
def test_a_client_is_cut_off_when_its_time_for_a_step_is_over(stack: ExitStack, phase: str, sent: bytes) -> None:
    bench = Bench(stack, replace(Limits(), **{phase: 0.0}))
    client = bench.client(sent)
    assert bench.read_to_end(client) == b""
    assert not bench.frontend.busy


@pytest.mark.parametrize("sent", [b"", REQUEST[:10], REQUEST[:-1]], ids=["silent", "half-a-head", "half-a-body"])
def test_other_steps_have_their_own_time(stack: ExitStack, sent: bytes) -> None:
    bench = Bench(stack, replace(Limits(), answer=0.0, linger=0.0))
    client = bench.client(sent)
    bench.until(lambda: bench.frontend.busy, "the connection to be accepted")
    for _ in range(3):
        bench.turn()
    assert not is_cut(client)


def test_an_idle_connection_goes_when_its_time_is_over(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), idle=0.0))
    client = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer()
    assert bench.read_to_end(client) == OK


def test_a_client_that_does_not_take_its_answer_is_cut_off(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), answer=0.0))
    bench.client(REQUEST, receive_buffer=4096)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer(b"x" * 10_000_000)
    bench.until(lambda: not bench.frontend.busy, "the client to be cut off")


def test_a_client_that_never_closes_after_its_last_answer_is_cut_off(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), linger=0.0))
    bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer(keep=False)
    bench.until(lambda: not bench.frontend.busy, "the client to be cut off")


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\r\n\r\n", 400, "no valid HTTP request", id="tls-on-plain-http"),
        pytest.param(head("GET / HTTP/1.1", "no colon"), 400, "no valid HTTP request", id="bad-header"),
        pytest.param(head("PRI * HTTP/2.0"), 400, "no valid HTTP request", id="http2-preface"),
        pytest.param(head("POST / HTTP/1.1", "Content-Length: -1"), 400, "no valid HTTP", id="negative-length"),
        pytest.param(head("POST / HTTP/1.1", "Content-Length: 1", "Content-Length: 2"), 400, "no", id="two-lengths"),
        pytest.param(head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), 411, "send Content-Length", id="chunked"),
        pytest.param(
            head("POST / HTTP/1.1", "Content-Length: 1001"), 413, "1001 bytes; at most 1000", id="body-too-large"
        ),
        pytest.param(
            head("GET / HTTP/1.1", *(f"A{n}: {'x' * 400}" for n in range(99))), 431, "32768", id="head-too-large"
        ),
        pytest.param(head("GET / HTTP/1.1", *(f"A{n}: x" for n in range(101))), 431, "fields", id="many-headers"),
        pytest.param(head(f"GET /{'x' * 5000} HTTP/1.1"), 414, "no valid HTTP request", id="long-line"),
        pytest.param(b"x" * 40_000, 431, "headers of more than 32768 bytes", id="endless-line"),
    ],
)
def test_what_no_application_should_see_is_refused_in_json(
    stack: ExitStack, sent: bytes, status: int, text: str
) -> None:
    bench = Bench(stack, replace(Limits(), body_bytes=1000))
    client = bench.client(sent)
    line, error = error_of(bench.read_to_end(client))
    assert line.startswith(f"HTTP/1.1 {status} ")
    assert text in error
    assert bench.running == []


def test_a_client_that_asks_whether_to_send_its_body_is_told_at_once(stack: ExitStack) -> None:
    bench = Bench(stack, Limits())
    client = bench.client(head("POST / HTTP/1.1", "Content-Length: 2", "Expect: 100-Continue"))
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert bench.read(client, lambda received: received == interim)
    client.sendall(b"{}")
    bench.until(lambda: bench.running, "the request to run")
    bench.answer()
    assert bench.read(client, lambda received: received == OK)


def test_above_the_bound_the_oldest_idle_connection_makes_room(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), connections=4))
    idle: list[socket.socket] = []
    for _ in range(2):
        idle.append(bench.client(REQUEST))
        bench.until(lambda: bench.running, "the request to run")
        bench.answer()
        bench.read(idle[-1], lambda received: received == OK)
    sending = bench.client(REQUEST[:-1])
    running = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    newcomer = bench.client(REQUEST)
    bench.until(lambda: len(bench.running) == 2, "the newcomer's request to run")
    assert [is_cut(client) for client in (*idle, sending, running, newcomer)] == [True, False, False, False, False]


def test_a_flood_of_silent_connections_pushes_out_its_own_kind_and_no_idle_one(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), connections=4))
    idle = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    bench.answer()
    bench.read(idle, lambda received: received == OK)
    silent = [bench.client() for _ in range(10)]
    bench.until(lambda: [is_cut(each) for each in silent] == [True] * 7 + [False] * 3, "the first seven to be cut")
    assert not is_cut(idle)


def test_when_every_connection_is_running_newcomers_wait_until_one_closes(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), connections=1))
    first = bench.client(REQUEST)
    bench.until(lambda: bench.running, "the request to run")
    newcomer = bench.client(REQUEST)
    for _ in range(3):
        bench.turn()
    assert len(bench.running) == 1
    bench.answer(keep=False)
    assert bench.read_to_end(first) == OK
    first.close()
    bench.until(lambda: bench.running, "the newcomer's request to run")
    bench.answer()
    assert bench.read(newcomer, lambda received: received == OK)


def test_above_the_bytes_held_the_slowest_sender_is_refused(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), held_bytes=150_000))
    big = b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"
    slow = bench.client(big + b"x" * 99_999)
    bench.until(lambda: bench.frontend.busy, "the slow sender to be accepted")
    quick = bench.client(big + b"x" * 100_000)
    line, error = error_of(bench.read_to_end(slow))
    assert line.startswith("HTTP/1.1 503 ")
    assert "too many bytes" in error
    bench.until(lambda: bench.running, "the quick request to run")
    bench.answer()
    assert bench.read(quick, lambda received: received == OK)


def test_stopping_serves_those_that_wait_to_be_accepted_and_closes_the_address(stack: ExitStack) -> None:
    bench = Bench(stack, replace(Limits(), linger=0.0))
    waiting = bench.client(REQUEST)
    bench.frontend.stop_accepting()
    bench.until(lambda: bench.running, "the request to run")
    bench.answer()
    assert bench.read_to_end(waiting) == OK
    with pytest.raises(ConnectionRefusedError):
        bench.client()
