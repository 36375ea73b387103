"""JSON lists and lines that come in parts, at the places where the parts meet."""

from __future__ import annotations

import json
from itertools import chain, repeat

import pytest

from webhook.cluster.streams import lines_in, read_list

LONG = "ü" * 300_000
"""Longer than what is read at a time, so that a part ends where a value does."""


def read(*parts: bytes) -> tuple[list[object], dict[str, object]]:
    visited: list[object] = []
    others = read_list(iter(parts), visited.append)
    return visited, others


def test_what_is_not_the_items_is_returned() -> None:
    assert read(b'{"a": 1, "items": [1, "b", null], "c": {"items": [2]}}') == (
        [1, "b", None],
        {"a": 1, "c": {"items": [2]}},
    )


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_number_at_the_end_of_a_part_may_go_on_in_the_next(cut: int) -> None:
    text = json.dumps({"a": LONG, "items": [12, 345]}, ensure_ascii=False).encode()
    assert read(text[:-cut], text[-cut:]) == ([12, 345], {"a": LONG})


def test_white_space_may_follow_in_parts_of_its_own() -> None:
    assert read(b'{"a": "' + LONG.encode() + b'"}', b"\n", b" ") == ([], {"a": LONG})


def test_a_long_value_in_many_parts_is_read() -> None:
    text = json.dumps({"items": [LONG, LONG]}).encode()
    assert read(*(text[at : at + 1000] for at in range(0, len(text), 1000))) == ([LONG, LONG], {})


def test_each_item_is_visited_before_the_next_part_is_asked_for() -> None:
    visited: list[object] = []

    def parts() -> object:
        yield b'{"items": ["' + LONG.encode() + b'", '
        # The first item was complete before this part was needed.
        assert visited == [LONG]
        yield b"2]}"

    read_list(parts(), visited.append)  # type: ignore[arg-type]
    assert visited == [LONG, 2]


@pytest.mark.parametrize("text", [b'{"a": nul', b'{"a": 1} {', b'{"a" 1}', b'{"a": [1,]}', b"{1: 2"])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(text)


def test_what_is_longer_than_any_object_is_given_up_before_it_ends() -> None:
    with pytest.raises(ValueError, match="an object is too long"):
        read_list(chain([b'{"a": "'], repeat(b"x" * 100_000)), print)
    with pytest.raises(ValueError, match="a line is too long"):
        list(lines_in(repeat(b"x" * 100_000)))


def test_lines_come_when_they_are_complete_and_empty_ones_do_not() -> None:
    assert list(lines_in([b"a", b"b\n", b"\n\nc\nd", b"\n"])) == [b"ab", b"c", b"d"]


def test_half_a_line_at_the_end_is_no_line() -> None:
    lines = lines_in([b"a\nb"])
    assert next(lines) == b"a"
    with pytest.raises(ValueError, match="not complete"):
        next(lines)
