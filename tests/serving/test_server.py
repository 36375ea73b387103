from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from e2e.waiting import wait_until
from running_server import (
    GUARD,
    PATIENT,
    THREADS,
    Authority,
    MountedSecret,
    Server,
    ask,
    ask_once,
    half_hello,
    has_ended,
    is_open,
    launch,
    read_answer,
    refuses,
    served,
)

from webhook.errors import SettingsError
from webhook.serving.limits import Limits
from webhook.serving.server import heartbeat_directory

HALF_HEAD = b"POST /mutate HTTP/1.1\r\nHost: hook.rel.svc\r\nContent-"
HALF_BODY = b"POST /mutate HTTP/1.1\r\nHost: hook.rel.svc\r\nContent-Length: 1000\r\n\r\n{"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def pair(folder: Path, authority: Authority) -> tuple[Path, Path]:
    return authority.issue(folder / "tls")


@pytest.fixture(scope="module")
def server(folder: Path, authority: Authority, pair: tuple[Path, Path]) -> Iterator[Server]:
    """A server that cuts nobody off while a test runs."""
    with served(folder / "server.log", pair=pair, trust=authority.client()) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(folder: Path, authority: Authority, pair: tuple[Path, Path]) -> Iterator[Server]:
    """A server that cuts stalled clients off soon."""
    limits = {"opening": 0.3, "head": 0.3, "body": 0.3}
    with served(folder / "impatient.log", pair=pair, trust=authority.client(), limits=limits) as server:
        yield server


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# --- clients that stall


def silent(server: Server) -> socket.socket:
    return server.tcp()


def half_a_hello(server: Server) -> socket.socket:
    sock = server.tcp()
    sock.sendall(half_hello())
    return sock


def silent_after_the_handshake(server: Server) -> socket.socket:
    return server.tls()


def half_a_head(server: Server) -> socket.socket:
    sock = server.tls()
    sock.sendall(HALF_HEAD)
    return sock


def half_a_body(server: Server) -> socket.socket:
    sock = server.tls()
    sock.sendall(HALF_BODY)
    return sock


def deaf(server: Server) -> socket.socket:
    """Asks for more than socket buffers hold, and does not read."""
    sock = server.tls()
    sock.sendall(b"GET /large?15000000 HTTP/1.1\r\nHost: h\r\n\r\n")
    return sock


Stall = Callable[[Server], socket.socket]
CUT_OFF: list[Stall] = [silent, half_a_hello, half_a_head, half_a_body]


@pytest.mark.parametrize("stall", [*CUT_OFF, silent_after_the_handshake])
def test_twice_as_many_stalled_clients_as_threads_delay_no_review(
    server: Server, stack: ExitStack, stall: Stall
) -> None:
    stalled = [stack.enter_context(stall(server)) for _ in range(2 * THREADS)]
    assert ask_once(server)["path"] == "/mutate"
    assert all(is_open(sock) for sock in stalled)


def test_twice_as_many_clients_that_do_not_read_as_threads_delay_no_review(server: Server, stack: ExitStack) -> None:
    for _ in range(2 * THREADS):
        stack.enter_context(deaf(server))
    assert ask_once(server)["path"] == "/mutate"


def test_all_kinds_of_stalled_clients_together_delay_no_kept_alive_review(server: Server, stack: ExitStack) -> None:
    client = stack.enter_context(closing(server.http()))
    ask(client)
    for _ in range(2 * THREADS):
        for stall in (*CUT_OFF, silent_after_the_handshake, deaf):
            stack.enter_context(stall(server))
    assert ask(client)["path"] == "/mutate"


@pytest.mark.parametrize("stall", CUT_OFF)
def test_a_stalled_client_is_cut_off(impatient: Server, stack: ExitStack, stall: Stall) -> None:
    stalled = [stack.enter_context(stall(impatient)) for _ in range(2 * THREADS)]
    assert [sock.recv(1) for sock in stalled] == [b""] * len(stalled)


def test_a_client_that_sends_byte_by_byte_is_cut_off(impatient: Server, stack: ExitStack) -> None:
    sock = stack.enter_context(impatient.tls())

    def is_cut_off() -> bool:
        try:
            sock.send(b"x")
        except OSError:
            return True
        return not is_open(sock)

    wait_until(is_cut_off, "the client to be cut off", GUARD)


def test_stalls_on_plain_http_delay_nobody_and_are_cut_off(folder: Path, stack: ExitStack) -> None:
    limits = {"opening": 0.3}
    server = stack.enter_context(served(folder / "plain.log", limits=limits))
    assert "plain HTTP, which only this machine can reach" in server.log
    stalled = [stack.enter_context(silent(server)) for _ in range(2 * THREADS)]
    assert ask_once(server)["scheme"] == "http"
    assert [sock.recv(1) for sock in stalled] == [b""] * len(stalled)


