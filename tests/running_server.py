"""The real server as a child process, with certificates made by trustme, a small application, and clients.

Run as a program (`python -m running_server JSON`) this module is that child.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import trustme
from e2e.waiting import wait_until

from webhook.app import RECEIVED_AT

# Seconds until a test that hangs fails; nothing is expected to take that long.
GUARD = 30.0
# No stalled client is cut off before that, so whatever is answered meanwhile did not wait for one.
PATIENT: Mapping[str, float] = {"opening": 300, "head": 300, "body": 300}
THREADS = 4


# --- the child: applications and entry point

_release = threading.Event()
_waiting = threading.Semaphore(0)
_waiters = 0


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answers at once with what it was asked, except `/wait`, which waits for `/release`."""
    global _waiters
    path = environ["PATH_INFO"]
    body = environ["wsgi.input"].read()
    if path == "/wait":
        _waiters += 1
        _release.wait(GUARD)
    elif path == "/fail":
        raise ValueError("the application is broken")
    elif path == "/half":
        return _half(start_response)
    elif path == "/exit":
        raise SystemExit("an application must not end the server")
    elif path == "/large":
        return _answer(start_response, "200 OK", b"x" * int(environ["QUERY_STRING"]))
    facts = {
        "path": path,
        "query": environ["QUERY_STRING"],
        "length": len(body),
        "scheme": environ["wsgi.url_scheme"],
        "received_at": environ[RECEIVED_AT],
        "pid": os.getpid(),
    }
    return _answer(start_response, "200 OK", json.dumps(facts).encode())


def health(draining: Callable[[], bool], certificate_problem: Callable[[], str | None]) -> WSGIApplication:
    """Builds the health application; `/waiters` and `/release` serve the tests."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/release":
            _release.set()
        if path == "/waiters":
            return _answer(start_response, "200 OK", str(_waiters).encode())
        problem = "draining" if draining() else certificate_problem()
        if path == "/readyz" and problem:
            return _answer(start_response, "503 Service Unavailable", problem.encode())
        return _answer(start_response, "200 OK", b"ok")

    return answer


def _answer(start_response: StartResponse, status: str, body: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _half(start_response: StartResponse) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Length", "20")])
    yield b"ten bytes."
    raise ValueError("broken halfway")


def main() -> int:
    """Serve as the JSON argument says: settings, limits, and an error for the application to fail with."""
    from webhook.errors import SettingsError, WebhookError
    from webhook.logs import configure
    from webhook.serving.limits import Limits
    from webhook.serving.server import serve
    from webhook.settings import LogFormat, Settings

    options = json.loads(sys.argv[1])
    if options["open_files"]:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (options["open_files"], hard))
    configure(LogFormat.TEXT)
    settings = options["settings"]
    for name in ("tls_cert", "tls_key"):
        settings[name] = Path(settings[name]) if settings.get(name) else None

    def build_app() -> WSGIApplication:
        if options.get("failure"):
            raise WebhookError(options["failure"])
        return application

    try:
        limits = Limits(**options["limits"])
        return serve(Settings(**settings), build_app, health, limits=limits)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


# --- the parent: certificates


class Authority:
    """A certificate authority and the clients' trust in it."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def issue(self, folder: Path) -> tuple[Path, Path]:
        """A new certificate for loopback, with its key, as tls.crt and tls.key in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        leaf = self._ca.issue_cert("localhost", "127.0.0.1", "::1")
        certificate, key = folder / "tls.crt", folder / "tls.key"
        leaf.private_key_pem.write_to_path(key)
        certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        return certificate, key

    def client(self) -> ssl.SSLContext:
        """A context that trusts this authority."""
        context = ssl.create_default_context()
        self._ca.configure_trust(context)
        return context


class MountedSecret:
    """A folder as the kubelet writes a Secret volume: the files lead through `..data`, which is switched."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self._folder = folder
        self._authority = authority
        self._generation = 0
        self.switch()
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(Path("..data") / name)
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"

    def switch(self) -> None:
        """Put a new pair in place, both files at one instant."""
        self._generation += 1
        name = f"..generation-{self._generation}"
        self._authority.issue(self._folder / name)
        (self._folder / "..data_tmp").symlink_to(name)
        os.replace(self._folder / "..data_tmp", self._folder / "..data")


# --- the parent: the server as a process


