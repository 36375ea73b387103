"""JSON Patch (RFC 6902), as much of it as is sent: `add`, `replace`, `remove`; and reaching into plain dicts.

The API server refuses the pod, whatever the failure policy, if an operation does not apply: so patches
are computed from what the object has, and applied here before they are answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.errors import WebhookError

Json = Any
Operation = dict[str, Any]
Path = tuple[str, ...]


class PatchError(WebhookError):
    """A patch does not apply, or does not do what was decided; the text says which operation or rule."""


def pointer(path: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path: `~` and `/` within a key are escaped."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def duplicate(document: Json) -> Json:
    """A copy that shares nothing, not even with itself: an object that YAML anchors put in two places becomes two."""
    if isinstance(document, dict):
        return {key: duplicate(value) for key, value in document.items()}
    if isinstance(document, list):
        return [duplicate(value) for value in document]
    return document


def put(document: dict[str, Json], path: Path, value: Json) -> None:
    """Set the value at a path of keys in place, making parents that are missing or null.

    Raises PatchError where a parent is something other than an object.
    """
    *parents, last = path
    for position, key in enumerate(parents):
        if document.get(key) is None:
            document[key] = {}
        if not isinstance(document[key], dict):
            raise PatchError(f"{'.'.join(path[: position + 1])} is not an object")
        document = document[key]
    document[last] = value


def difference(before: Json, after: Json) -> list[Operation]:
    """The operations that turn `before` into `after`; none if they are equal.

    Objects are changed key by key. Elements that a list keeps at its beginning and its end are not
    touched: what was appended is an `add`, what was edited is changed in place.
    """
    return list(_difference(before, after, ()))


def apply(document: Json, operations: Sequence[Operation]) -> Json:
    """A copy of `document` with the operations applied in order; raises PatchError if one does not apply."""
    root = {"": duplicate(document)}
    for operation in operations:
        _apply_one(root, operation)
    return root[""]


def _difference(before: Json, after: Json, path: tuple[str | int, ...]) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _object_difference(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_difference(before, after, path)
    elif before != after:
        # A member that is null is `add`ed: some take it for absent. In a list `add` would insert.
        null_member = before is None and not (path and isinstance(path[-1], int))
        verb = "add" if null_member else "replace"
        yield {"op": verb, "path": pointer(path), "value": duplicate(after)}


def _object_difference(
    before: dict[str, Json], after: dict[str, Json], path: tuple[str | int, ...]
) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": pointer((*path, key))}
    for key, value in after.items():
        if key in before:
            yield from _difference(before[key], value, (*path, key))
        else:
            yield {"op": "add", "path": pointer((*path, key)), "value": duplicate(value)}


def _list_difference(before: list[Json], after: list[Json], path: tuple[str | int, ...]) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    edited = shorter - tail
    for index in range(head, edited):
        yield from _difference(before[index], after[index], (*path, index))
    # From the highest index down, so that a removal does not move the next one.
    for index in reversed(range(edited, len(before) - tail)):
        yield {"op": "remove", "path": pointer((*path, index))}
    for index in range(edited, len(after) - tail):
        place: str | int = index if tail else "-"
        yield {"op": "add", "path": pointer((*path, place)), "value": duplicate(after[index])}


def _apply_one(root: dict[str, Json], operation: Operation) -> None:
    verb, path = operation["op"], operation["path"]
    parent: Json = root
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    for step in steps[:-1]:
        parent = parent[_place(parent, step, operation)]
    place = _place(parent, steps[-1], operation, new=verb == "add")
    if verb == "remove":
        del parent[place]
    elif verb == "add" and isinstance(parent, list):
        parent.insert(place, duplicate(operation["value"]))
    elif verb in ("add", "replace"):
        parent[place] = duplicate(operation["value"])
    else:
        raise PatchError(f"{verb} {path}: an operation that is not used here")


def _place(parent: Json, step: str, operation: Operation, *, new: bool = False) -> Any:
    """The key or index that a step means in `parent`; with `new`, one that need not exist yet."""
    if isinstance(parent, dict) and (new or step in parent):
        return step
    if isinstance(parent, list):
        index = len(parent) if new and step == "-" else _index(step)
        if 0 <= index < len(parent) + new:
            return index
    raise PatchError(f"{operation['op']} {operation['path']}: there is no such place in the object")


def _index(step: str) -> int:
    """A list index as RFC 6901 writes it (no sign, no leading zero); -1 for anything else."""
    return int(step) if step.isascii() and step.isdigit() and (step == "0" or step[0] != "0") else -1
