"""Waiting for what another thread or process is about to do, in place of sleeping and hoping."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from webhook.deadline import Deadline

T = TypeVar("T")

# Only ends a test that hangs (s).
PATIENCE = 60.0
INTERVAL = 0.005


def eventually(condition: Callable[[], T | None]) -> T:
    """What `condition` gives as soon as that is true; it is asked again and again as long as patience lasts."""
    deadline, pause = Deadline.after(PATIENCE), Event()
    while not (found := condition()):
        assert deadline.left() > 0, f"it did not come about within {PATIENCE:g} s"
        pause.wait(INTERVAL)
    return found
