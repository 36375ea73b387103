"""One deadline per request, spent by every call and every retry made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a monotonic clock, in seconds, after which an answer is of no use."""

    at: float
    clock: Callable[[], float] = monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = monotonic) -> Deadline:
        """The deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())
