"""What a check says: a line with its level, what it is about, what was found, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. SKIP: it could not be looked at here."""

    OK = "ok"
    SKIP = "--"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `to_do` is "" where nothing has to be done."""

    level: Level
    about: str
    found: str
    to_do: str = ""


def ok(about: str, found: str) -> Line:
    """All is well."""
    return Line(Level.OK, about, found)


def skip(about: str, found: str) -> Line:
    """Not looked at."""
    return Line(Level.SKIP, about, found)


def warn(about: str, found: str, to_do: str) -> Line:
    """It may hurt."""
    return Line(Level.WARN, about, found, to_do)


def fail(about: str, found: str, to_do: str) -> Line:
    """It hurts."""
    return Line(Level.FAIL, about, found, to_do)


def is_fit(lines: Iterable[Line]) -> bool:
    """Whether nothing fails."""
    return all(line.level is not Level.FAIL for line in lines)


def as_json(lines: Sequence[Line]) -> str:
    """The lines as one JSON object."""
    told = [{"level": line.level.value, "about": line.about, "found": line.found, "toDo": line.to_do} for line in lines]
    return json.dumps({"fit": is_fit(lines), "lines": told}, indent=2)
