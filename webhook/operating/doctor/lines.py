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
    """One line. `to_do` is "" where nothing has to be done; `unread`: the check could not be made."""

    level: Level
    about: str
    found: str
    to_do: str = ""
    unread: bool = False


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


def unread(about: str, found: str, to_do: str) -> Line:
    """It may hurt, and nobody knows: what had to be read could not be."""
    return Line(Level.WARN, about, found, to_do, unread=True)


def verdict(lines: Sequence[Line]) -> str:
    """All lines in one sentence."""
    failing = [line.about for line in lines if line.level is Level.FAIL]
    blind = [line.about for line in lines if line.unread]
    warned = sum(line.level is Level.WARN and not line.unread for line in lines)
    parts = [f"{len(failing)} fail ({', '.join(failing)})" if failing else "nothing that was checked fails"]
    parts += [f"{warned} warn" if warned else "", f"not checked: {', '.join(blind)}" if blind else ""]
    return "; ".join(filter(None, parts))


def exit_code(lines: Sequence[Line]) -> int:
    """0 if nothing fails and all was checked, 1 if something fails, 3 if something could not be checked."""
    if not is_fit(lines):
        return 1
    return 3 if any(line.unread for line in lines) else 0


def is_fit(lines: Iterable[Line]) -> bool:
    """Whether nothing fails."""
    return all(line.level is not Level.FAIL for line in lines)


def as_json(lines: Sequence[Line]) -> str:
    """The lines as one JSON object."""
    told = [{"level": line.level.value, "about": line.about, "found": line.found, "toDo": line.to_do} for line in lines]
    return json.dumps({"fit": is_fit(lines), "verdict": verdict(lines), "lines": told}, indent=2)
