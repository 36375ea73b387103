"""What one attempt of a round read and decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webhook.core import ledger
from webhook.core.lock_claim import second_record_claim
from webhook.core.model import ClaimListing, Entry, Group, GroupState, Snapshot
from webhook.core.objects import Claim
from webhook.core.rounds import Planned, own_claim


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt read and decided. `over`: tokens of records that have ended."""

    listing: ClaimListing
    lock: Claim
    recorded: ledger.ClaimRecords
    state: GroupState
    live: tuple[Entry, ...]
    over: frozenset[str]
    planned: tuple[Planned, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The new entries."""
        return tuple(plan.entry for plan in self.planned if plan.entry is not None)

    @property
    def new_tokens(self) -> frozenset[str]:
        """The tokens of the new entries."""
        return frozenset(entry.token for entry in self.entries)

    @property
    def second(self) -> Claim | None:
        """The claim of the second records: preferably a placed member's own, since its pod does not exist yet."""
        own = {plan.entry.claim_uid for plan in self.planned if plan.entry is not None}
        return second_record_claim(self.listing.claims, self.lock, own)


def snapshot_of(group: Group, listing: ClaimListing, state: GroupState, live: tuple[Entry, ...]) -> Snapshot:
    """What is decided on: what was read, with the entries that are live in it."""
    return Snapshot(
        group=group,
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


def same_life(plan: Planned, before: Sequence[Claim], after: Sequence[Claim]) -> bool:
    """Whether the member's own claim is the one that was decided on, and not being deleted."""
    then, now = own_claim(plan.placing, before), own_claim(plan.placing, after)
    if then is None:
        return True
    return now is not None and now.uid == then.uid and not now.deleting
