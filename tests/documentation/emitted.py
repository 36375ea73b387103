"""Every message that the product can emit, as it stands in the code: what is filled in is "…"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from webhook.core.findings import FindingKind
from webhook.core.remedies import NO_NODES, OBSTACLES, TOO_LARGE
from webhook.core.texts import HOME_IS_FULL, HOME_IS_TAKEN, NONE_CAN, RETURNED_IN_DOUBT, TEXTS

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("webhook", "certs")
CHART: Final = ROOT / "charts" / "tidb-ha-webhook" / "templates"
FILLED_IN: Final = "…"

# Whose first words reach a user: errors of ours and what click prints; log lines of level warning and above; the
# details of answers that cannot be understood; the lines of `doctor` that ask for something.
ERRORS: Final = re.compile(r"(?!Patch|Value|OS|HTTP|MarkedYAML|BlockingIO)[A-Z]\w*(Error|Exception)|NoAnswer|Refusal")
LOGGED: Final = ("warning", "error", "exception")
DETAILS: Final = ("unknown", "OutOfTime", "UnsupportedMediaType")
DOCTOR: Final = ("warn", "fail")
# Answers of the embedded cluster in an API server's words, and what a stranger's defect is called.
NOT_OURS: Final = ("webhook/demo/server.py", "webhook/errors.py")
_WORDS: Final = re.compile(r"[A-Za-z]{2,}")
_REFUSALS: Final = re.compile(r'\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"')


@cache
def messages() -> dict[str, str]:
    """Each message with a place where it comes from."""
    found: dict[str, str] = {}
    for text, place in (*_of_code(), *_of_tables(), *_of_chart()):
        normal = normalised(text)
        if len(_WORDS.findall(normal)) > 1:
            found.setdefault(normal, place)
    return found


def normalised(text: str) -> str:
    """A message on one line, whatever is filled in as one mark."""
    text = re.sub(r"%[srd]|%\([a-z]+\)s|%[.\d]*f", FILLED_IN, text)
    return re.sub(rf"{FILLED_IN}[{FILLED_IN}]+", FILLED_IN, " ".join(text.split()))


def _of_code() -> Iterator[tuple[str, str]]:
    for package in CODE:
        for path in sorted((ROOT / package).rglob("*.py")):
            place = str(path.relative_to(ROOT))
            if place not in NOT_OURS:
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.Call):
                        yield from ((text, place) for text in _told_by(node, place))


def _told_by(call: ast.Call, place: str) -> Iterator[str]:
    name = _name_of(call.func)
    arguments = [_template(argument) for argument in call.args]
    details = [_template(keyword.value) for keyword in call.keywords if keyword.arg == "detail"]
    if name in DOCTOR and place.startswith("webhook/operating/doctor"):
        yield from filter(None, arguments[1:2])
    elif name in DETAILS or ERRORS.fullmatch(name) or (name in LOGGED and _is_logger(call.func)):
        yield from filter(
            None, (*arguments[:1], *arguments[2:3], *details) if name == "ClusterError" else arguments[:1]
        )
    else:
        yield from filter(None, details if name in ("Conflict", "NotFound") else ())


def _name_of(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _is_logger(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "logger"
    )


def _template(node: ast.expr) -> str:
    """The text of an expression, "" where there is none of ours in it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) or FILLED_IN for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (_template(node.left) or FILLED_IN) + (_template(node.right) or FILLED_IN)
    return ""


def _of_tables() -> Iterator[tuple[str, str]]:
    for cause, text in TEXTS.items():
        yield text.why, f"webhook/core/texts.py, {cause.name}"
        yield text.short, f"webhook/core/texts.py, {cause.name}"
    yield NONE_CAN, "webhook/core/texts.py"
    for said in (RETURNED_IN_DOUBT, HOME_IS_FULL, HOME_IS_TAKEN):
        yield said.why, "webhook/core/texts.py"
        yield said.short, "webhook/core/texts.py"
    for remedy in (*(obstacle.remedy for obstacle in OBSTACLES), NO_NODES, TOO_LARGE):
        yield remedy.short, "webhook/core/remedies.py"
    for kind in FindingKind:
        yield f"finding {kind.value}", "webhook/core/findings.py"


def _of_chart() -> Iterator[tuple[str, str]]:
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            for found in _REFUSALS.finditer(path.read_text()):
                yield found[1], str(path.relative_to(ROOT))
