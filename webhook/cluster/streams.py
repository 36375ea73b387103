"""Answers that are read while they come: long lists, one item at a time, and watches, one line at a time.

A list of 20,000 pods is some 150 MB of JSON and several times that as Python objects. Read so, no more of it
is held at once than a chunk and the item at its end.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

MOST_HELD: Final = 8 << 20
"""No object may be longer than this: etcd takes 1.5 MiB. A server that sends more is none."""

_CHUNK: Final = 1 << 18
_WHITESPACE: Final = " \t\n\r"
_DECODER: Final = json.JSONDecoder()


def lines_in(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that are not empty, each as soon as it is complete. ValueError for a last one that is not."""
    held = b""
    for chunk in chunks:
        *complete, held = (held + chunk).split(b"\n")
        yield from filter(None, complete)
        if len(held) > MOST_HELD:
            raise ValueError("a line is too long")
    if held:
        raise ValueError("the last line is not complete")


def read_list(chunks: Iterable[bytes], visit: Callable[[Any], object]) -> dict[str, Any]:
    """Visit each element of the member `items` of a JSON object, and return its other members.

    Raises ValueError or RecursionError for what is no such object; some items may have been visited then.
    """
    text = _Text(chunks)
    others: dict[str, Any] = {}
    text.take("{")
    for _ in text.until("}"):
        key = text.value()
        text.take(":")
        if key == "items" and text.next() == "[":
            text.take("[")
            for _ in text.until("]"):
                visit(text.value())
        else:
            others[key] = text.value()
    text.finish()
    return others


class _Text:
    """JSON that comes in chunks, and how far it has been read."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._decoder = getincrementaldecoder("utf-8")()
        self._held = ""
        self._at = 0
        self._ended = False

    def finish(self) -> None:
        """Read to the end. Raises ValueError if something comes that is no white space."""
        while not self._ended:
            self._read_on()
        if self._held[self._at :].strip(_WHITESPACE):
            raise ValueError("something follows the answer")

    def next(self) -> str:
        """The next character that is no white space. Raises ValueError at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in _WHITESPACE:
                    return self._held[self._at]
                self._at += 1
            if self._ended:
                raise ValueError("the answer is not complete")
            self._read_on()

    def take(self, wanted: str) -> None:
        """Go past a character that must come next."""
        if self.next() != wanted:
            raise ValueError(f"{wanted} is missing")
        self._at += 1

    def until(self, closing: str) -> Iterator[None]:
        """Once for each element, which must be read before the next, up to the closing bracket and past it."""
        if self.next() != closing:
            yield
            while self.next() == ",":
                self._at += 1
                yield
        self.take(closing)

    def value(self) -> Any:
        """The value that comes next."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except ValueError:
                if self._ended:
                    raise
            else:
                # What ends with what is held may go on: of "12" there may be "1" so far.
                if end < len(self._held) or self._ended:
                    self._at = end
                    return value
            self._read_on()

    def _read_on(self) -> None:
        """Hold at least a chunk more, and twice as much: else a long value would be tried again all too often."""
        held = [self._held[self._at :]]
        if len(held[0]) > MOST_HELD:
            raise ValueError("an object is too long")
        missing = max(_CHUNK, len(held[0]))
        while missing > 0 and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            text = self._decoder.decode(chunk or b"", final=self._ended)
            held.append(text)
            missing -= len(text)
        self._held, self._at = "".join(held), 0
