"""How long things have been as they are, by this process's own clock: what another machine noted is not asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from certs import stages
from certs.cluster import Sighting
from certs.state import State


class TrustWatch:
    """Adds to a state what only time tells; `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._subject: tuple[object, ...] = ()
        self._in_place_since: float | None = None
        self._trusted_since: float | None = None
        self._distrusted = False

    def timed(self, state: State) -> State:
        """The state to decide on."""
        subject = (state.material.next_authority, state.material.next_leaf, state.bundles)
        if subject != self._subject or state.material.next_authority is None or not stages.in_sync(state):
            self._subject = subject
            self._in_place_since, self._trusted_since, self._distrusted = None, None, False
            return state
        if self._in_place_since is None:
            self._in_place_since = self._monotonic()
        trusted = None if self._trusted_since is None else self._since(self._trusted_since)
        return replace(state, in_place=self._since(self._in_place_since), trusted=trusted, distrusted=self._distrusted)

    def sighted(self, sighting: Sighting) -> None:
        """An observed call was made just now."""
        self._distrusted = sighting is Sighting.DISTRUSTED
        if sighting is not Sighting.MET:
            self._trusted_since = None
        elif self._trusted_since is None:
            self._trusted_since = self._monotonic()

    def _since(self, begun: float) -> timedelta:
        return timedelta(seconds=self._monotonic() - begun)
