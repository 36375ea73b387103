"""Claims that are not yet what they will be in a moment, and how long a round waits for them.

A controller makes a pod's claims just before the pod, and binds those of a class with volumeBindingMode Immediate on
its own time: a pod is not refused a place because it was a moment faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from webhook.core.binding import UNBOUND_IMMEDIATE
from webhook.core.model import ClaimListing, Snapshot
from webhook.core.objects import Claim
from webhook.core.outcomes import Outcome
from webhook.core.rounds import Planned
from webhook.core.volumes import claims_by_name, claims_of_pod
from webhook.locking.protocol import Request

YOUNG_CLAIM: Final = 1.0
"""How long "not found" may mean "not yet" for a pod's own claim (s)."""
YOUNG_CLAIM_PERIOD: Final = 0.05
"""How often such a claim is asked for (s)."""
UNBOUND_CLAIM: Final = 2.0
"""How long an unbound claim of a class that binds at once is waited for (s)."""
UNBOUND_CLAIM_PERIOD: Final = 0.1
"""How often such a claim is looked at (s)."""

GetClaim = Callable[[str], Claim | None]
"""Reads one claim of the group's namespace by its name."""


def by_own_claims(
    requests: Iterable[Request], listing: ClaimListing, get_claim: GetClaim
) -> tuple[tuple[Request, ...], tuple[Request, ...]]:
    """The requests whose own claims exist, and those that lack one; who is in neither waits for a young claim."""
    by_name = {claim.name: claim for claim in listing.claims}
    ready: list[Request] = []
    lacking: list[Request] = []
    for request in requests:
        pod = request.placing.pod
        # Those of ephemeral volumes are made once the pod exists.
        made_later = {claim.name for claim in pod.ephemeral_claims}
        names = [name for name in pod.claim_names if name not in made_later]
        claims = [by_name.get(name) or get_claim(name) for name in names]
        if all(claim is not None and not claim.deleting for claim in claims):
            ready.append(request)
        elif None not in claims or request.deadline.clock() - request.arrived >= YOUNG_CLAIM:
            lacking.append(request)
    return tuple(ready), tuple(lacking)


def settled(
    planned: Iterable[Planned], snapshot: Snapshot, requests: Iterable[Request], now: float
) -> tuple[Planned, ...]:
    """Without the pods whose claims of class Immediate get their volumes any moment (`now`: by their deadlines)."""
    arrived = {request.member: request.arrived for request in requests}
    return tuple(
        plan
        for plan in planned
        if not _waits_for_a_volume(plan, snapshot) or now - arrived[plan.placing.pod.name] >= UNBOUND_CLAIM
    )


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
