"""What an audit says again: a thing that goes on is said when it begins or changes, and then seldom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# A breach that goes on is said again after so long (s).
AGAIN: Final = 3600.0

Subject = tuple[str, str]
"""A group and the kind of what was found."""


@dataclass(slots=True)
class _Thing:
    """Of one subject: in how many looks in a row it was there, and what was said of it when."""

    looks: int = 0
    said: str = ""
    said_at: float = 0.0


class Sayings:
    """Remembers what was said of each subject, and when, by a monotonic clock (s)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._things: dict[Subject, _Thing] = {}
        self._seen: set[Subject] = set()

    def begin(self) -> None:
        """A new look at everything begins."""
        self._seen = set()

    def is_due(self, subject: Subject, text: str, *, looks: int = 1) -> bool:
        """Whether this should be said now: it was there in so many looks in a row, this one included, and is news."""
        thing = self._things.setdefault(subject, _Thing())
        self._seen.add(subject)
        thing.looks += 1
        return thing.looks >= looks and (thing.said != text or self._clock() - thing.said_at >= AGAIN)

    def say(self, subject: Subject, text: str) -> None:
        """This is said now."""
        thing = self._things[subject]
        thing.said, thing.said_at = text, self._clock()

    def end(self) -> tuple[Subject, ...]:
        """The subjects that are over, of those of which something was said; they are forgotten."""
        over = sorted(self._things.keys() - self._seen)
        return tuple(subject for subject in over if self._things.pop(subject).said)
