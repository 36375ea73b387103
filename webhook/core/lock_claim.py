"""Which claim of a group is its lock, and which one holds the second records.

One claim for the whole group, found by the same pure rule by everybody: the component's PersistentVolumeClaim
belongs to the real data and outlives pods, operators' objects and us.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from webhook.core.keys import PVC_DEFER_DELETING
from webhook.core.objects import Claim


def by_precedence(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims that may carry records, the lock claim first.

    Never one that is being deleted; those marked for deferred deletion last; Bound before unbound, because
    writing a Bound claim never disturbs the scheduler; then the oldest; then by name. Pure and stable: every
    replica that sees the same claims gets the same order.
    """
    usable = [claim for claim in claims if not claim.deleting]
    return tuple(
        sorted(
            usable,
            key=lambda claim: (
                PVC_DEFER_DELETING in claim.annotations,
                not claim.bound,
                claim.created,
                claim.name,
            ),
        )
    )


def second_record_claim(claims: Sequence[Claim], lock: Claim, own: Collection[str]) -> Claim | None:
    """Where the round's second records go: a claim other than the lock, None if there is none.

    Preferably the own claim of a member of this round (`own`: claim uids), because its pod does not exist yet
    and nothing is disturbed by the write; else the next in the lock's order.
    """
    others = [claim for claim in by_precedence(claims) if claim.uid != lock.uid]
    return next((claim for claim in others if claim.uid in own), others[0] if others else None)