# --- requests and answers


def test_a_connection_is_kept_and_used_again_after_others_were_served(server: Server, stack: ExitStack) -> None:
    client = stack.enter_context(closing(server.http()))
    first = ask(client)
    port = client.sock.getsockname()[1]
    for _ in range(THREADS):
        ask_once(server)
    second = ask(client)
    assert client.sock.getsockname()[1] == port
    assert (first["connection"], second["connection"]) == ("keep-alive", "keep-alive")


def test_idle_connections_outlive_those_that_an_api_server_keeps() -> None:
    assert Limits().idle > 90


def test_the_application_learns_when_the_request_began(server: Server) -> None:
    facts = ask_once(server)
    assert facts["received_at"] > 0
    assert (facts["scheme"], facts["query"]) == ("https", "timeout=10s")


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 3 * 1024 * 1024], ids=["empty", "one-byte", "record", "3-MiB"])
def test_the_body_arrives_whole(server: Server, size: int) -> None:
    assert ask_once(server, body=b"x" * size)["length"] == size


def test_a_large_answer_arrives_whole(server: Server, stack: ExitStack) -> None:
    client = stack.enter_context(closing(server.http()))
    client.request("GET", "/large?5000000")
    assert len(client.getresponse().read()) == 5_000_000
    assert ask(client)["path"] == "/mutate"


@pytest.mark.parametrize("path", ["/fail", "/half", "/exit"])
def test_an_application_that_fails_is_answered_for_in_json(server: Server, stack: ExitStack, path: str) -> None:
    client = stack.enter_context(closing(server.http()))
    client.request("POST", path, b"{}")
    answer = client.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (500, "application/json")
    assert answer.read() == b'{"error": "internal error; the server\'s log has it"}'
    assert ask(client)["path"] == "/mutate"  # the client has connected anew


def test_what_is_no_http_is_refused_in_json(server: Server, stack: ExitStack) -> None:
    sock = stack.enter_context(server.tls())
    sock.sendall(b"nonsense\r\n\r\n")
    answer = read_answer(sock)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'{"error": "no valid HTTP request: ' in answer


def test_plain_http_on_the_tls_address_harms_nobody(server: Server, stack: ExitStack) -> None:
    sock = stack.enter_context(server.tcp())
    sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    with contextlib.suppress(ConnectionResetError):
        read_answer(sock)
    assert ask_once(server)["path"] == "/mutate"


# --- TLS


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_tls_1_1_is_refused_and_1_2_is_not(server: Server, authority: Authority, stack: ExitStack) -> None:
    old = authority.client()
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        old.wrap_socket(stack.enter_context(server.tcp()), server_hostname="127.0.0.1")

    recent = authority.client()
    recent.maximum_version = ssl.TLSVersion.TLSv1_2
    sock = stack.enter_context(recent.wrap_socket(stack.enter_context(server.tcp()), server_hostname="127.0.0.1"))
    assert sock.version() == "TLSv1.2"


def test_http_2_is_not_negotiated(server: Server, authority: Authority, stack: ExitStack) -> None:
    client = authority.client()
    client.set_alpn_protocols(["h2", "http/1.1"])
    sock = stack.enter_context(client.wrap_socket(stack.enter_context(server.tcp()), server_hostname="127.0.0.1"))
    assert sock.selected_alpn_protocol() == "http/1.1"


def serial_number(server: Server, stack: ExitStack) -> str:
    sock = stack.enter_context(server.tls())
    assert isinstance(sock, ssl.SSLSocket)
    certificate = sock.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_a_switched_certificate_is_served_to_new_connections_while_kept_ones_go_on(
    folder: Path, authority: Authority, stack: ExitStack
) -> None:
    secret = MountedSecret(folder / "secret", authority)
    options = {"pair": (secret.certificate, secret.key), "trust": authority.client()}
    server = stack.enter_context(served(folder / "switch.log", **options))
    kept = stack.enter_context(closing(server.http()))
    ask(kept)
    port = kept.sock.getsockname()[1]
    before = serial_number(server, stack)

    secret.switch()

    assert serial_number(server, stack) != before
    assert ask(kept)["path"] == "/mutate"
    assert kept.sock.getsockname()[1] == port


def test_half_a_new_pair_leaves_the_old_certificate_served_and_the_server_ready(
    folder: Path, authority: Authority, stack: ExitStack
) -> None:
    pair = authority.issue(folder / "torn")
    server = stack.enter_context(served(folder / "torn.log", pair=pair, trust=authority.client()))
    before = serial_number(server, stack)
    new_certificate, new_key = authority.issue(folder / "new")

    pair[0].write_bytes(new_certificate.read_bytes())
    assert [serial_number(server, stack) for _ in range(3)] == [before] * 3
    assert server.get_health("/readyz") == (200, "ok")
    assert server.log.count("the last good certificate is served on") == 1

    pair[1].write_bytes(new_key.read_bytes())
    assert serial_number(server, stack) != before


