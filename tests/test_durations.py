"""Lengths of time in text."""

from __future__ import annotations

import pytest

from webhook.durations import parse_go_duration, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("1m0.5s", 60.5),
        ("500ms", 0.5),
        ("1h2m3s", 3723.0),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("2.s", 2.0),
        ("+3s", 3.0),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("5μs", 5e-6),
        ("7ns", 7e-9),
        ("0s", 0.0),
    ],
)
def test_a_go_duration_is_read_as_seconds(text: str, seconds: float):
    assert parse_go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10",
        "s",
        ".s",
        "-1s",
        "10 s",
        "10s ",
        "10s\n",
        "10S",
        "1d",
        "1m30",
        "1e3s",
        "nan",
        "infs",
        "١s",
        "9" * 99 + "s",
    ],
)
def test_anything_else_is_no_go_duration(text: str):
    assert parse_go_duration(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("0.5", 0.5), ("0", 0.0), ("1m30s", 90.0), ("500ms", 0.5)],
)
def test_for_people_a_plain_number_is_seconds(text: str, seconds: float):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "-5", "five", "1e9", "nan", "inf", "0x10", "1_000", "9" * 99])
def test_anything_else_is_no_length_of_time(text: str):
    assert parse_seconds(text) is None
