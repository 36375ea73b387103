"""Reading the StatefulSet of a generic set's pod, again where that may help.

Only it says of which group the pod is: without it there is no guard to fall back to, and the pod may be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhook.cluster.door import Manifest
from webhook.deadline import Deadline
from webhook.errors import Forbidden, UnknownOutcome
from webhook.just_started import FORBIDDEN_WAIT, MOST_FORBIDDEN

MOST_UNANSWERED: Final = 3
"""How often it is asked for where no answer comes."""


class OwnerReads:
    """Knows whether such a read was ever allowed to this process. Safe to use from many threads."""

    def __init__(self, pause: Callable[[float], None]) -> None:
        """`pause` waits a number of seconds."""
        self._pause = pause
        self._was_allowed = False

    def read(self, read: Callable[[], Manifest | None], deadline: Deadline) -> Manifest | None:
        """What `read` gives. Raises what that raises: at once, unless it may help to ask again."""
        unanswered = forbidden = 0
        while True:
            try:
                found = read()
            except UnknownOutcome:
                unanswered += 1
                if unanswered == MOST_UNANSWERED:
                    raise
            except Forbidden:
                forbidden += 1
                if not self._was_allowed or forbidden > MOST_FORBIDDEN or deadline.left() <= FORBIDDEN_WAIT:
                    raise
                self._pause(FORBIDDEN_WAIT)
            else:
                self._was_allowed = True
                return found
