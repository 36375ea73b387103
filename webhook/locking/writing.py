"""Steps 5 and 6 of a round: its entries are written to the ledger and, once more, to a second claim."""

from __future__ import annotations

from collections.abc import Callable

from webhook.core import ledger
from webhook.core.model import Entry
from webhook.core.objects import Claim
from webhook.deadline import Deadline
from webhook.errors import Conflict, Invalid, NotFound
from webhook.locking.attempt import Attempt
from webhook.locking.protocol import GroupCluster
from webhook.locking.unanswered import Unanswered


class RecordWriter:
    """Writes the records of one round's attempts, and takes away those of the attempts that were lost.

    `deadline` gives what bounds a call made now. `unanswered`: the tokens that were written and whose answer was not
    given; `replaced`: by token, live entries of others that one of this round's took the place of in the ledger.

    Each method raises `Conflict` where a claim is not the one that was decided on any more, and the door's errors.
    """

    def __init__(self, cluster: GroupCluster, deadline: Callable[[], Deadline]) -> None:
        self._cluster = cluster
        self._deadline = deadline
        self.unanswered = Unanswered()
        self.replaced: dict[str, Entry] = {}

    def remove_leftovers(self, attempt: Attempt) -> None:
        """Take away unanswered entries that steps 5 and 6 will not: they would hold nodes for nothing.

        They are second records on another claim than the next ones, and entries in the ledger of a claim that was
        the lock at an earlier attempt: the lock moves when claims become Bound.
        """
        for claim, tokens in tuple(self.unanswered.on_other_claims(attempt.second)):
            self._annotate(claim, ledger.second_record_annotations((), tokens))
            self.unanswered.write(tokens)
        for claim in attempt.listing.claims:
            if claim.uid != attempt.lock.uid and attempt.recorded.ledger_tokens(claim) & self.unanswered.tokens:
                self._swap(claim, attempt.recorded.ledger_without(claim, self.unanswered.tokens))

    def swap(self, attempt: Attempt) -> None:
        """5. The swap, on the resourceVersion that came with the claims that the decision was made on."""
        kept = ledger.without_superseded(attempt.live, attempt.entries)
        restored = {entry.token for entry in kept} - attempt.recorded.unbroken_tokens(attempt.lock)
        annotations = ledger.ledger_annotations((*kept, *attempt.entries), restored)
        annotations |= ledger.second_record_annotations((), self.unanswered.removable(attempt, attempt.lock))
        self.unanswered.write(attempt.new_tokens)
        before = self.replaced
        # Known before the write is sent, whatever becomes of it; but a swap that was refused has replaced nothing.
        self.replaced = before | {entry.token: entry for entry in attempt.live if entry not in kept}
        try:
            self._swap(attempt.lock, annotations)
        except Conflict:
            self.replaced = before
            raise

    def write_second_records(self, attempt: Attempt) -> None:
        """6. The same entries once more, on another claim, before the answer."""
        claim = attempt.second
        if claim is None:
            return
        annotations = ledger.second_record_annotations(attempt.entries, self.unanswered.removable(attempt, claim))
        self.unanswered.write(attempt.new_tokens, claim)
        if annotations:
            self._annotate(claim, annotations)

    def _swap(self, claim: Claim, annotations: dict[str, str | None]) -> None:
        try:
            self._cluster.swap(claim, annotations, self._deadline())
        except NotFound as error:
            raise Conflict(error.verb, error.resource, error.name, detail="the claim is gone") from error

    def _annotate(self, claim: Claim, annotations: dict[str, str | None]) -> None:
        try:
            self._cluster.annotate(claim, annotations, self._deadline())
        except (Invalid, NotFound) as error:
            raise Conflict(error.verb, error.resource, error.name, detail="another claim has its name") from error
