"""One round: several pods of one group are placed together by one compare-and-swap.

One write takes the lock, records the decisions and releases it. There is no moment at which a crashed holder
owns something, so there is nothing to steal and no lease to time out: a late or paused writer fails because the
lock claim's resourceVersion has moved. The numbered steps are those of the design's section 4; a simulation with
mutation checks (tests/simulation) shows what each is there for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from webhook.core import ledger
from webhook.core.binding import UNBOUND_IMMEDIATE
from webhook.core.lock_claim import by_precedence
from webhook.core.model import Cause, ClaimListing, Entry, Group, GroupState, Outcome, Placing, Snapshot
from webhook.core.objects import Claim
from webhook.core.policy import ASKED_FOR
from webhook.core.rounds import Planned, own_claim, plan_round
from webhook.core.volumes import claims_by_name, claims_of_pod
from webhook.errors import Conflict, Forbidden, Gone, Invalid, NotFound, OutOfTime, TooManyRequests, UnknownOutcome
from webhook.locking.attempt import Attempt, Tools
from webhook.locking.confirming import plan_confirmed
from webhook.locking.protocol import Answer, Request
from webhook.locking.unanswered import Unanswered
from webhook.locking.waiting import WaitingRequests

logger = logging.getLogger(__name__)


# How long "not found" may mean "not yet" for a pod's own claim, and how often it is asked for (s).
YOUNG_CLAIM: Final = 1.0
YOUNG_CLAIM_PERIOD: Final = 0.05
# How long an unbound claim of a class that binds at once is waited for, and how often it is looked at (s).
UNBOUND_CLAIM: Final = 2.0
UNBOUND_CLAIM_PERIOD: Final = 0.1


class Round:
    """Places the pods of `requests`, all of one group and of different names, together.

    `deliver(request, answer)` is called exactly once for each of them. With `writes` False (a dry run, or a
    look) nothing is written or remembered: steps 1 to 4 only.
    """

    def __init__(
        self,
        group: Group,
        requests: Iterable[Request],
        tools: Tools,
        deliver: Callable[[Request, Answer], None],
        *,
        writes: bool = True,
    ) -> None:
        self._group = group
        self._waiting = WaitingRequests(requests, tools, deliver)
        self._tools = tools
        self._cluster = tools.cluster
        self._writes = writes
        self._unanswered = Unanswered()
        # Live entries that one of this round's took the place of in the ledger.
        self._replaced: dict[str, Entry] = {}

    def run(self) -> None:
        """Attempt until every request has its answer or no budget is left."""
        while self._waiting.anybody():
            self._waiting.attempts += 1
            try:
                self._attempt()
            except Conflict:
                self._waiting.conflicts += 1
                self._waiting.back_off()
            except TooManyRequests as error:
                self._waiting.pause(error.retry_after)
            except (UnknownOutcome, Gone) as error:
                logger.info("outcome unknown, deciding anew: %s", error, extra={"group": str(self._group)})
                self._waiting.unknown += 1
                self._waiting.back_off()
            except Forbidden as error:
                self._waiting.guard_all(Cause.API_FORBIDDEN, f"not allowed to {error.verb} {error.resource}")
            except (Invalid, NotFound) as error:
                self._waiting.guard_all(Cause.API_TROUBLE, str(error))
            except OutOfTime:
                self._waiting.guard_all(Cause.BUDGET_USED_UP)

    def _attempt(self) -> None:
        attempt = self._read_and_decide()
        if attempt is None:
            return
        # Also without new entries: those of an earlier attempt that went unanswered would hold nodes for nothing.
        if self._writes and (attempt.entries or self._unanswered.tokens):
            self._remove_own_leftovers(attempt)
            self._swap(attempt)
            self._write_second_records(attempt)
        confirmed = self._confirmed(attempt) if self._writes and attempt.entries else attempt.planned
        self._answer(attempt, confirmed)

    def _read_and_decide(self) -> Attempt | None:
        """Steps 1 to 4; None where nobody can be decided for yet."""
        # 1. The group's claims, the lock claim among them, and the time that every judgement of age uses.
        listing = self._cluster.list_claims(self._group, self._waiting.deadline())
        requests, lacking = self._by_own_claims(listing)
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
        snapshot = self._snapshot(listing, state, live)
        planned = self._plan(snapshot, placings, proposed=state.proposed)
        planned = self._without_those_that_wait(planned, snapshot)
        return Attempt(listing, order[0], recorded, state, live, over, planned) if planned else None

    def _without_those_that_wait(self, planned: Sequence[Planned], snapshot: Snapshot) -> tuple[Planned, ...]:
        """Without the pods whose claims of class Immediate get their volumes any moment; nobody is left: a pause."""
        arrived = {request.member: request.arrived for request in self._waiting.requests()}
        now = self._waiting.deadline().clock()
        settled = tuple(
            plan
            for plan in planned
            if not _waits_for_a_volume(plan, snapshot) or now - arrived[plan.placing.pod.name] >= UNBOUND_CLAIM
        )
        if not settled:
            self._waiting.pause(UNBOUND_CLAIM_PERIOD)
        return settled

    def _read_group(self, listing: ClaimListing, placings: Sequence[Placing]) -> GroupState:
        state = self._cluster.read_group(self._group, listing.claims, placings, self._waiting.deadline())
        self._waiting.desired = state.desired
        return state

    def _snapshot(self, listing: ClaimListing, state: GroupState, live: tuple[Entry, ...]) -> Snapshot:
        return Snapshot(
            group=self._group,
            claims=listing.claims,
            pods=state.pods,
            desired=state.desired,
            entries=live,
            nodes=state.nodes,
            rooms=state.rooms,
            volumes=state.volumes,
            now=listing.now,
            placed_pods=state.placed_pods,
            promised=state.promised,
            namespaces=state.namespaces,
        )

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
        snapshot = self._snapshot(listing, state, ())
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
        return plan_confirmed(
            snapshot, placings, self._tools, lambda names: self._cluster.confirm_nodes(names, self._waiting.deadline())
        )

    def _live(
        self, lock: Claim, recorded: ledger.Recorded, state: GroupState, now: int
    ) -> tuple[tuple[Entry, ...], frozenset[str]]:
        """The live entries of everybody else, and the tokens of those that are over."""
        memory = self._tools.memory
        known = {**memory.answers(self._group), **self._replaced, **recorded.entries()}
        carried = ledger.carried_tokens(state.pods)
        over = {
            token
            for token, entry in known.items()
            if ledger.is_over(entry, carried, now, self._tools.expiry, memory.known_for(self._group, entry, now))
        }
        for token in over:
            memory.forget(self._group, token)
            self._replaced.pop(token, None)
        live = [entry for token, entry in known.items() if token not in over and token not in self._unanswered.tokens]
        in_ledger = [entry for entry in live if entry.token in recorded.ledger_tokens(lock)]
        elsewhere = ledger.newest_of_each(entry for entry in live if entry not in in_ledger)
        return (*in_ledger, *ledger.without_superseded(elsewhere, in_ledger)), frozenset(over)

    def _swap(self, attempt: Attempt) -> None:
        """5. The swap, on the resourceVersion that came with the claims that the decision was made on."""
        kept = ledger.without_superseded(attempt.live, attempt.entries)
        restored = {entry.token for entry in kept} - attempt.recorded.unbroken_tokens(attempt.lock)
        annotations = ledger.ledger_annotations((*kept, *attempt.entries), restored)
        annotations |= ledger.second_record_annotations((), self._unanswered.removable(attempt, attempt.lock))
        self._unanswered.write(attempt.new_tokens)
        self._replaced.update({entry.token: entry for entry in attempt.live if entry not in kept})
        self._swap_ledger(attempt.lock, annotations)

    def _write_second_records(self, attempt: Attempt) -> None:
        """6. The same entries once more, on another claim, before the answer."""
        claim = attempt.second
        if claim is None:
            return
        annotations = ledger.second_record_annotations(attempt.entries, self._unanswered.removable(attempt, claim))
        self._unanswered.write(attempt.new_tokens, claim)
        if annotations:
            self._annotate(claim, annotations)

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
        return tuple(plan for plan in attempt.planned if _same_life(plan, attempt.listing.claims, claims))

    def _ledger_holds(self, attempt: Attempt, recorded: ledger.Recorded) -> bool:
        return attempt.new_tokens <= recorded.unbroken_tokens(attempt.lock)

    def _second_record_holds(self, attempt: Attempt, recorded: ledger.Recorded) -> bool:
        second = attempt.second
        return second is None or attempt.new_tokens <= recorded.seconds.get(second.uid, {}).keys()

    def _all_were_seen(self, attempt: Attempt, recorded: ledger.Recorded) -> bool:
        """Whether every entry was in the snapshot, is this round's own, or is by a writer who has seen ours.

        Of two tokens that have never been missing from one ledger the later writer has seen the earlier.
        """
        known = attempt.recorded.entries().keys() | self._unanswered.tokens | recorded.unbroken_tokens(attempt.lock)
        return recorded.entries().keys() <= known

    def _answer(self, attempt: Attempt, confirmed: Sequence[Planned]) -> None:
        for plan in confirmed:
            member = plan.placing.pod.name
            token = plan.entry.token if plan.entry is not None and self._writes else ""
            if plan.entry is not None and token:
                self._unanswered.answer(token)
                self._tools.memory.remember(self._group, plan.entry)
                if plan.entry.node:
                    self._cluster.promise(self._group, plan.placing, plan.entry.node)
            own = frozenset(entry.token for entry in attempt.live if entry.member == member)
            self._waiting.give(member, plan.decision, token, own)
        if len(confirmed) < len(attempt.planned):
            self._waiting.back_off()

    def _by_own_claims(self, listing: ClaimListing) -> tuple[tuple[Request, ...], tuple[Request, ...]]:
        """The requests whose own claims exist, and those that lack one; a young claim is waited for."""
        by_name = {claim.name: claim for claim in listing.claims}
        ready: list[Request] = []
        lacking: list[Request] = []
        for request in self._waiting.requests():
            pod = request.placing.pod
            # Those of ephemeral volumes are made once the pod exists.
            made_later = {claim.name for claim in pod.ephemeral_claims}
            names = [name for name in pod.claim_names if name not in made_later]
            claims = [by_name.get(name) or self._get_claim(name) for name in names]
            if all(claim is not None and not claim.deleting for claim in claims):
                ready.append(request)
            elif None not in claims or request.deadline.clock() - request.arrived >= YOUNG_CLAIM:
                lacking.append(request)
        if not ready and not lacking:
            self._waiting.pause(YOUNG_CLAIM_PERIOD)
        return tuple(ready), tuple(lacking)

    def _get_claim(self, name: str) -> Claim | None:
        return self._cluster.get_claim(self._group.namespace, name, self._waiting.deadline())

    def _remove_own_leftovers(self, attempt: Attempt) -> None:
        """Unanswered entries that steps 5 and 6 will not take away would hold nodes for nothing.

        They are second records on another claim than the next ones, and entries in the ledger of a claim that was
        the lock at an earlier attempt: the lock moves when claims become Bound.
        """
        for claim, tokens in tuple(self._unanswered.on_other_claims(attempt.second)):
            self._annotate(claim, ledger.second_record_annotations((), tokens))
            self._unanswered.write(tokens)
        for claim in attempt.listing.claims:
            if claim.uid != attempt.lock.uid and attempt.recorded.ledger_tokens(claim) & self._unanswered.tokens:
                self._swap_ledger(claim, attempt.recorded.ledger_without(claim, self._unanswered.tokens))

    def _swap_ledger(self, claim: Claim, annotations: dict[str, str | None]) -> None:
        try:
            self._cluster.swap(claim, annotations, self._waiting.deadline())
        except NotFound as error:
            raise Conflict(error.verb, error.resource, error.name, detail="the claim is gone") from error

    def _annotate(self, claim: Claim, annotations: dict[str, str | None]) -> None:
        try:
            self._cluster.annotate(claim, annotations, self._waiting.deadline())
        except (Invalid, NotFound) as error:
            raise Conflict(error.verb, error.resource, error.name, detail="another claim has its name") from error


def _waits_for_a_volume(plan: Planned, snapshot: Snapshot) -> bool:
    """Whether a claim has no volume yet, or names one that it is being bound to, which keeps the pod from its place.

    The volume's name is written before the phase Bound. In between it holds the pod like data, but is none to return
    to: beside a sibling the pod would be guarded against the only node that it can run on.
    """
    decision = plan.decision
    if UNBOUND_IMMEDIATE in decision.passed_over.values():
        return True
    claims = claims_of_pod(plan.placing.pod, claims_by_name(snapshot))
    return decision.outcome is Outcome.GUARDED and any(
        claim.volume_name and claim.phase == "Pending" for claim in claims
    )


def _same_life(plan: Planned, before: Sequence[Claim], after: Sequence[Claim]) -> bool:
    """Whether the member's own claim is the one that was decided on, and not being deleted."""
    then, now = own_claim(plan.placing, before), own_claim(plan.placing, after)
    if then is None:
        return True
    return now is not None and now.uid == then.uid and not now.deleting
