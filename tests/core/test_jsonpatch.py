"""JSON Patch: pointers, the difference of two documents, and applying."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.jsonpatch import PatchError, apply, difference, pointer, put

_NAMES = st.text("ab~/01-", max_size=2)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.text("ab~/", max_size=3),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(_NAMES, children, max_size=3),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(_NAMES, _VALUES, max_size=4)


@given(_DOCUMENTS, _DOCUMENTS)
def test_a_difference_turns_one_document_into_the_other_by_a_strict_library_and_by_ours(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    kept = copy.deepcopy(before)
    operations = difference(before, after)
    assert jsonpatch.JsonPatch(operations).apply(before) == after
    assert apply(before, operations) == after
    assert before == kept


@given(_DOCUMENTS)
def test_equal_documents_have_no_difference(document: dict[str, Any]) -> None:
    assert difference(document, copy.deepcopy(document)) == []


def test_slash_and_tilde_in_a_key_are_escaped() -> None:
    assert pointer(("metadata", "a/b~c", 0, "-")) == "/metadata/a~1b~0c/0/-"


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        pytest.param([1, 2], [1, 2, 3], [("add", "/x/-", 3)], id="appended at the end"),
        pytest.param([1, 3], [1, 2, 3], [("add", "/x/1", 2)], id="inserted before what is kept"),
        pytest.param([1, 2, 3], [1, 4, 3], [("replace", "/x/1", 4)], id="edited in place"),
        pytest.param(
            [1, 2, 3, 4], [1, 4], [("remove", "/x/2", None), ("remove", "/x/1", None)], id="removed from behind"
        ),
        pytest.param([None], [1], [("replace", "/x/0", 1)], id="a null element is replaced, not pushed along"),
        pytest.param(None, {}, [("add", "/x", {})], id="a null member is added"),
        pytest.param("a", "b", [("replace", "/x", "b")], id="a value is replaced"),
    ],
)
def test_a_difference_touches_only_what_differs(
    before: Any, after: Any, operations: list[tuple[str, str, Any]]
) -> None:
    expected = [
        {"op": verb, "path": path} | ({} if verb == "remove" else {"value": value}) for verb, path, value in operations
    ]
    assert difference({"x": before}, {"x": after}) == expected


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "add", "path": "/none/x", "value": 1}, id="missing parent"),
        pytest.param({"op": "add", "path": "/null/x", "value": 1}, id="null parent"),
        pytest.param({"op": "add", "path": "/list/3", "value": 1}, id="index past the end"),
        pytest.param({"op": "add", "path": "/list/01", "value": 1}, id="index with a leading zero"),
        pytest.param({"op": "add", "path": "/list/-1", "value": 1}, id="negative index"),
        pytest.param({"op": "replace", "path": "/list/-", "value": 1}, id="replacing what is past the end"),
        pytest.param({"op": "replace", "path": "/none", "value": 1}, id="replacing what is missing"),
        pytest.param({"op": "remove", "path": "/none"}, id="removing what is missing"),
        pytest.param({"op": "remove", "path": "/list/2"}, id="removing past the end"),
        pytest.param({"op": "add", "path": "/text/x", "value": 1}, id="a parent that is a string"),
        pytest.param({"op": "move", "path": "/null", "from": "/list"}, id="an operation that is never sent"),
    ],
)
def test_an_operation_that_does_not_apply_is_an_error_that_names_it(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchError, match=f"{operation['op']} {operation['path']}"):
        apply({"null": None, "list": [1, 2], "text": "t"}, [operation])


def test_put_makes_missing_and_null_parents() -> None:
    document: dict[str, Any] = {"a": None}
    put(document, ("a", "b", "c"), 1)
    assert document == {"a": {"b": {"c": 1}}}


def test_put_does_not_overwrite_a_parent_of_another_kind() -> None:
    with pytest.raises(PatchError, match=r"a\.b is not an object"):
        put({"a": {"b": "text"}}, ("a", "b", "c"), 1)
