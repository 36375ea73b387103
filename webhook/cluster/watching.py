"""Following one kind of object: list it, watch it from there, begin again when the watch cannot go on.

A watch dies silently more often than with an error: a server that hangs, a load balancer that forgot. So each
watch is ended by the server after a few seconds and begun again from where it was: then nothing can be silent
for longer without being broken. That costs the server one request per kind and period, and no list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Event
from typing import Any, Final

from webhook.cluster.door import Door, EventType, Manifest, WatchEvent
from webhook.cluster.reader import STALE
from webhook.cluster.shelves import Shelf
from webhook.cluster.trimming import Key, Kind, key_of
from webhook.errors import ApiError, Gone, TooManyRequests

logger = logging.getLogger(__name__)

BROKEN_ALLOWED: Final = 5.0
"""Seconds for which what was heard may be relied on after its watch broke (docs/design.md, invariant 4)."""

LIST_SECONDS: Final = 60.0
# The wait after trouble doubles up to the longest, and is cut by chance so that replicas do not come together (s).
FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 10.0
# Watches begin no oftener than that (s), also before a server that ends each at once.
LEAST_PERIOD: Final = 0.5
# A watch that went on for so long (s) was a good one: what ends it is new trouble.
STEADY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long one watch lasts, and how much later than that its end may be heard of; in seconds."""

    watch: float
    late: float = 1.5

    @property
    def silence(self) -> float:
        """After how long without anything a watch is broken."""
        return self.watch + self.late

    @property
    def reliable(self) -> float:
        """How old the last sign of life may be; as much more than the silence as it takes to begin again."""
        return self.watch + self.late + 0.5


class Pulse:
    """When a kind was last heard of, and whether that can still be relied on. One thread writes, any may read."""

    def __init__(self, pace: Pace, clock: Callable[[], float]) -> None:
        self.pace = pace
        self.clock = clock
        self._heard = -inf
        self._sound_until = -inf

    def heard(self) -> None:
        """The server has said something, so all that went before has been told."""
        self._heard = self.clock()
        self._sound_until = self._heard + self.pace.reliable

    def broken(self) -> None:
        """From now on something may have gone untold."""
        self._sound_until = min(self._sound_until, self.clock() + BROKEN_ALLOWED)

    def lost(self) -> None:
        """Something has gone untold, and will not be told any more: only a list makes it sound again."""
        self._sound_until = -inf

    def sound(self) -> bool:
        """Whether what is known may be proposed."""
        return self.clock() <= self._sound_until

    def age(self) -> float:
        """Seconds since the server was last heard; infinite before the first list."""
        return self.clock() - self._heard


class Follower:
    """Keeps a shelf as the cluster is; `run` is the work of a thread."""

    def __init__(
        self,
        door: Door,
        kind: Kind[Any],
        shelf: Shelf[Any, Any],
        pulse: Pulse,
        stopping: Event,
        chance: Callable[[], float],
    ) -> None:
        """`chance` gives a number in [0, 1)."""
        self.kind = kind
        self.shelf = shelf
        self.pulse = pulse
        self._door = door
        self._stopping = stopping
        self._chance = chance
        self._version = ""
        self._ever_listed = False
        self._failures = 0
        self._watching_since = inf

    @property
    def up_to_date(self) -> bool:
        """Whether nothing has gone wrong since all was listed."""
        return self._version != "" and self._failures == 0

    def run(self) -> None:
        """Follow until it is time to stop."""
        while not self._stopping.is_set():
            self._stopping.wait(self.follow_once())

    def follow_once(self) -> float:
        """List if need be, then watch to the end of one watch; the seconds to wait before the next time."""
        began = self.pulse.clock()
        self._watching_since = inf
        known = self._version
        try:
            if not known:
                self._list()
            self._watch()
        except Gone as error:
            # The watch had begun, so it looked as if it went on from there.
            self._version = ""
            self.pulse.lost()
            wait = self._broken(error)
            return FIRST_WAIT if known else wait
        except ApiError as error:
            return self._broken(error)
        except Exception:
            # The edge of this thread. Without it the kind would never be heard of again.
            logger.exception("following %s failed; listing it again", self.kind.resource.plural)
            self._version = ""
            return self._broken(None)
        if self._failures:
            logger.info("following %s again", self.kind.resource.plural)
        self._failures = 0
        return max(0.0, LEAST_PERIOD - (self.pulse.clock() - began))

    def _list(self) -> None:
        """From the server's cache first: a watch catches up. Not again: what is told must not go back in time."""
        values: dict[Key, Any] = {}

        def visit(manifest: Manifest) -> None:
            key, value = key_of(manifest), self.kind.trim(manifest)
            if value is not None:
                values[key] = self.shelf.known(key, value)

        version = self._door.scan(
            self.kind.resource,
            visit,
            resource_version="" if self._ever_listed else STALE,
            timeout=LIST_SECONDS,
        )
        self.shelf.put_all(values)
        self._version = version
        self._ever_listed = True
        self.pulse.heard()

    def _watch(self) -> None:
        pace = self.pulse.pace
        events = self._door.watch(
            self.kind.resource, resource_version=self._version, timeout=pace.watch, silence=pace.silence
        )
        # What has happened meanwhile comes first, and at once.
        self.pulse.heard()
        self._watching_since = self.pulse.clock()
        for event in events:
            self._take(event)
            self.pulse.heard()
            if self._stopping.is_set():
                break
        self.pulse.heard()

    def _take(self, event: WatchEvent) -> None:
        if event.type is not EventType.BOOKMARK:
            gone = event.type is EventType.DELETED
            self.shelf.put(key_of(event.manifest), None if gone else self.kind.trim(event.manifest))
        self._version = event.resource_version

    def _broken(self, error: ApiError | None) -> float:
        self.pulse.broken()
        self._failures = 1 if self.pulse.clock() - self._watching_since >= STEADY else self._failures + 1
        if self._failures == 1 and error is not None:
            logger.warning("following %s was interrupted: %s", self.kind.resource.plural, error)
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (self._failures - 1)) * (0.5 + self._chance() / 2)
        return max(wait, error.retry_after) if isinstance(error, TooManyRequests) else wait
