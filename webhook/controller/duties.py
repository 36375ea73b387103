"""All duties of the leader, one at a time: an audit when it is due, else rescue."""

from __future__ import annotations

from webhook.controller.auditing import Auditing
from webhook.controller.loop import Rescue


class AllDuties:
    """Each turn is short enough for the Lease to be renewed in time."""

    def __init__(self, rescue: Rescue, auditing: Auditing) -> None:
        self._rescue = rescue
        self._auditing = auditing

    def turn(self) -> bool:
        """Do what is due; whether the next turn should come soon."""
        if self._auditing.is_due():
            self._auditing.turn()
            # Those who wait for a place have waited for long enough.
            return True
        return self._rescue.turn()

    def forget(self) -> None:
        """Another one leads now."""
        self._rescue.forget()
        self._auditing.forget()