# --- stopping


def is_unready(server: Server) -> bool:
    return server.get_health("/readyz") == (503, "draining")


def test_after_sigterm_it_is_not_ready_but_serves_on_and_closes_each_connection(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack
) -> None:
    options = {"pair": pair, "trust": authority.client(), "drain_seconds": 300}
    server = stack.enter_context(served(folder / "drain.log", **options))
    kept = stack.enter_context(closing(server.http()))
    assert ask(kept)["connection"] == "keep-alive"

    server.signal(signal.SIGTERM)

    wait_until(lambda: is_unready(server), "readiness to fail", GUARD)
    assert server.get_health("/livez")[0] == 200
    assert ask(kept)["connection"] == "close"
    assert ask_once(server)["connection"] == "close"


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_second_signal_ends_it_at_once_although_a_request_runs(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack, second: signal.Signals
) -> None:
    options = {"pair": pair, "trust": authority.client(), "drain_seconds": 300}
    server = stack.enter_context(served(folder / f"second-{second.name}.log", **options))
    sock = stack.enter_context(server.tls())
    sock.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
    wait_until(server.waiters, "the request to run", GUARD)

    server.signal(signal.SIGTERM)
    wait_until(lambda: is_unready(server), "readiness to fail", GUARD)
    server.signal(second)

    server.exit_code()
    assert refuses(server.address)


def test_an_interrupt_from_the_terminal_drains_as_sigterm_does_and_a_second_one_ends_it(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack
) -> None:
    options = {"pair": pair, "trust": authority.client(), "drain_seconds": 300}
    server = stack.enter_context(served(folder / "interrupt.log", **options))

    os.killpg(server.process.pid, signal.SIGINT)

    wait_until(lambda: is_unready(server), "readiness to fail", GUARD)
    assert ask_once(server)["connection"] == "close"
    assert "SIGINT: no longer ready; serving on for 300 s" in server.log
    os.killpg(server.process.pid, signal.SIGINT)
    assert server.exit_code() == 0
    assert "Traceback" not in server.log


def test_an_interrupt_ends_it_in_order_once_it_has_drained(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "ordered.log", drain_seconds=0))
    os.killpg(server.process.pid, signal.SIGINT)
    assert server.exit_code() == 0
    assert "stopped" in server.log


def test_a_running_request_is_answered_before_the_end(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack
) -> None:
    server = stack.enter_context(served(folder / "running.log", pair=pair, trust=authority.client()))
    sock = stack.enter_context(server.tls())
    sock.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
    wait_until(server.waiters, "the request to run", GUARD)

    server.signal(signal.SIGTERM)
    wait_until(lambda: refuses(server.address), "the address to be closed", GUARD)
    assert is_open(sock)
    assert is_unready(server)
    server.get_health("/release")

    assert read_answer(sock).startswith(b"HTTP/1.1 200 OK\r\n")
    assert server.exit_code() == 0


def test_a_request_that_never_ends_does_not_keep_the_server_for_ever(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "endless.log", limits={"finish": 0.2}))
    sock = stack.enter_context(server.tcp())
    sock.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
    wait_until(server.waiters, "the request to run", GUARD)
    server.signal(signal.SIGTERM)
    assert read_answer(sock) == b""
    assert "stopped with requests unfinished" in server.log


def test_when_the_master_is_killed_its_worker_goes_too(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "orphan.log"))
    server.signal(signal.SIGKILL)
    wait_until(lambda: server.is_gone, "the worker to go", GUARD)


class Caller(threading.Thread):
    """Calls as an API server does: on a kept connection while there is one, else on a new one to a ready replica."""

    def __init__(self, replicas: list[Server], calls: int) -> None:
        super().__init__()
        self._replicas = replicas
        self._calls = calls
        self.answered = 0
        self.failures: list[str] = []
        self.connections = 0

    def run(self) -> None:
        client: http.client.HTTPConnection | None = None
        for _ in range(self._calls):
            if client is None:
                client = self._ready().http()
                self.connections += 1
            try:
                facts = ask(client)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                facts = {"connection": "close"}
            else:
                self.answered += 1
            if facts["connection"] == "close":
                client.close()
                client = None
        if client is not None:
            client.close()

    def _ready(self) -> Server:
        """The first replica whose endpoint has not been taken away."""
        for replica in self._replicas[:-1]:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if replica.get_health("/readyz")[0] == 200:
                    return replica
        return self._replicas[-1]


