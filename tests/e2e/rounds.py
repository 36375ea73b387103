"""How often a scenario is repeated."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def rounds(stated: int) -> int:
    """The number that the project promises where E2E_ROUNDS is `stated` (`make e2e-long`), else E2E_ROUNDS, else 5."""
    value = os.environ.get("E2E_ROUNDS", "5")
    return stated if value == "stated" else min(stated, int(value))


def few(stated: int, most: int = 2) -> int:
    """The same for a scenario whose rounds take long: at most `most` unless the promised number is asked for."""
    return rounds(stated) if os.environ.get("E2E_ROUNDS") == "stated" else min(most, rounds(stated))


def times(stated: int, sets: int) -> int:
    """How often as many sets as that are created at once to make the number of rounds, of which each set is one."""
    return -(-rounds(stated) // sets)


def at_once(scenario: Callable[[str], T], number: int | None = None) -> list[T]:
    """Go through a scenario with several clusters at the same time, 5 by default; it is given the cluster's name."""
    names = [f"db{index}" for index in range(rounds(5) if number is None else number)]
    with ThreadPoolExecutor(len(names)) as executor:
        return list(executor.map(scenario, names))
