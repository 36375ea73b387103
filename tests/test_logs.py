"""Log lines: one line each, with the fields of a decision, and nothing that must not be there."""

from __future__ import annotations

import io
import json
import logging
import sys
from typing import Any

import pytest

from webhook.logs import DecisionLine, configure, log_decision
from webhook.settings import LogFormat

LINE = DecisionLine(
    uid="u-1",
    namespace="t1",
    pod="db-tikv-0",
    group="t1/db/tikv",
    node="n1",
    outcome="pinned",
    cause="",
    lock_wait_ms=12.3456,
    rounds=1,
)
UNTOUCHED = DecisionLine(
    uid="u-2", namespace="t1", pod="web-", group="", node="", outcome="untouched", cause="NotAMember"
)


def logger_to(form: LogFormat) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    configure(form, stream)
    return logging.getLogger("webhook.admission"), stream


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def json_of(stream: io.StringIO) -> dict[str, Any]:
    (line,) = lines_of(stream)
    fields: dict[str, Any] = json.loads(line)
    return fields


def test_a_decision_is_one_json_line_with_all_its_keys():
    logger, stream = logger_to(LogFormat.JSON)

    log_decision(logger, LINE)

    fields = json_of(stream)
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "info",
        "logger": "webhook.admission",
        "message": "decided",
        "uid": "u-1",
        "namespace": "t1",
        "pod": "db-tikv-0",
        "group": "t1/db/tikv",
        "node": "n1",
        "outcome": "pinned",
        "cause": "",
        "lock_wait_ms": 12.3,
        "rounds": 1,
    }


def test_a_decision_is_one_text_line_without_what_is_empty():
    logger, stream = logger_to(LogFormat.TEXT)

    log_decision(logger, UNTOUCHED, "not a member")

    (line,) = lines_of(stream)
    assert line.partition("Z ")[2] == (
        "INFO    not a member uid=u-2 namespace=t1 pod=web- outcome=untouched cause=NotAMember "
        "lock_wait_ms=0.0 rounds=0"
    )


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\nb\r\nc", id="line ends"),
        pytest.param("a\x1b[31mred\x07", id="terminal escapes"),
        pytest.param("a\u2028b\u2029c\x85d", id="other line ends"),
        pytest.param("a\u202eb", id="direction marks"),
        pytest.param("a\ud800b", id="lone surrogate"),
        pytest.param("数据库 ☃ 🐘", id="other scripts"),
        pytest.param("a\x00b", id="NUL"),
    ],
)
def test_any_text_stays_on_one_line(form: LogFormat, text: str):
    logger, stream = logger_to(form)

    logger.warning("found %s", text, extra={})
    log_decision(logger, DecisionLine(text, text, text, text, text, text, text))

    assert len(lines_of(stream)) == 2
    stream.getvalue().encode("utf-8")
    assert not set(stream.getvalue()) & set("\x00\x07\x1b\r\u202e")


def test_values_with_spaces_or_quotes_are_quoted_in_text():
    logger, stream = logger_to(LogFormat.TEXT)

    log_decision(logger, DecisionLine("u", "t1", 'a "b" c', "k=v", "n\\1", "x", "y"))

    assert r'pod="a \"b\" c" group="k=v" node="n\\1"' in stream.getvalue()


def fail() -> None:
    raise ValueError("first\nsecond")


@pytest.mark.parametrize("form", LogFormat)
def test_a_traceback_stays_on_the_line(form: LogFormat):
    logger, stream = logger_to(form)

    try:
        fail()
    except ValueError:
        logger.exception("went wrong")

    (line,) = lines_of(stream)
    assert "went wrong" in line
    assert "in fail" in line
    assert "ValueError: first" in line


def test_a_long_message_keeps_both_ends():
    logger, stream = logger_to(LogFormat.JSON)

    logger.info("begin %s end", "x" * 10_000)

    message = json_of(stream)["message"]
    assert len(message) < 4_200
    assert message.startswith("begin xxx")
    assert message.endswith("xxx end")
    assert "characters left out" in message


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("Bearer abc.def-123_x/y+z==", id="header"),
        pytest.param("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrIn0.c2lnbmF0dXJl", id="service account token"),
    ],
)
def test_credentials_in_foreign_texts_are_blotted_out(form: LogFormat, secret: str):
    logger, stream = logger_to(form)

    try:
        raise ValueError(f"401 for headers {{'authorization': '{secret}'}}")
    except ValueError:
        logger.exception("refused: %s", secret)

    assert secret.split()[-1] not in stream.getvalue()
    assert stream.getvalue().count("***") == 2


@pytest.mark.parametrize("form", LogFormat)
def test_extras_of_others_are_not_written(form: LogFormat):
    logger, stream = logger_to(form)

    logger.info("hello", extra={"review": {"secret": "s3cret"}})

    assert "s3cret" not in stream.getvalue()


def test_configuring_twice_writes_each_line_once():
    configure(LogFormat.JSON, io.StringIO())
    logger, stream = logger_to(LogFormat.TEXT)

    logger.info("hello")
    logger.debug("not this")

    assert [line.rpartition(" ")[2] for line in lines_of(stream)] == ["hello"]


def test_standard_error_is_where_lines_go(capsys: pytest.CaptureFixture[str]):
    configure(LogFormat.TEXT)
    logging.getLogger("webhook").info("hello")

    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("hello\n")
    assert sys.stderr is not None
