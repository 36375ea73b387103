"""The requests of a round that have no answer yet, and the time that is left for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from webhook.core import options
from webhook.core.carriers import OptionCarriers
from webhook.core.model import Decision, Group, Options
from webhook.core.outcomes import Cause, Outcome
from webhook.deadline import Deadline
from webhook.errors import Forbidden
from webhook.just_started import FORBIDDEN_WAIT, MOST_FORBIDDEN
from webhook.locking.protocol import Answer, Effort, Request, described
from webhook.locking.tools import RoundTools

# No decision is begun, and no write sent, with less than this left of a request's budget (s).
LEAST_LEFT: Final = 1.0
# The wait before another attempt is random, up to a bound that doubles from the first to the second (s).
FIRST_WAIT: Final = 0.01
LONGEST_WAIT: Final = 0.25


class WaitingRequests:
    """Gives each request its answer exactly once.

    `trouble` is what the latest attempt failed with, "" if it got through or lost its swap.
    """

    def __init__(
        self, group: Group, requests: Iterable[Request], tools: RoundTools, deliver: Callable[[Request, Answer], None]
    ) -> None:
        self._group = group
        # What was read last counts until this round has read it.
        self._carriers = tools.memory.carriers(group)
        self._open = {request.member: request for request in requests}
        self._tools = tools
        self._deliver = deliver
        self.attempts = self.conflicts = self.unknown = self._forbidden = 0
        self.trouble = self._not_allowed = ""

    def __str__(self) -> str:
        """For the log: of which group they are, and which reviews."""
        return described(self._group, self.requests())

    def requests(self) -> tuple[Request, ...]:
        """Those without an answer."""
        return tuple(self._open.values())

    def anybody(self) -> bool:
        """Whether somebody is left; those whose budget is nearly used up leave now, with the guard."""
        self.guard_late(request for request in self.requests() if request.deadline.left() < LEAST_LEFT)
        return bool(self._open)

    def guard_late(self, requests: Iterable[Request]) -> None:
        """Answer those whose time is over with the guard, by what has used it up."""
        failed = Cause.API_FORBIDDEN if self.trouble == self._not_allowed else Cause.API_TROUBLE
        self.guard(requests, failed if self.trouble else Cause.BUDGET_USED_UP, self.trouble)

    def guard(self, requests: Iterable[Request], cause: Cause, detail: str = "") -> None:
        """Answer with the guard."""
        for request in requests:
            key = self._options_of(request).topology_key
            self.give(request.member, Decision(Outcome.GUARDED, cause, topology_key=key, detail=detail))

    def guard_all(self, cause: Cause, detail: str = "") -> None:
        """Answer everybody with the guard."""
        self.guard(self.requests(), cause, detail)

    def forbid(self, error: Forbidden) -> None:
        """Guard everybody at once; but where this process was allowed all before, only if that lasts (3 s)."""
        self._forbidden += 1
        self.trouble = self._not_allowed = f"not allowed to {error.verb} {error.resource}"
        if self._tools.memory.was_allowed and self._forbidden <= MOST_FORBIDDEN:
            self.pause(FORBIDDEN_WAIT)
        else:
            self.guard_all(Cause.API_FORBIDDEN, self.trouble)

    def give(
        self,
        member: str,
        decision: Decision,
        token: str = "",
        live_tokens: frozenset[str] = frozenset(),
    ) -> None:
        """Answer one member's request."""
        effort = Effort(self.attempts, self.conflicts, self.unknown)
        request = self._open.pop(member)
        self._deliver(request, Answer(decision, self._options_of(request), token, live_tokens, effort))

    def learn(self, carriers: OptionCarriers) -> None:
        """What the group's options stand on was read: answers keep to them from now on."""
        self._carriers = carriers

    def _options_of(self, request: Request) -> Options:
        return options.of_pod(self._group.component, request.placing.pod, self._carriers)

    def deadline(self) -> Deadline:
        """The latest deadline of those that wait: what bounds the round's calls."""
        return max((request.deadline for request in self._open.values()), key=lambda deadline: deadline.at)

    def back_off(self) -> None:
        """Wait a random time before another attempt, so that replicas that collided do not collide again."""
        self.pause(self._tools.chance() * min(LONGEST_WAIT, FIRST_WAIT * 2.0**self.attempts))

    def pause(self, seconds: float) -> None:
        """Wait, but never into the last second of the budget."""
        left = max((request.deadline.left() for request in self._open.values()), default=0.0) - LEAST_LEFT
        if left > 0:
            self._tools.pause(min(seconds, left))
