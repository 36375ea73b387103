"""What one process remembers: its answers, each group's options, and since when it has known a record."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic
from typing import Final

from webhook.core.carriers import OptionCarriers
from webhook.core.ledger import Location
from webhook.core.model import Entry, Group

logger = logging.getLogger(__name__)

# So many groups' options are remembered; a guard of a further one is by the defaults where it cannot be read.
MOST_CARRIERS: Final = 10_000
# So many unreadable records are remembered as reported; a further one may be reported twice.
MOST_REPORTED: Final = 1000


class AnswerMemory:
    """This process's own answers and observations, by group. Thread-safe; lost with the process, without harm.

    `keep` (s): answers of groups that were never asked for again are dropped after this time; it must exceed
    the expiry of entries. `clock` is monotonic.
    """

    def __init__(self, keep: float = 3600.0, clock: Callable[[], float] = monotonic) -> None:
        self._keep = keep
        self._clock = clock
        self._lock = Lock()
        self._answers: dict[Group, dict[str, tuple[Entry, float]]] = {}
        self._first_seen: dict[tuple[Group, str], float] = {}
        self._newer: dict[Group, dict[Location, float]] = {}
        self._carriers: OrderedDict[Group, OptionCarriers] = OrderedDict()
        self._reported: OrderedDict[Location, None] = OrderedDict()
        self._was_allowed = False

    @property
    def was_allowed(self) -> bool:
        """Whether a round of this process got through once: all that it needs was allowed then."""
        with self._lock:
            return self._was_allowed

    def answers(self, group: Group) -> dict[str, Entry]:
        """The entries of this process's answers that are not known to be over, by token."""
        with self._lock:
            return {token: entry for token, (entry, _) in self._answers.get(group, {}).items()}

    def remember(self, group: Group, entry: Entry) -> None:
        """Remember an answer before it is given."""
        with self._lock:
            now = self._clock()
            self._was_allowed = True
            self._answers.setdefault(group, {})[entry.token] = (entry, now)
            for other in list(self._answers):
                kept = {token: held for token, held in self._answers[other].items() if now - held[1] <= self._keep}
                self._answers[other] = kept
                if not kept:
                    del self._answers[other]

    def forget(self, group: Group, token: str) -> None:
        """Forget an entry that is over."""
        with self._lock:
            held = self._answers.get(group, {})
            held.pop(token, None)
            if not held:
                self._answers.pop(group, None)
            self._first_seen.pop((group, token), None)

    def known_for(self, group: Group, entry: Entry, now: int) -> float:
        """Seconds for which this process has known an entry that is dated after `now`; 0 for any other."""
        if entry.time <= now:
            return 0.0
        with self._lock:
            return self._clock() - self._first_seen.setdefault((group, entry.token), self._clock())

    def stands_newer(self, group: Group, found: Sequence[Location], expiry: float) -> bool:
        """Whether a record of a newer format must still be respected: until it stood unchanged for one expiry."""
        with self._lock:
            before = self._newer.pop(group, {})
            now = self._clock()
            seen = {location: before.get(location, now) for location in found}
            if seen:
                self._newer[group] = seen
            return any(now - since <= expiry for since in seen.values())

    def learn(self, group: Group, carriers: OptionCarriers) -> None:
        """Remember what the group's options stand on."""
        with self._lock:
            self._carriers[group] = carriers
            self._carriers.move_to_end(group)
            if len(self._carriers) > MOST_CARRIERS:
                self._carriers.popitem(last=False)

    def carriers(self, group: Group) -> OptionCarriers:
        """What the group's options stand on, as it was read last; without annotations where it never was."""
        with self._lock:
            return self._carriers.get(group, OptionCarriers())

    def report_unreadable(self, found: Sequence[Location]) -> None:
        """Log each unreadable record once."""
        for location in found:
            with self._lock:
                reported = location in self._reported
                self._reported[location] = None
                if len(self._reported) > MOST_REPORTED:
                    self._reported.popitem(last=False)
            if not reported:
                logger.warning(
                    "unreadable record ignored: claim uid %s, annotation %s", location.claim_uid, location.key
                )
