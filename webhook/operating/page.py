"""Text for a terminal: an answer, then sections of bounded length."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

WIDTH: Final = 118
_INDENT: Final = "  "


class Page:
    """Collects lines of at most `WIDTH` characters, and at most `most` of them in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: list[str] = []

    def answer(self, headline: str, facts: Iterable[tuple[str, str]]) -> None:
        """What the user asked for, a line each, however long: whoever reads one line must have read it."""
        given = [(name, one_line(said)) for name, said in facts if said]
        width = max((len(name) for name, _ in given), default=0)
        self._lines += [one_line(headline), *(f"{_INDENT}{name:<{width}}  {said}" for name, said in given)]

    def section(self, title: str, lines: Sequence[str], *, most: int) -> None:
        """A titled list of lines, of which at most `most` are shown after they are broken; none at all: no title."""
        if not lines:
            return
        broken = [part for line in lines for part in _broken(one_line(line))]
        left_out = len(broken) - most
        if left_out > 0:
            broken = [*broken[: most - 1], f"{_INDENT}… {left_out + 1} more lines"]
        self._lines += ["", title, *broken]

    def text(self) -> str:
        """All lines."""
        if len(self._lines) <= self._most:
            return "\n".join(self._lines)
        return "\n".join([*self._lines[: self._most - 1], f"… {len(self._lines) - self._most + 1} more lines"])


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence, the first few of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def one_line(text: str) -> str:
    """A text of foreign origin on one line, without anything that a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def _broken(line: str) -> list[str]:
    return textwrap.wrap(
        line,
        WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT * 3,
        drop_whitespace=True,
        break_on_hyphens=False,
        replace_whitespace=False,
    ) or [""]
