"""Calls that are made again when the API server asks to wait (429: priority and fairness), for people who wait anyway.

A call that was refused so has not been carried out, so that it may be made again whatever it is. The webhook itself
does not wait here: its budget is another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any, Final, TypeVar

from webhook.cluster.door import Door, Listing, Manifest, Resource, WatchEvent
from webhook.errors import TooManyRequests

MOST_TRIES: Final = 5
# Who asks to wait for no time at all is not asked again at once.
SHORTEST_WAIT: Final = 0.1

Result = TypeVar("Result")


class Patience:
    """Makes calls again, each within its own timeout (s). `pause` waits a number of seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic, pause: Callable[[float], None] = sleep) -> None:
        self._clock = clock
        self._pause = pause

    def ask(self, call: Callable[[float], Result], timeout: float) -> Result:
        """What `call` gives, which is told how many seconds it has; it is made again after what the server asks.

        Raises TooManyRequests where that would be too long, or comes too often; and what the call raises.
        """
        end = self._clock() + timeout
        for _ in range(MOST_TRIES - 1):
            try:
                return call(end - self._clock())
            except TooManyRequests as error:
                wait = max(SHORTEST_WAIT, error.retry_after)
                if self._clock() + wait >= end:
                    raise
                self._pause(wait)
        return call(end - self._clock())


class PatientDoor:
    """A door of whose calls each waits as long as it is asked to, within its timeout."""

    def __init__(self, door: Door, patience: Patience) -> None:
        self._door = door
        self._patience = patience

    def list(self, resource: Resource, *, timeout: float, **options: Any) -> Listing:
        """See `Door.list`."""
        return self._patience.ask(lambda left: self._door.list(resource, timeout=left, **options), timeout)

    def scan(self, resource: Resource, visit: Callable[[Manifest], object], *, timeout: float, **options: Any) -> str:
        """See `Door.scan`. A 429 comes before anything is visited."""
        return self._patience.ask(lambda left: self._door.scan(resource, visit, timeout=left, **options), timeout)

    def watch(self, resource: Resource, **options: Any) -> Iterator[WatchEvent]:
        """See `Door.watch`: whoever follows something begins again anyway."""
        return self._door.watch(resource, **options)

    def get(self, resource: Resource, name: str, *, timeout: float, **options: Any) -> Manifest:
        """See `Door.get`."""
        return self._patience.ask(lambda left: self._door.get(resource, name, timeout=left, **options), timeout)

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, timeout: float, **options: Any
    ) -> Manifest:
        """See `Door.merge_patch`."""
        return self._patience.ask(
            lambda left: self._door.merge_patch(resource, name, patch, timeout=left, **options), timeout
        )

    def create(self, resource: Resource, manifest: Manifest, *, timeout: float, **options: Any) -> Manifest:
        """See `Door.create`."""
        return self._patience.ask(lambda left: self._door.create(resource, manifest, timeout=left, **options), timeout)

    def delete(self, resource: Resource, name: str, *, timeout: float, **options: Any) -> None:
        """See `Door.delete`."""
        self._patience.ask(lambda left: self._door.delete(resource, name, timeout=left, **options), timeout)