def test_no_call_of_many_fails_while_a_replica_drains(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack
) -> None:
    options = {"pair": pair, "trust": authority.client(), "drain_seconds": 1}
    old = stack.enter_context(served(folder / "old.log", **options))
    new = stack.enter_context(served(folder / "new.log", **options))
    callers = [Caller([old, new], calls=250) for _ in range(THREADS)]
    for caller in callers:
        caller.start()
    wait_until(lambda: all(caller.answered >= 50 for caller in callers), "the calls to be under way", GUARD)

    old.signal(signal.SIGTERM)

    assert old.exit_code() == 0
    for caller in callers:
        caller.join(GUARD)
    assert [caller.failures for caller in callers] == [[]] * THREADS
    assert [caller.answered for caller in callers] == [250] * THREADS
    assert all(caller.connections >= 2 for caller in callers)


# --- starting


def test_an_ipv6_address_can_be_served(
    folder: Path, authority: Authority, pair: tuple[Path, Path], stack: ExitStack
) -> None:
    options = {"pair": pair, "trust": authority.client(), "bind": "[::1]:0", "health_bind": "[::1]:0"}
    server = stack.enter_context(served(folder / "ipv6.log", **options))
    assert server.address[0] == "::1"
    assert ask_once(server)["path"] == "/mutate"


def test_it_serves_without_a_home_or_a_folder_for_temporary_files(folder: Path, stack: ExitStack) -> None:
    nowhere = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
    server = stack.enter_context(served(folder / "bare.log", environment=nowhere))
    assert ask_once(server)["path"] == "/mutate"
    assert "ERROR" not in server.log


def test_a_low_limit_of_open_files_is_raised_to_what_the_connections_need(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "files.log", open_files=64, limits=PATIENT))
    for _ in range(100):
        stack.enter_context(server.tcp())
    assert ask_once(server)["path"] == "/mutate"
    assert server.get_health("/livez")[0] == 200


def test_above_the_bound_the_oldest_silent_connections_make_room(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "few.log", limits={**PATIENT, "connections": 20}))
    stalled = [stack.enter_context(server.tcp()) for _ in range(60)]
    assert ask_once(server)["path"] == "/mutate"
    assert stalled[0].recv(1) == b""
    assert is_open(stalled[-1])


def test_a_folder_for_signs_of_life_is_found_or_asked_for(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert heartbeat_directory([missing, tmp_path]) == tmp_path
    with pytest.raises(SettingsError, match=f"none of {missing} can be written to; mount an empty volume"):
        heartbeat_directory([missing])


def test_a_hangup_replaces_the_worker_without_losing_the_address(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "hangup.log"))
    before = ask_once(server)["pid"]
    server.signal(signal.SIGHUP)
    wait_until(lambda: has_ended(before), "the worker to be replaced", GUARD)
    assert ask_once(server)["pid"] != before
    assert server.get_health("/readyz") == (200, "ok")


def test_several_workers_share_the_load_and_a_killed_one_is_replaced(folder: Path, stack: ExitStack) -> None:
    server = stack.enter_context(served(folder / "workers.log", workers=2))
    killed = ask_once(server)["pid"]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: has_ended(killed), "the master to notice", GUARD)
    assert server.get_health("/readyz") == (200, "ok")
    assert ask_once(server)["pid"] != killed
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0


def free_address(stack: ExitStack) -> str:
    """An address that somebody else listens on."""
    other = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return f"127.0.0.1:{other.getsockname()[1]}"


@pytest.mark.parametrize("flag", ["bind", "health_bind"])
def test_an_address_in_use_is_one_clear_line(folder: Path, stack: ExitStack, flag: str) -> None:
    taken = free_address(stack)
    server = launch(folder / f"taken-{flag}.log", **{flag: taken})
    assert server.exit_code() == 2
    assert server.log.splitlines() == [
        f"error: --{flag.replace('_', '-')} {taken}: another process listens there; stop it, or give another port"
    ]


def test_a_pair_that_does_not_match_is_one_clear_line(folder: Path, authority: Authority) -> None:
    certificate, _ = authority.issue(folder / "one")
    _, key = authority.issue(folder / "other")
    server = launch(folder / "mismatch.log", pair=(certificate, key))
    assert server.exit_code() == 2
    assert server.log.splitlines() == [
        f"error: --tls-key {key}: does not belong to the certificate --tls-cert {certificate}; "
        "give the two files that were issued together"
    ]


def test_an_application_that_cannot_be_built_ends_the_server_with_its_reason(folder: Path) -> None:
    server = launch(folder / "failure.log", failure="the kubeconfig has no current context")
    assert server.exit_code() == 4
    assert "the kubeconfig has no current context" in server.log
    assert "Traceback" not in server.log
