"""Log lines: one line per record, one record per decision, in JSON or as text, on standard error.

Only the fields listed here leave the process. A whole review, a token or an environment variable is never
among them, and what looks like a bearer token in a foreign error's text is blotted out.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from webhook.settings import LogFormat

# The attribute of a LogRecord that carries the fields; anything else given by `extra` is not written.
_FIELDS: Final = "tidb_ha_fields"
# Long enough for any sentence of ours, short enough that nobody's payload fills the log.
_LONGEST_MESSAGE: Final = 4_096
_LONGEST_TRACEBACK: Final = 16_384
# An Authorization header's token, or a JSON Web Token anywhere.
_TOKEN: Final = re.compile(r"(?i)\bbearer\s+[\w.~+/=-]+|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
# What would end the line, or drive the terminal: control characters, separators, direction marks, surrogates.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PLAIN_VALUE: Final = re.compile(r"[^\s\"=\\]+")


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """What the log says about one review; `lock_wait_ms` is in milliseconds, `pod` a name or its prefix."""

    uid: str
    namespace: str
    pod: str
    group: str
    node: str
    outcome: str
    cause: str
    lock_wait_ms: float = 0.0
    rounds: int = 0


def log_decision(logger: logging.Logger, line: DecisionLine, message: str = "decided") -> None:
    """Log the one line of a decision."""
    fields = asdict(line)
    fields["lock_wait_ms"] = round(line.lock_wait_ms, 1)
    logger.info(message, extra={_FIELDS: fields})


class JsonFormatter(logging.Formatter):
    """One JSON object per line, in ASCII: `time`, `level`, `logger`, `message`, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_fields(record),
        }
        if traceback := _traceback(self, record):
            line["traceback"] = traceback
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """Time, level, message and the fields that are not empty as key=value; line ends are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        parts = [_time(record), f"{record.levelname:<7}", _message(record)]
        parts += [f"{key}={_quoted(value)}" for key, value in _fields(record).items() if value != ""]
        if traceback := _traceback(self, record):
            parts.append(f"traceback={_quoted(traceback)}")
        return _UNPRINTABLE.sub(_escape, " ".join(parts))


def configure(log_format: LogFormat, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send every logger's records to `stream` (standard error) in this format, and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    return _blot(record.getMessage(), _LONGEST_MESSAGE)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, _FIELDS, {})
    return fields


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return _blot(formatter.formatException(record.exc_info), _LONGEST_TRACEBACK) if record.exc_info else ""


def _blot(text: str, longest: int) -> str:
    """The text without credentials; of a text that is too long both ends, since the cause stands last."""
    text = _TOKEN.sub("***", text)
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def _quoted(value: object) -> str:
    text = str(value)
    return text if _PLAIN_VALUE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")
