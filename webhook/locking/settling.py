"""What stands in a pod's way now and will not in a moment: a round waits for it before it refuses the pod a place.

* A claim of a class with volumeBindingMode Immediate is bound on a controller's own time.
* A member holds two places while a replica that has lost a swap decides it anew: the older entry goes with its next
  writes. Its pod may even be seen by then, since pods are listed after claims. With just as many places as members
  there is none left meanwhile: a sibling would be guarded, and no swap tells that what it was decided on is old.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.binding import UNBOUND_IMMEDIATE
from webhook.core.model import Entry, Snapshot
from webhook.core.outcomes import Cause, Outcome
from webhook.core.rounds import Planned
from webhook.core.volumes import claims_by_name, claims_of_pod
from webhook.locking.protocol import Request

UNBOUND_CLAIM: Final = 2.0
"""How long an unbound claim of a class that binds at once is waited for (s)."""
LONGEST_ADMISSION: Final = 30
"""The longest time that an API server waits for a webhook (s): older entries are not being decided anew."""
SETTLING_PERIOD: Final = 0.1
"""How often it is looked whether that is over (s)."""


def settled(
    planned: Iterable[Planned], snapshot: Snapshot, requests: Iterable[Request], now: float
) -> tuple[Planned, ...]:
    """Without the pods that are to wait for what will be otherwise in a moment (`now`: by their deadlines' clock)."""
    by_member = {request.member: request for request in requests}
    return tuple(plan for plan in planned if not _is_to_wait(plan, snapshot, by_member[plan.placing.pod.name], now))


def _is_to_wait(plan: Planned, snapshot: Snapshot, request: Request, now: float) -> bool:
    waited = now - request.arrived
    if waited < UNBOUND_CLAIM and _waits_for_a_volume(plan, snapshot):
        return True
    # As long again is left for the answer.
    return waited < request.deadline.left() and _waits_for_an_entry(plan, snapshot)


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


def _waits_for_an_entry(plan: Planned, snapshot: Snapshot) -> bool:
    """Whether the pod has no place while a sibling that is, or was just, decided anew holds two."""
    if plan.decision.cause is not Cause.NO_SAFE_NODE:
        return False
    young = [entry for entry in snapshot.entries if _is_of_a_sibling(entry, plan, snapshot.now)]
    members = {entry.member for entry in young}
    # A live entry is none that the visible pod carries.
    visible = any(pod.name in members for pod in snapshot.pods)
    return visible or len({(entry.member, entry.domain) for entry in young}) > len(members)


def _is_of_a_sibling(entry: Entry, plan: Planned, now: int) -> bool:
    """Whether the entry is of another member, and young enough to be of an admission that goes on."""
    return entry.member != plan.placing.pod.name and now - entry.time <= LONGEST_ADMISSION
