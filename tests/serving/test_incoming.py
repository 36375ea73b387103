from __future__ import annotations

import io
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from gunicorn.config import Config

from webhook.serving.incoming import CONTINUE, Answer, Incoming, take_head
from webhook.serving.limits import Limits

CLIENT = ("192.0.2.7", 40001)


def head_of(text: str, body: bytes = b"") -> tuple[Incoming | None, bytearray]:
    received = bytearray(text.replace("\n", "\r\n").encode() + body)
    return take_head(received, CLIENT, Limits(), Config()), received


def test_a_head_is_taken_off_and_the_body_is_left() -> None:
    incoming, rest = head_of("POST /mutate?timeout=7s HTTP/1.1\nHost: h\nContent-Length: 2\n\n", b"{}GET")
    assert incoming is not None
    assert (incoming.message.method, incoming.message.path, incoming.message.query) == ("POST", "/mutate", "timeout=7s")
    assert (incoming.length, incoming.wants_continue) == (2, False)
    assert rest == b"{}GET"


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\nHost: h\n"])
def test_half_a_head_is_left_until_there_is_more(text: str) -> None:
    incoming, _rest = head_of(text)
    assert incoming is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("POST / HTTP/1.1\nExpect: 100-continue", True, id="asked"),
        pytest.param("POST / HTTP/1.0\nExpect: 100-continue", False, id="http-1.0-cannot-ask"),
        pytest.param("POST / HTTP/1.1", False, id="not-asked"),
    ],
)
def test_only_a_client_that_asks_is_told_to_go_on(line: str, expected: bool) -> None:
    incoming, _rest = head_of(f"{line}\nContent-Length: 2\n\n")
    assert incoming is not None
    assert incoming.wants_continue is expected


def test_the_body_is_read_as_it_was_sent_and_ends_where_its_length_says() -> None:
    incoming, _rest = head_of("POST / HTTP/1.1\nContent-Length: 6\n\n")
    assert incoming is not None
    incoming.complete(b"a\nb\nc\n")
    body = incoming.message.body
    assert (body.read(1), body.readline(), body.read(), body.read()) == (b"a", b"\n", b"b\nc\n", b"")


def answer() -> Answer:
    def application(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterable[bytes]:
        return io.BytesIO()

    return Answer(CLIENT, ("192.0.2.1", 8443), application, 1.5)


def test_an_answer_collects_what_is_sent_except_what_the_client_has_already() -> None:
    collected = answer()
    assert collected.send(CONTINUE) == len(CONTINUE)
    collected.sendall(b"HTTP/1.1 200 OK\r\n")
    assert collected.send(b"\r\n") == 2
    assert collected.data == b"HTTP/1.1 200 OK\r\n\r\n"


def test_an_answer_has_no_connection_to_shut_down() -> None:
    collected = answer()
    with pytest.raises(OSError, match="not on a socket"):
        collected.shutdown(2)
    collected.close()
