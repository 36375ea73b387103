"""Names that do not exist, and those that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from webhook.errors import SettingsError

SHOWN: Final = 5
# Of two names whose ends differ, such as two ordinals, this much is equal.
CLOSE_ENOUGH: Final = 0.6


def no_such(kind: str, name: str, existing: Iterable[str], where: str = "") -> SettingsError:
    """The error for a name that does not exist, with near matches; `where` such as "in namespace t1"."""
    place = f" {where}" if where else ""
    known = sorted(set(existing))
    return SettingsError(f"there is no {kind} {name!r}{place}; {_instead(kind, name, known)}")


def _instead(kind: str, name: str, known: Sequence[str]) -> str:
    if not known:
        return f"there is no {kind} at all"
    near = get_close_matches(name, known, n=SHOWN, cutoff=CLOSE_ENOUGH)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"there are {', '.join(known[:SHOWN])}{more}"
