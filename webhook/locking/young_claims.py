"""A pod's own claims that are not there yet, and how long a round waits for them.

A controller makes a pod's claims just before the pod: a pod is not refused a place because it was a moment faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from webhook.core.model import ClaimListing
from webhook.core.objects import Claim
from webhook.locking.protocol import Request

YOUNG_CLAIM: Final = 1.0
"""How long "not found" may mean "not yet" for a pod's own claim (s)."""
YOUNG_CLAIM_PERIOD: Final = 0.05
"""How often such a claim is asked for (s)."""

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