class Server:
    """One server process (the master and its workers, in a process group)."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, trust: ssl.SSLContext | None) -> None:
        self.process = process
        self._log = log
        self.trust = trust
        self.address = ("", 0)
        self.health_address = ("", 0)

    @property
    def log(self) -> str:
        """Everything it has written so far."""
        return self._log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the master alone, as the kubelet does."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for its end."""
        return self.process.wait(GUARD)

    def tcp(self) -> socket.socket:
        """A connection on which nothing has been sent."""
        return socket.create_connection(self.address, timeout=GUARD)

    def tls(self) -> socket.socket:
        """A connection after the TLS handshake, or a plain one if the server has no certificate."""
        if self.trust is None:
            return self.tcp()
        return self.trust.wrap_socket(self.tcp(), server_hostname=self.address[0])

    def http(self) -> HTTPConnection:
        """An HTTP client that keeps its connection."""
        host, port = self.address
        if self.trust is None:
            return HTTPConnection(host, port, timeout=GUARD)
        return HTTPSConnection(host, port, timeout=GUARD, context=self.trust)

    def get_health(self, path: str) -> tuple[int, str]:
        """Status and body of an answer of the health address."""
        client = HTTPConnection(*self.health_address, timeout=GUARD)
        with contextlib.closing(client):
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()

    def waiters(self) -> int:
        """How many `/wait` requests have reached a thread."""
        return int(self.get_health("/waiters")[1])

    @property
    def is_gone(self) -> bool:
        """Whether the master and its workers have all ended."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def end(self) -> None:
        """End all its processes; politely first, so that they can save their coverage."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(GUARD)

    def wait_ready(self) -> None:
        """Wait until the health address says so, and learn both addresses from the log."""

        def ready() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended instead of becoming ready\n{self.log}")
            found = re.search(r"reviews at (\S+).*health at (\S+)", self.log)
            if not found:
                return False
            self.address, self.health_address = _address(found[1]), _address(found[2])
            return self.get_health("/readyz")[0] == 200

        wait_until(ready, "the server to become ready", GUARD)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url.rstrip(","))
    return str(parts.hostname), int(parts.port or 0)


def launch(
    log: Path,
    *,
    bind: str = "127.0.0.1:0",
    health_bind: str = "127.0.0.1:0",
    pair: tuple[Path, Path] | None = None,
    trust: ssl.SSLContext | None = None,
    limits: Mapping[str, float] = PATIENT,
    failure: str = "",
    open_files: int = 0,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> Server:
    """Start a server process, without waiting for it; `open_files` is its soft limit of open files, 0: as is."""
    certificate, key = pair or (None, None)
    settings = {"threads": THREADS, "drain_seconds": 0, **settings}
    settings |= {"bind": bind, "health_bind": health_bind}
    settings |= {"tls_cert": str(certificate or ""), "tls_key": str(key or "")}
    options = {"settings": settings, "limits": dict(limits), "failure": failure, "open_files": open_files}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "running_server", json.dumps(options)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(environment or {})},
            process_group=0,
        )
    return Server(process, log, trust)


@contextlib.contextmanager
def served(log: Path, **options: Any) -> Iterator[Server]:
    """A server that is ready, ended afterwards; the options are those of `launch`."""
    server = launch(log, **options)
    try:
        server.wait_ready()
        yield server
    finally:
        server.end()


# --- the parent: clients


def ask(client: HTTPConnection, path: str = "/mutate?timeout=10s", body: bytes = b"{}") -> dict[str, Any]:
    """POST and return the application's answer; `connection` is the answer's Connection header."""
    client.request("POST", path, body, {"Content-Type": "application/json"})
    answer = client.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    facts: dict[str, Any] = json.loads(text)
    return facts | {"connection": answer.getheader("Connection")}


def ask_once(server: Server, path: str = "/mutate?timeout=10s", body: bytes = b"{}") -> dict[str, Any]:
    """`ask` on a connection of its own."""
    with contextlib.closing(server.http()) as client:
        return ask(client, path, body)


def read_answer(sock: socket.socket) -> bytes:
    """Everything until the server closes."""
    return b"".join(iter(lambda: sock.recv(65536), b""))


def is_open(sock: socket.socket) -> bool:
    """Whether the server has neither closed the connection nor sent anything on it."""
    raw = socket.socket(fileno=os.dup(sock.fileno()))
    with raw:
        raw.setblocking(False)
        try:
            return raw.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True


def half_hello() -> bytes:
    """The first half of a TLS ClientHello."""
    outgoing = ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    whole = outgoing.read()
    return whole[: len(whole) // 2]


def has_ended(pid: int) -> bool:
    """Whether there is no such process any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def refuses(address: tuple[str, int]) -> bool:
    """Whether nothing listens there any more."""
    try:
        socket.create_connection(address, timeout=GUARD).close()
    except ConnectionRefusedError:
        return True
    return False


FAILURES = (OSError, HTTPException)

if __name__ == "__main__":
    sys.exit(main())
