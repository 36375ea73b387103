"""What went wrong when a file was made, seen by what is in it: kubectl's own messages, or an end that is missing."""

from __future__ import annotations

import re
from typing import Final

# How kubectl's messages begin; lines of an object that begin so are indented, or have a colon right behind a key.
_MESSAGE: Final = re.compile(
    r"^(Error from server\b|[Ee]rror: |No resources found\b|Unable to connect to the server\b|The connection to the "
    r"server\b|the server doesn't have a resource\b|Unable to use a TTY\b|Warning: |[EW]\d{4} \d\d:\d\d:\d\d).*$",
    re.MULTILINE,
)
_SHOWN: Final = 200
# Characters behind a syntax error that are still its last word.
_LAST_WORD: Final = 8
CUT_OFF: Final = "; was the file cut off?"


def kubectl_message(text: str) -> str:
    """What is said of a text in which kubectl printed a message instead of an object; "" where none is found."""
    found = _MESSAGE.search(text)
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    said = "".join(each if each.isprintable() else " " for each in found[0])
    shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}.."
    return f"line {line} is a message of kubectl, and no object: {shown!r}; mend what it says, then make the file anew"


def ends_too_early(text: str, position: int) -> bool:
    """Whether a syntax error at this position (characters) is that the text ends there."""
    return len(text.rstrip()) - position <= _LAST_WORD
