"""Group commit: requests of one group that reach one process while a round is running share the next round.

An optimisation only: every safety claim holds without it, between processes, by the swap alone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from webhook.core import options
from webhook.core.model import Decision, Group
from webhook.core.outcomes import Cause, Outcome
from webhook.locking.looking import look
from webhook.locking.protocol import Answer, Request, described
from webhook.locking.round import Round
from webhook.locking.tools import RoundTools

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Ticket:
    request: Request
    answered: Event = field(default_factory=Event)
    answer: Answer | None = None


@dataclass(slots=True)
class _Queue:
    tickets: list[_Ticket] = field(default_factory=list)
    waiting: int = 0
    running: bool = False


class GroupQueues:
    """One queue of requests for each group that has any; each is worked off by a thread of its own.

    A round has a thread of its own because its requests have different deadlines: a caller leaves with the
    guard when its own is reached, and the round goes on for the others. `most_waiting` bounds the callers that
    may wait for one group, so that one group's trouble leaves threads for the others (docs/design.md, invariant 10).
    """

    def __init__(self, tools: RoundTools, most_waiting: int) -> None:
        self._tools = tools
        self._most_waiting = most_waiting
        self._lock = Lock()
        self._queues: dict[Group, _Queue] = {}

    def place(self, group: Group, request: Request) -> Answer:
        """Wait for a round's answer, at most until the request's deadline."""
        ticket = _Ticket(request)
        with self._lock:
            queue = self._queues.setdefault(group, _Queue())
            if queue.waiting >= self._most_waiting:
                return self._guarded(group, request, Cause.BUSY)
            queue.waiting += 1
            queue.tickets.append(ticket)
            starts = not queue.running
            queue.running = True
        if starts and not self._start(group, queue):
            return self._guarded(group, request, Cause.BUSY)
        in_time = ticket.answered.wait(request.deadline.left())
        with self._lock:
            queue.waiting -= 1
            if ticket in queue.tickets:
                queue.tickets.remove(ticket)
            self._forget_if_idle(group, queue)
            return ticket.answer or self._guarded(group, request, Cause.INTERNAL if in_time else Cause.BUDGET_USED_UP)

    def _start(self, group: Group, queue: _Queue) -> bool:
        """Begin to work the queue off; False if the process may have no more threads: then nobody may wait for one."""
        try:
            Thread(target=self._work_off, args=(group, queue), name=f"round {group}", daemon=True).start()
        except RuntimeError as error:
            logger.warning("no round can be run: %s", error)
            with self._lock:
                queue.running = False
                queue.waiting -= 1
                for ticket in queue.tickets:
                    ticket.answered.set()
                queue.tickets.clear()
                self._forget_if_idle(group, queue)
            return False
        return True

    def look(self, group: Group, request: Request) -> Answer:
        """Decide on a snapshot of its own: nothing is written, nothing is remembered, nobody is waited for."""
        with self._lock:
            queue = self._queues.setdefault(group, _Queue())
            if queue.waiting >= self._most_waiting:
                return self._guarded(group, request, Cause.BUSY)
            queue.waiting += 1
        try:
            return look(group, request, self._tools).answer
        finally:
            with self._lock:
                queue.waiting -= 1
                self._forget_if_idle(group, queue)

    def waiting(self) -> int:
        """How many callers wait for a round, over all groups."""
        with self._lock:
            return sum(queue.waiting for queue in self._queues.values())

    def groups(self) -> frozenset[Group]:
        """The groups that have a queue now."""
        with self._lock:
            return frozenset(self._queues)

    def _guarded(self, group: Group, request: Request, cause: Cause) -> Answer:
        """The guard without a round, by the topology key and options that were read last."""
        in_force = options.of_pod(group.component, request.placing.pod, self._tools.memory.carriers(group))
        return Answer(Decision(Outcome.GUARDED, cause, topology_key=in_force.topology_key), in_force)

    def _work_off(self, group: Group, queue: _Queue) -> None:
        while tickets := self._next_round(group, queue):
            self._run(group, tickets)

    def _run(self, group: Group, tickets: dict[Request, _Ticket]) -> None:
        def deliver(request: Request, answer: Answer) -> None:
            tickets[request].answer = answer
            tickets[request].answered.set()

        try:
            Round(group, tickets, self._tools, deliver).run()
        except Exception:
            # The edge of this thread. A defect of ours must not end it: others wait in the queue.
            logger.exception("a round of %s failed; its pods get the guard", described(group, tickets))
        finally:
            for ticket in tickets.values():
                ticket.answered.set()

    def _next_round(self, group: Group, queue: _Queue) -> dict[Request, _Ticket]:
        """Everybody who waits, but of two creates of one name only the first: each needs an entry of its own."""
        with self._lock:
            chosen: dict[str, _Ticket] = {}
            for ticket in queue.tickets:
                chosen.setdefault(ticket.request.member, ticket)
            queue.tickets = [ticket for ticket in queue.tickets if ticket is not chosen[ticket.request.member]]
            queue.running = bool(chosen)
            self._forget_if_idle(group, queue)
            return {ticket.request: ticket for ticket in chosen.values()}

    def _forget_if_idle(self, group: Group, queue: _Queue) -> None:
        if not queue.running and not queue.waiting and self._queues.get(group) is queue:
            del self._queues[group]
