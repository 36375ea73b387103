"""Reading untrusted JSON: each function gives the wanted shape, or its empty value for anything else.

Objects come from other people's clusters and from dumps; lists may be null, fields absent or of a wrong
type. Nothing in here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.objects import EMPTY


def mapping(raw: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return raw if isinstance(raw, Mapping) else EMPTY


def items(raw: object) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    return raw if isinstance(raw, list) else []


def text(raw: object) -> str:
    """The value if it is a string, else ""."""
    return raw if isinstance(raw, str) else ""


def texts(raw: object) -> Mapping[str, str]:
    """The string members of a JSON object, as labels and annotations are; others are left out."""
    found = {key: value for key, value in mapping(raw).items() if isinstance(key, str) and isinstance(value, str)}
    return found or EMPTY


def strings(raw: object) -> tuple[str, ...]:
    """The strings of a JSON array in order; others are left out."""
    return tuple(item for item in items(raw) if isinstance(item, str))


def integer(raw: object) -> int | None:
    """The value if it is a whole number (a JSON `true` is none), else None."""
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def is_unicode(text: str) -> bool:
    """Whether it can be written anywhere: JSON can hold half of a surrogate pair, UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def inside(raw: object, *path: str) -> Any:
    """What lies at the path of keys inside nested JSON objects, None where the path ends early."""
    for key in path:
        raw = mapping(raw).get(key)
    return raw
