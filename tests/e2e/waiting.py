"""Waiting for a condition with a deadline, in place of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Short against everything waited for, long against the cost of one look.
INTERVAL = 0.05


def wait_until(probe: Callable[[], T | None], what: str, timeout: float, longest: float = INTERVAL) -> T:
    """Call `probe` until it returns something true, and return that; `what` completes "waited 30 s for …".

    Where a look is dear, the pauses between two grow to the `longest` (s); where it is cheap, none is longer than that.
    """
    deadline = time.monotonic() + timeout
    pause = min(INTERVAL, longest)
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s for {what}")
        time.sleep(pause)
        pause = min(longest, pause * 1.3)
