"""One round: several pods of one group are placed together by one compare-and-swap.

One write takes the lock, records the decisions and releases it. There is no moment at which a crashed holder
owns something, so there is nothing to steal and no lease to time out: a late or paused writer fails because the
lock claim's resourceVersion has moved. The numbered steps are those of docs/design.md, section 4; a simulation with
mutation checks (tests/simulation) shows what each is there for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from webhook.core import ledger
from webhook.core.lock_claim import by_precedence
from webhook.core.model import ClaimListing, Entry, Group, GroupState, Placing, Snapshot
from webhook.core.objects import Claim
from webhook.core.outcomes import Cause, Outcome
from webhook.core.policy import ASKED_FOR
from webhook.core.rounds import Planned, plan_round
from webhook.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    OutOfTime,
    TooManyRequests,
    UnknownOutcome,
)
from webhook.locking.attempt import Attempt, same_life, snapshot_of
from webhook.locking.confirming import plan_confirmed
from webhook.locking.promising import Promising
from webhook.locking.protocol import Answer, Request
from webhook.locking.settling import SETTLING_PERIOD, settled
from webhook.locking.tools import RoundTools
from webhook.locking.waiting import WaitingRequests
from webhook.locking.writing import RecordWriter
from webhook.locking.young_claims import YOUNG_CLAIM_PERIOD, by_own_claims

logger = logging.getLogger(__name__)


class Round:
    """Places the pods of `requests`, all of one group and of different names, together.

    `deliver(request, answer)` is called exactly once for each of them. With `writes` False (a dry run, or a
    look) nothing is written or remembered: steps 1 to 4 only.
    """

    def __init__(
        self,
        group: Group,
        requests: Iterable[Request],
        tools: RoundTools,
        deliver: Callable[[Request, Answer], None],
        *,
        writes: bool = True,
    ) -> None:
        self._group = group
        self._waiting = WaitingRequests(group, requests, tools, deliver)
        self._tools = tools
        self._cluster = tools.cluster
        self._writes = writes
        self._writer = RecordWriter(tools.cluster, self._waiting.deadline)
        self._promising = Promising(tools.cluster, group)

    def run(self) -> None:
        """Attempt until every request has its answer or no budget is left."""
        while self._waiting.anybody():
            self._waiting.attempts += 1
            try:
                self._attempt()
                self._waiting.trouble = ""
            except Conflict:
                self._waiting.trouble = ""
                self._waiting.conflicts += 1
                self._waiting.back_off()
            except TooManyRequests as error:
                self._waiting.trouble = str(error)
                self._waiting.pause(error.retry_after)
            except (UnknownOutcome, Gone) as error:
                self._decide_anew(error)
            except Forbidden as error:
                self._waiting.forbid(error)
            except (Invalid, NotFound) as error:
                self._waiting.guard_all(Cause.API_TROUBLE, str(error))
            except OutOfTime:
                self._waiting.guard_late(self._waiting.requests())

    def _decide_anew(self, error: ApiError) -> None:
        """Nobody knows what became of a call."""
        if str(error) != self._waiting.trouble:
            logger.info("outcome unknown, deciding %s anew: %s", str(self._waiting), error)
        self._waiting.trouble = str(error)
        self._waiting.unknown += 1
        self._waiting.back_off()

    def _attempt(self) -> None:
        if (attempt := self._read_and_decide()) is None:
            return
        try:
            self._carry_out(attempt)
        finally:
            # At once, not with the next attempt: with just enough volumes another group would find none.
            self._promising.withdraw()

    def _carry_out(self, attempt: Attempt) -> None:
        if self._writes:
            self._promising.make(attempt)
            # Also without new entries: those of an earlier attempt that went unanswered would hold nodes for nothing.
            if attempt.entries or self._writer.unanswered.tokens:
                self._writer.remove_leftovers(attempt)
                self._writer.swap(attempt)
                self._write_second_records(attempt)
        confirmed = self._confirmed(attempt) if self._writes and attempt.entries else attempt.planned
        self._answer(attempt, confirmed)

    def _read_and_decide(self) -> Attempt | None:
        """Steps 1 to 4; None where nobody can be decided for yet."""
        # 1. The group's claims, the lock claim among them, and the time that every judgement of age uses.
        listing = self._cluster.list_claims(self._group, self._waiting.deadline())
        requests, lacking = by_own_claims(self._waiting.requests(), listing, self._get_claim)
        if not requests and not lacking:
            self._waiting.pause(YOUNG_CLAIM_PERIOD)
        order = by_precedence(listing.claims)
        if lacking or not order:
            self._leave_without_lock(lacking if order else (*lacking, *requests), listing)
        if not requests or not order:
            return None
        # 2. The pods, after the claims: an entry that is gone from the claims is then seen as a pod.
        placings = tuple(request.placing for request in requests)
        state = self._read_group(listing, placings)
        # 3. The live entries.
        recorded = ledger.read_records(listing.claims)
        self._tools.memory.report_unreadable(recorded.unreadable)
        if self._tools.memory.stands_newer(self._group, recorded.newer, self._tools.expiry):
            self._waiting.guard(requests, Cause.NEWER_FORMAT)
            return None
        live, over = self._live(order[0], recorded, state, listing.now)
        # 4. Decide, purely.
        snapshot = snapshot_of(self._group, listing, state, live)
        planned = self._plan(snapshot, placings, proposed=state.proposed)
        if self._writes:
            # A look waits for nobody: another group's pods may be next.
            planned = settled(planned, snapshot, self._waiting.requests(), self._waiting.deadline().clock())
        if not planned:
            self._waiting.pause(SETTLING_PERIOD)
            return None
        return Attempt(listing, order[0], recorded, state, live, over, planned)

    def _read_group(self, listing: ClaimListing, placings: Sequence[Placing]) -> GroupState:
        state = self._cluster.read_group(self._group, listing.claims, placings, self._waiting.deadline())
        self._waiting.learn(state.desired.option_carriers)
        if self._writes:
            self._tools.memory.learn(self._group, state.desired.option_carriers)
        return state

    def _leave_without_lock(self, requests: Sequence[Request], listing: ClaimListing) -> None:
        """Without a claim nothing can be locked on: the guard, unless the set or its options ask for less."""
        if not requests:
            return
        try:
            state = self._read_group(listing, tuple(request.placing for request in requests))
        except NotFound:
            # Nor are there owners who could ask for less.
            self._waiting.guard(requests, Cause.NO_LOCK_CLAIM)
            return
        snapshot = snapshot_of(self._group, listing, state, ())
        for request in requests:
            decision = self._tools.decide(snapshot, request.placing)
            if decision.outcome is Outcome.UNTOUCHED or decision.cause in ASKED_FOR:
                self._waiting.give(request.member, decision)
            else:
                self._waiting.guard((request,), Cause.NO_LOCK_CLAIM)

    def _plan(self, snapshot: Snapshot, placings: Sequence[Placing], *, proposed: bool) -> tuple[Planned, ...]:
        """What is decided; of nodes that were only proposed, those that are chosen are read directly."""
        if not proposed:
            return plan_round(snapshot, placings, self._tools.decide, self._tools.tokens)
        return plan_confirmed(snapshot, placings, self._tools, self._waiting.deadline)

    def _live(
        self, lock: Claim, recorded: ledger.ClaimRecords, state: GroupState, now: int
    ) -> tuple[tuple[Entry, ...], frozenset[str]]:
        """The live entries of everybody else, and the tokens of those that are over."""
        memory = self._tools.memory
        known = {**memory.answers(self._group), **self._writer.replaced, **recorded.entries()}
        carried = ledger.carried_tokens(state.pods)
        over = {
            token
            for token, entry in known.items()
            if ledger.is_over(entry, carried, now, self._tools.expiry, memory.known_for(self._group, entry, now))
        }
        for token in over:
            memory.forget(self._group, token)
            self._writer.replaced.pop(token, None)
        ended = over | self._writer.unanswered.tokens
        live = [entry for token, entry in known.items() if token not in ended]
        in_ledger = [entry for entry in live if entry.token in recorded.ledger_tokens(lock)]
        elsewhere = ledger.newest_of_each(entry for entry in live if entry not in in_ledger)
        return (*in_ledger, *ledger.without_superseded(elsewhere, in_ledger)), frozenset(over)

    def _write_second_records(self, attempt: Attempt) -> None:
        self._writer.write_second_records(attempt)

    def _confirmed(self, attempt: Attempt) -> tuple[Planned, ...]:
        """7. Whose answers may be given: read again; everybody else goes back to step 1."""
        claims = self._cluster.list_claims(self._group, self._waiting.deadline()).claims
        order = by_precedence(claims)
        if not order or order[0].uid != attempt.lock.uid:
            return ()
        recorded = ledger.read_records(claims)
        if not (
            self._ledger_holds(attempt, recorded)
            and self._second_record_holds(attempt, recorded)
            and self._all_were_seen(attempt, recorded)
        ):
            return ()
        return tuple(plan for plan in attempt.planned if same_life(plan, attempt.listing.claims, claims))

    def _ledger_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return attempt.new_tokens <= recorded.unbroken_tokens(attempt.lock)

    def _second_record_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        second = attempt.second
        return second is None or attempt.new_tokens <= recorded.seconds.get(second.uid, {}).keys()

    def _all_were_seen(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        """Whether every entry was in the snapshot, is this round's own, or is by a writer who has seen ours.

        Of two tokens that have never been missing from one ledger the later writer has seen the earlier.
        """
        known = attempt.recorded.entries().keys() | recorded.unbroken_tokens(attempt.lock)
        return recorded.entries().keys() <= known | self._writer.unanswered.tokens

    def _answer(self, attempt: Attempt, confirmed: Sequence[Planned]) -> None:
        self._promising.keep(plan.placing.pod.name for plan in confirmed)
        for plan in confirmed:
            member = plan.placing.pod.name
            token = plan.entry.token if plan.entry is not None and self._writes else ""
            if plan.entry is not None and token:
                self._writer.unanswered.answer(token)
                self._tools.memory.remember(self._group, plan.entry)
            own = frozenset(entry.token for entry in attempt.live if entry.member == member)
            self._waiting.give(member, plan.decision, token, own)
        if len(confirmed) < len(attempt.planned):
            self._promising.withdraw()
            self._waiting.back_off()

    def _get_claim(self, name: str) -> Claim | None:
        return self._cluster.get_claim(self._group.namespace, name, self._waiting.deadline())
