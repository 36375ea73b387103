"""The entries that a round wrote and has not answered: others must not see them for longer than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.core import ledger
from webhook.core.objects import Claim
from webhook.locking.attempt import Attempt


class Unanswered:
    """Tokens that this round wrote and has not answered, with the claim that may hold their second record."""

    def __init__(self) -> None:
        self._written: dict[str, Claim | None] = {}

    @property
    def tokens(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._written)

    def write(self, tokens: Iterable[str], claim: Claim | None = None) -> None:
        """Tokens are about to be written, as second records on `claim` if one is given.

        Known before the write is sent: whatever becomes of it, they are this round's own.
        """
        self._written.update(dict.fromkeys(tokens, claim))

    def answer(self, token: str) -> None:
        """The token's answer is given: from now on it is an entry like any other."""
        del self._written[token]

    def on_other_claims(self, second: Claim | None) -> Iterator[tuple[Claim, frozenset[str]]]:
        """Claims with second records that writing to `second` will not take away, and their tokens."""
        for claim in {where.uid: where for where in self._written.values() if where is not None}.values():
            if second is None or claim.uid != second.uid:
                yield claim, self._on(claim)

    def removable(self, attempt: Attempt, claim: Claim) -> frozenset[str]:
        """The second records on this claim that may go: those that are over, and unanswered ones of earlier attempts.

        What cannot be read, or stood unchanged for an expiry in a newer format, is over too.
        """
        there = attempt.recorded.seconds.get(claim.uid, {}).keys()
        rubbish = ledger.second_record_tokens((*attempt.recorded.unreadable, *attempt.recorded.newer), claim)
        removable = there & (attempt.over | self._written.keys()) | self._on(claim) | rubbish
        return frozenset(removable - attempt.new_tokens)

    def _on(self, claim: Claim) -> frozenset[str]:
        written = self._written.items()
        return frozenset(token for token, where in written if where is not None and where.uid == claim.uid)
