"""Taking away the records that are over, where no round does it any more.

Rounds take them away on the claims that they write anyway; after the last one of a group some are left. They do no
harm, but whoever reads the claims has to read them. So the controller takes them away, from a group where *all* are
over (else somebody is at work there, and will do it), by the swap of docs/design.md, section 4, and on Bound claims
only: a write on an unbound one costs its pod a cycle of the scheduler.

What cannot be read, or is of a newer version, stays: nothing is taken away on doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from webhook.core import ledger
from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.core.model import ClaimListing, Entry, Group
from webhook.core.objects import Claim, Pod
from webhook.deadline import Deadline
from webhook.errors import Conflict, NotFound
from webhook.locking.memory import AnswerMemory


class SweptCluster(Protocol):
    """What a sweep asks of the cluster; errors are those of `locking.protocol.GroupCluster`."""

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        """The group's claims, and the API server's time of that moment."""
        ...

    def list_pods(self, group: Group, deadline: Deadline) -> tuple[Pod, ...]:
        """The group's pods."""
        ...

    def swap(self, claim: Claim, annotations: Mapping[str, str | None], deadline: Deadline) -> None:
        """Set (None: take away) annotations if the claim is still in this version; else raises Conflict."""
        ...


def may_be_over(claims: Sequence[Claim], pods: Iterable[Pod], now: int, expiry: float) -> bool:
    """Whether a sweep of the group would do anything, by what was read for another purpose.

    `now`: the API server's time (seconds since 1970). Entries dated in the future may be over for all that is known.
    """
    recorded = ledger.read_records(claims)
    entries = recorded.entries().values()
    if not entries or recorded.newer or recorded.unreadable:
        return False
    carried = ledger.carried_tokens(pods)
    return any(_records_on(claim) for claim in claims if _may_be_written(claim)) and all(
        entry.time > now or ledger.is_over(entry, carried, now, expiry, known_for=0.0) for entry in entries
    )


class Sweep:
    """Sweeps groups, one at a time. `expiry` (s) as for rounds; of `memory` only what it knows of clocks is used."""

    def __init__(self, cluster: SweptCluster, memory: AnswerMemory, expiry: float) -> None:
        self._cluster = cluster
        self._memory = memory
        self._expiry = expiry

    def run(self, group: Group, deadline: Deadline) -> int:
        """Take away what is over; from how many claims. Raises `errors.ApiError` or OutOfTime as the cluster does."""
        # 1. Claims before pods, as in a round: an entry that is gone from the claims is then seen as a pod.
        listing = self._cluster.list_claims(group, deadline)
        recorded = ledger.read_records(listing.claims)
        entries = recorded.entries()
        if not entries or recorded.newer or recorded.unreadable:
            return 0
        # 2. Whose pod is there.
        pods = self._cluster.list_pods(group, deadline)
        # 3. Only a quiet group.
        if not self._all_over(group, entries.values(), pods, listing.now):
            return 0
        for token in entries:
            self._memory.forget(group, token)
        # 5. By the version in which the claim was listed: what was written since is not known to be over.
        return sum(self._swept(claim, deadline) for claim in listing.claims if _may_be_written(claim))

    def _all_over(self, group: Group, entries: Iterable[Entry], pods: Iterable[Pod], now: int) -> bool:
        carried = ledger.carried_tokens(pods)
        # Of all of them, since from the first look on it is known how long an entry dated in the future has been there.
        over = [
            ledger.is_over(entry, carried, now, self._expiry, self._memory.known_for(group, entry, now))
            for entry in entries
        ]
        return all(over)

    def _swept(self, claim: Claim, deadline: Deadline) -> bool:
        records = _records_on(claim)
        if not records:
            return False
        try:
            self._cluster.swap(claim, dict.fromkeys(records), deadline)
        except (Conflict, NotFound):
            # Somebody is at work there after all, or it is gone.
            return False
        return True


def _may_be_written(claim: Claim) -> bool:
    return claim.bound and not claim.deleting


def _records_on(claim: Claim) -> list[str]:
    return [key for key in claim.annotations if key == LOCK or key.startswith(ENTRY_PREFIX)]
