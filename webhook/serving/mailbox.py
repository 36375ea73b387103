"""Calls for the event loop, left by other threads and by signal handlers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue


class Mailbox:
    """A queue of calls with a file descriptor that a selector can watch."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """What the selector watches."""
        return self._read

    def put(self, call: Callable[[], None]) -> None:
        """Have the loop make this call; safe in threads and in signal handlers."""
        self._calls.put(call)
        self.wake()

    def wake(self) -> None:
        """Have the loop look around."""
        # A full pipe has woken the loop already.
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"\0")

    def deliver(self) -> None:
        """Make the calls that have been left, in their order."""
        # Emptied before the calls: one that comes in between wakes the loop anew.
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self._read, 4096)) == 4096:
                pass
        with contextlib.suppress(Empty):
            while True:
                self._calls.get_nowait()()

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)
