"""Against a server that answers lists and watches with what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from e2e.objects import Object

from bench.arrivals import Arrivals

TIMEOUT = 30


def pod(name: str, node: str = "") -> Object:
    return {"metadata": {"name": name}, "spec": {"nodeName": node} if node else {}}


class Server:
    """Each list and each watch takes the next answer; a watch without one says nothing until the test ends."""

    def __init__(self) -> None:
        self.lists: list[list[Object]] = []
        self.watches: list[list[tuple[str, Object]]] = []
        self.over = threading.Event()


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if "watch=1" not in self.path:
                self.send({"metadata": {"resourceVersion": "7"}, "items": state.lists.pop(0)})
            elif state.watches:
                for kind, found in state.watches.pop(0):
                    self.send({"type": kind, "object": found})
            else:
                state.over.wait(TIMEOUT)
            self.wfile.write(b"0\r\n\r\n")

        def send(self, found: object) -> None:
            data = json.dumps(found).encode() + b"\n"
            # In two pieces: a line need not come in one.
            for piece in (data[:10], data[10:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield state, f"http://127.0.0.1:{httpd.server_port}"
    state.over.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def arrivals_of(url: str) -> Arrivals:
    return Arrivals(url, "token", Path("unused"), "ns")


def test_a_pod_is_seen_when_it_gets_its_node_and_later_news_of_it_change_nothing(server: tuple[Server, str]):
    state, url = server
    state.lists = [[pod("a")]]
    state.watches = [[("ADDED", pod("b")), ("MODIFIED", pod("a", "n0")), ("MODIFIED", pod("b", "n1"))]]
    state.lists += [[pod("a", "n0"), pod("b", "n1"), pod("c", "n2")]]

    with arrivals_of(url) as arrivals:
        assert arrivals.wait_for(lambda pods: len(pods) == 3, TIMEOUT)

        assert list(arrivals.seen) == ["a", "b", "c"]
        assert arrivals.seen["a"] <= arrivals.seen["b"] <= arrivals.seen["c"]
        assert arrivals.listed_again == 1


@pytest.mark.parametrize("end", [[("ERROR", {"code": 410})], []], ids=["expired", "ended"])
def test_after_the_end_of_a_watch_what_is_gone_is_forgotten(server: tuple[Server, str], end: list[tuple[str, Object]]):
    state, url = server
    state.lists = [[pod("a", "n0"), pod("b", "n1"), pod("c", "n2")], [pod("b", "n1")]]
    state.watches = [[("DELETED", pod("a", "n0")), *end]]

    with arrivals_of(url) as arrivals:
        assert arrivals.wait_for(lambda pods: list(pods) == ["b"], TIMEOUT)

        assert list(arrivals.seen) == ["b"]


def test_waiting_ends_with_the_time_that_is_given(server: tuple[Server, str]):
    state, url = server
    state.lists = [[]]

    with arrivals_of(url) as arrivals:
        assert not arrivals.wait_for(lambda pods: bool(pods), 0.01)
