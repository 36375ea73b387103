"""How often a scenario is repeated."""

from __future__ import annotations

import os


def rounds(stated: int) -> int:
    """The number that the project promises where E2E_ROUNDS is `stated` (`make e2e-long`), else E2E_ROUNDS, else 5."""
    value = os.environ.get("E2E_ROUNDS", "5")
    return stated if value == "stated" else min(stated, int(value))


def few(stated: int, most: int = 2) -> int:
    """The same for a scenario whose rounds take long: at most `most` unless the promised number is asked for."""
    return rounds(stated) if os.environ.get("E2E_ROUNDS") == "stated" else min(most, rounds(stated))
