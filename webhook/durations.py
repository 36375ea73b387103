"""Lengths of time as people and the API server write them, in seconds here."""

from __future__ import annotations

import re
from typing import Final

# The units of Go's time.ParseDuration; both micro signs occur in the wild.
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_GO_DURATION: Final = re.compile(rf"\+?(?:{_PART})+", re.ASCII)
_PARTS: Final = re.compile(_PART, re.ASCII)
_PLAIN_NUMBER: Final = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
# No length of time that means anything takes more characters; a longer text costs time to no end.
_LONGEST: Final = 64


def parse_go_duration(text: str) -> float | None:
    """Seconds of a Go duration such as "10s", "1m0.5s" or "500ms"; None for anything else, also "-1s"."""
    if len(text) > _LONGEST or not _GO_DURATION.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(text))


def parse_seconds(text: str) -> float | None:
    """Seconds of a plain number ("90", "0.5") or a Go duration ("1m30s"); None for anything else."""
    if len(text) <= _LONGEST and _PLAIN_NUMBER.fullmatch(text):
        return float(text)
    return parse_go_duration(text)
