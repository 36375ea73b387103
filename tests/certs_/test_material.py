"""The Secret's form."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

from certs.authority import Pair
from certs.material import EMPTY, Material, Retired, data_of, material_from

UNTIL = datetime(2026, 9, 16, tzinfo=UTC)
FULL = Material(
    Pair(b"ca", b"1"), Pair(b"tls", b"2"), Pair(b"next", b"3"), Pair(b"nt", b"4"), (Retired(b"old", UNTIL),)
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("material", [EMPTY, FULL, Material(authority=Pair(b"ca", b"1"))])
def test_what_is_written_is_read_back(material: Material) -> None:
    assert material_from(data_of(material)) == material


def test_every_name_is_written_so_that_a_merge_patch_removes_what_is_over() -> None:
    assert set(data_of(EMPTY)) == set(data_of(FULL))
    assert set(data_of(EMPTY).values()) == {None}


@pytest.mark.parametrize(
    "retired",
    ["no json", "7", '["a"]', '[{"certificate": 7, "until": ""}]', '[{"certificate": "a", "until": "soon"}]', "[{}]"],
)
def test_retired_authorities_that_cannot_be_read_are_none(retired: str) -> None:
    assert material_from({"retired.json": encoded(retired)}) == EMPTY


@pytest.mark.parametrize("data", [None, {}, {"ca.crt": "%%%"}, {"ca.crt": 7}, {"foreign": encoded("x")}])
def test_what_is_no_material_of_ours_is_empty(data: dict[str, object] | None) -> None:
    assert material_from(data) == EMPTY


def test_half_a_pair_is_kept_for_judgement() -> None:
    assert material_from({"ca.crt": encoded("x")}) == Material(authority=Pair(b"x", b""))
