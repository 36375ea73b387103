"""What has been made of the same values before is not made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Source = TypeVar("Source")
Made = TypeVar("Made")

KEPT: Final = 4
"""How many are kept: those of the snapshots that rounds of several groups work on at the same time."""


class Memo(Generic[Source, Made]):
    """Remembers what was made of the latest sources; safe to use from many threads.

    A source is known again by its identity, since values of a whole cluster are too large to be compared.
    """

    def __init__(self, make: Callable[[Source], Made]) -> None:
        """`make` must always give the same for the same source."""
        self._make = make
        self._kept: tuple[tuple[Source, Made], ...] = ()

    def __call__(self, source: Source) -> Made:
        """What is made of the source."""
        for kept, made in self._kept:
            if kept is source:
                return made
        made = self._make(source)
        # Replaced as a whole: of two threads that come at once one makes it for nothing.
        self._kept = ((source, made), *self._kept[: KEPT - 1])
        return made
