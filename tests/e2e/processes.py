"""Child processes that end with the tests, however these end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from e2e.waiting import wait_until

# The kernel kills a child that asked for it (PR_SET_PDEATHSIG) when the *thread* that started it ends. Tests
# restart components from short-lived threads, so every child is started by this one, which lives as long as
# the process.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")

# Runs between fork and the real program. Not a preexec_fn: that is unsafe beside threads.
_END_WITH_PARENT = """
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent ended before the child could ask to end with it")
os.execvp(sys.argv[2], sys.argv[2:])
"""

_issued_ports: set[int] = set()


def free_port() -> int:
    """Return a loopback port that nothing listens on, and never the same one twice.

    It lies below the range from which the kernel takes the ports of outgoing connections: while a server is
    down, a client that keeps dialling could otherwise be given that very port, and hold it (or even connect to
    itself).
    """
    lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(1000):
        port = random.randrange(10000, max(lowest_outgoing, 20000))
        if port in _issued_ports:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            _issued_ports.add(port)
            return port
    raise OSError("no free port on 127.0.0.1")


class ChildError(Exception):
    """A child process ended, or did not become ready; the message carries the end of its log."""


class Child:
    """One program in its own process group, its output in a file. It can be started again after it ended."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._environment = None if environment is None else {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running child."""
        if self._process is None:
            raise ChildError(f"{self.name} has not been started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None if it has not, or was not started."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the program; whether it is ready is another question (`wait_ready`)."""
        if self.running:
            raise ChildError(f"{self.name} is running already")
        with self.log.open("ab") as output:
            self._process = _STARTER.submit(self._spawn, output).result()

    def _spawn(self, output: IO[bytes]) -> subprocess.Popen[bytes]:
        wrapper = [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, str(os.getpid())]
        # Its own group: Ctrl-C reaches pytest alone, which then ends the children in the right order.
        return subprocess.Popen(
            [*wrapper, *self.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=self._environment,
            process_group=0,
        )

    def wait_ready(self, probe: Callable[[], bool], timeout: float) -> None:
        """Wait until `probe` says so; a child that ends instead, or takes too long, raises with its last log."""

        def ready() -> bool:
            if not self.running:
                raise ChildError(f"{self.name} ended instead of becoming ready\n{self.last_lines()}")
            return probe()

        try:
            wait_until(ready, f"{self.name} to become ready", timeout)
        except TimeoutError as error:
            raise ChildError(f"{error}\n{self.last_lines()}") from error

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self, timeout: float = 10) -> None:
        """End it politely, then by force; a frozen one is thawed first, as it could not hear the request."""
        if self._process is None or not self.running:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()

    def freeze(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    def last_lines(self, count: int = 20) -> str:
        """The end of the log, for messages."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- end of {self.name}'s log:", *lines[-count:]])
