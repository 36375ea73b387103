"""Calls at a gentle pace, for work that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any, Final

from webhook.cluster.door import Door, Listing, Manifest, Resource, WatchEvent

CALLS_A_SECOND: Final = 10.0


class PacedDoor:
    """A door whose calls begin at least so far apart; each is the other door's own. To be used by one thread."""

    def __init__(
        self,
        door: Door,
        *,
        apart: float = 1 / CALLS_A_SECOND,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        """`apart`: seconds between the beginnings of two calls."""
        self._door = door
        self._apart = apart
        self._clock = clock
        self._pause = pause
        self._next = clock()

    def list(self, resource: Resource, **options: Any) -> Listing:
        """See `Door.list`."""
        return self._paced().list(resource, **options)

    def scan(self, resource: Resource, visit: Callable[[Manifest], object], **options: Any) -> str:
        """See `Door.scan`."""
        return self._paced().scan(resource, visit, **options)

    def watch(self, resource: Resource, **options: Any) -> Iterator[WatchEvent]:
        """See `Door.watch`."""
        return self._paced().watch(resource, **options)

    def get(self, resource: Resource, name: str, **options: Any) -> Manifest:
        """See `Door.get`."""
        return self._paced().get(resource, name, **options)

    def merge_patch(self, resource: Resource, name: str, patch: Manifest, **options: Any) -> Manifest:
        """See `Door.merge_patch`."""
        return self._paced().merge_patch(resource, name, patch, **options)

    def create(self, resource: Resource, manifest: Manifest, **options: Any) -> Manifest:
        """See `Door.create`."""
        return self._paced().create(resource, manifest, **options)

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        """See `Door.delete`."""
        self._paced().delete(resource, name, **options)

    def _paced(self) -> Door:
        now = self._clock()
        if now < self._next:
            self._pause(self._next - now)
        self._next = max(now, self._next) + self._apart
        return self._door
