"""The thread of the controller: ask whether we lead, and if so take a turn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Protocol

logger = logging.getLogger(__name__)

# Seconds between two turns; the shorter one while a group waits for a pod that was freed.
PERIOD: Final = 5.0
SOON: Final = 1.0
# Seconds between two questions whether the leader has gone, as other components of Kubernetes ask.
FOLLOWING: Final = 2.0


class Duties(Protocol):
    """What a leader does."""

    def turn(self) -> bool:
        """Do it once; whether the next turn should come soon."""
        ...

    def forget(self) -> None:
        """Another one leads now."""
        ...


class Controller:
    """Runs a leader's duties in a thread of its own, for as long as this process leads."""

    def __init__(self, duties: Duties, leads: Callable[[], bool], tell: Callable[[bool], None]) -> None:
        """`leads` says whether this process leads now; `tell` is told when that changes."""
        self._duties = duties
        self._leads = leads
        self._tell = tell
        self._leading = False
        self._stopped = Event()

    def start(self) -> None:
        """Begin; the thread ends with the process."""
        Thread(target=self.run, args=(self._stopped.wait,), name="controller", daemon=True).start()

    def stop(self) -> None:
        """End after the turn that may be running."""
        self._stopped.set()

    def run(self, wait: Callable[[float], bool]) -> None:
        """Step until `wait`, given the seconds to the next step, returns true."""
        while True:
            seconds = PERIOD
            try:
                seconds = self.step()
            except Exception:
                # The edge of this thread. A defect of ours must not end it: nobody would free a pod again.
                logger.exception("a turn of the controller failed")
            if wait(seconds):
                return

    def step(self) -> float:
        """One question or turn; the seconds until the next."""
        leading = self._leads()
        if leading != self._leading:
            logger.info(
                "this process %s", "leads the controller" if leading else "does not lead the controller any more"
            )
            self._leading = leading
            self._tell(leading)
            if not leading:
                self._duties.forget()
        if not leading:
            return FOLLOWING
        return SOON if self._duties.turn() else PERIOD
