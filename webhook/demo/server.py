"""The webhook as it runs in a cluster, in a process of its own on loopback: `serve`, TLS, gunicorn and all."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, Timer
from types import FrameType
from typing import IO, cast

from webhook.cluster.door import Manifest
from webhook.demo.certificate import write_certificate
from webhook.errors import WebhookError

# Seconds for the process to start, and to end when it is asked to.
START_TIMEOUT = 60.0
END_TIMEOUT = 10.0
# Settings of the user's own webhook must not reach this one.
_SETTINGS = "TIDB_HA_"
_PROGRAM = """
from webhook.demo.orphan import end_with
end_with({parent})
from webhook.cli import main
main(prog_name='tidb-ha-webhook')
"""
_LINES_SHOWN = 5


class DemoError(WebhookError):
    """The demo cannot be shown; the text says what failed."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the webhook listens, and the certificate file to trust."""

    url: str
    certificate: Path


@contextmanager
def webhook_on(objects: Iterable[Manifest]) -> Iterator[Endpoint]:
    """The webhook on the embedded cluster of these objects, for as long as the block runs.

    Whatever ends the block (an error, Ctrl-C, SIGTERM) ends the process and takes its files away. Raises
    DemoError if it does not start.
    """
    with _ended_by_signals(), TemporaryDirectory(prefix="tidb-ha-webhook-demo-") as name:
        folder = Path(name)
        dump = folder / "dump.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        certificate, key = write_certificate(folder)
        bind = loopback()
        arguments = ["--cluster", dump, "--tls-cert", certificate, "--tls-key", key, "--drain-seconds", "0"]
        arguments += ["--bind", bind, "--health-bind", bind, "--log-format", "text"]
        program = [sys.executable, "-P", "-c", _PROGRAM.format(parent=os.getpid())]
        with running([*program, "serve", *map(str, arguments)]) as url:
            yield Endpoint(url, certificate)


@contextmanager
def running(command: list[str], patience: float = START_TIMEOUT, grace: float = END_TIMEOUT) -> Iterator[str]:
    """The URL of the reviews of a server process, which is ended with the block.

    It has `patience` (s) to start, and `grace` (s) to end in order.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    process = subprocess.Popen(  # noqa: S603 - our own program, and a command that nobody else had a hand in
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # Ctrl-C in the terminal is for us alone; we end it in order.
        process_group=0,
    )
    log = cast(IO[str], process.stderr)
    # Once nobody waits for a line, or the process would stop when the pipe is full.
    reader = Thread(target=log.read, name="log of the demo's server", daemon=True)
    try:
        url = _announced(process, log, patience)
        reader.start()
        yield url
    finally:
        _end(process, grace)
        if reader.ident is not None:
            reader.join()
        log.close()


def loopback() -> str:
    """A loopback address of this machine with a port that the system chooses."""
    with suppress(OSError), socket.socket(socket.AF_INET) as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:0"
    return "[::1]:0"


def _announced(process: subprocess.Popen[str], log: IO[str], patience: float) -> str:
    """Wait until the process says where it listens; from then on connections wait for it."""
    watchdog = Timer(patience, process.kill)
    watchdog.daemon = True
    watchdog.start()
    lines = []
    try:
        for line in log:
            lines.append(line.strip())
            if found := re.search(r"reviews at (https://[^\s,]+)", line):
                return found[1]
    finally:
        watchdog.cancel()
    said = "; ".join(lines[-_LINES_SHOWN:]) or "it said nothing"
    raise DemoError(f"the webhook's server did not start: {said}")


def _end(process: subprocess.Popen[str], grace: float) -> None:
    try:
        process.terminate()
        process.wait(grace)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Its workers too, if it did not end in order.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does: by way of everything that has to be cleaned up."""
    before = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
