"""What happened in the embedded cluster, for its watches: the latest events, as an API server's cache keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from threading import Condition
from time import monotonic
from typing import Final

from webhook.cluster.api_errors import error_for
from webhook.cluster.creation import api_version
from webhook.cluster.door import EventType, Manifest, Resource, WatchEvent

KEPT: Final = 2048
"""Events that are kept; whoever watches from before them has to list again."""


class History:
    """Events in the order of their versions."""

    def __init__(self, version: int, changed: Condition, kept: int = KEPT) -> None:
        """`version`: the one before the first event. `changed`: the condition that the owner's lock belongs to."""
        self._begins_at = self._version = version
        self._changed = changed
        self._kept = kept
        self._events: deque[tuple[int, Resource, WatchEvent]] = deque()

    def add(self, version: int, resource: Resource, kind: EventType, manifest: Manifest) -> None:
        """Tell an event of this version, which is higher than any before."""
        with self._changed:
            self._version = version
            self._events.append((version, resource, WatchEvent(kind, manifest)))
            if len(self._events) > self._kept:
                self._begins_at = self._events.popleft()[0]
            self._changed.notify_all()

    def follow(self, resource: Resource, version: int, seconds: float) -> Iterator[WatchEvent]:
        """The events of a resource after this version as they happen, for so long, then a bookmark.

        Raises Gone, here or later, if some of them are forgotten already.
        """
        with self._changed:
            self._after(version, resource)
        return self._follow(resource, version, monotonic() + seconds)

    def _follow(self, resource: Resource, version: int, end: float) -> Iterator[WatchEvent]:
        left = 1.0
        while left > 0:
            with self._changed:
                left = end - monotonic()
                events, version = self._after(version, resource), self._version
                if not events:
                    self._changed.wait(max(0.0, left))
            yield from events
        yield _bookmark(resource, version)

    def _after(self, version: int, resource: Resource) -> tuple[WatchEvent, ...]:
        if version < self._begins_at:
            detail = f"too old resource version: {version} ({self._begins_at})"
            raise error_for("watch", resource.plural, "", 410, detail)
        newer = takewhile(lambda event: event[0] > version, reversed(self._events))
        return tuple(event for _, of, event in newer if of == resource)[::-1]


def _bookmark(resource: Resource, version: int) -> WatchEvent:
    named = {"apiVersion": api_version(resource), "kind": resource.kind}
    return WatchEvent(EventType.BOOKMARK, {**named, "metadata": {"resourceVersion": str(version)}})
