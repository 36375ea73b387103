"""The chart's files, without Helm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CHART = Path(__file__).resolve().parents[2] / "charts" / "tidb-ha-webhook"
VALUES = CHART / "values.yaml"

_COMMENT = re.compile(r"\s*# (-- )?(.*)")
_KEY = re.compile(r"( *)([\w.]+):")


def described() -> dict[tuple[str, ...], str]:
    """The path of each key that has a comment beginning with --, and that comment."""
    found: dict[tuple[str, ...], str] = {}
    path: list[str] = []
    comment: list[str] = []
    for line in VALUES.read_text().splitlines():
        if match := _COMMENT.fullmatch(line):
            if match[1] or comment:
                comment = [match[2]] if match[1] else [*comment, match[2]]
        elif match := _KEY.match(line):
            path = [*path[: len(match[1]) // 2], match[2]]
            if comment:
                found[tuple(path)] = " ".join(comment)
            comment = []
    return found


def leaves(values: Mapping[str, Any], stop: Mapping[tuple[str, ...], str]) -> Iterator[tuple[str, ...]]:
    """The paths that have no keys below them that anybody explains."""

    def walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if path in stop or not isinstance(node, dict) or not node:
            yield path
            return
        for key, child in node.items():
            yield from walk(child, (*path, key))

    return walk(values, ())


def table(values: Mapping[str, Any]) -> str:
    """The table of values as README.md has it."""
    rows = ["| Key | Default | What |", "|---|---|---|"]
    for path, text in described().items():
        default: Any = values
        for key in path:
            default = default[key]
        rows.append(f"| `{'.'.join(path)}` | `{json.dumps(default, ensure_ascii=False)}` | {text} |")
    return "\n".join(rows) + "\n"
