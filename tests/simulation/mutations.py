"""Protocols with one step substituted. Each must be found unsafe; the product itself has no switches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from webhook.cluster.store import GroupStore
from webhook.core import ledger
from webhook.core.model import ClaimListing, Group, GroupState, Placing
from webhook.core.objects import Claim
from webhook.core.rounds import Planned
from webhook.deadline import Deadline
from webhook.locking.attempt import Attempt
from webhook.locking.protocol import GroupCluster, Request
from webhook.locking.round import Round
from webhook.locking.tools import RoundTools

from .life import Substitutes


class WithoutPrecondition(GroupStore):
    """The swap is written whatever the claim's version is."""

    def swap(self, claim: Claim, annotations: Any, deadline: Deadline) -> None:
        self.annotate(claim, annotations, deadline)


class PodsListedBeforeClaims(GroupStore):
    """The pods of the round are read before its claims."""

    _earlier: tuple[Any, ...] = ()

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        self._earlier = self._pods(self._reader(deadline), group)
        return super().list_claims(group, deadline)

    def read_group(
        self, group: Group, claims: Sequence[Claim], placings: Sequence[Placing], deadline: Deadline
    ) -> GroupState:
        earlier = self._earlier
        return replace(super().read_group(group, claims, placings, deadline), pods=earlier)


class ClaimsNotCommonToAll(Round):
    """The own claims of a round count as the group's though the label does not find them: others do not see them."""

    def __init__(
        self, group: Group, requests: Iterable[Request], tools: RoundTools, *args: Any, **options: Any
    ) -> None:
        requests = tuple(requests)
        own = tuple(name for request in requests for name in request.placing.pod.claim_names)
        super().__init__(group, requests, replace(tools, cluster=_WithOwnClaims(tools.cluster, own)), *args, **options)


class _WithOwnClaims:
    def __init__(self, cluster: GroupCluster, own: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        listing = self._cluster.list_claims(group, deadline)
        own = [self._cluster.get_claim(group.namespace, name, deadline) for name in self._own]
        every = {claim.uid: claim for claim in (*listing.claims, *own) if claim is not None}
        return replace(listing, claims=tuple(every.values()))


class AgeJudgedAfterTheLists(Round):
    """An entry's age is judged when the lists have been read, not by the time of the first."""

    def _live(self, lock: Claim, recorded: ledger.ClaimRecords, state: GroupState, now: int) -> Any:
        later = self._cluster.list_claims(self._group, self._waiting.deadline()).now
        return super()._live(lock, recorded, state, later)


class EntryEndedByName(Round):
    """An entry ends when any pod of its name is visible."""

    def _live(self, lock: Claim, recorded: ledger.ClaimRecords, state: GroupState, now: int) -> Any:
        live, over = super()._live(lock, recorded, state, now)
        visible = {pod.name for pod in state.pods}
        ended = [entry for entry in live if entry.member in visible]
        return tuple(e for e in live if e not in ended), over | {entry.token for entry in ended}


class WithoutConfirm(Round):
    """Answers are given as soon as they are written."""

    def _confirmed(self, attempt: Attempt) -> tuple[Planned, ...]:
        return attempt.planned


class WithoutOwnTokenCheck(Round):
    """The confirmation does not look for the own tokens in the ledger."""

    def _ledger_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return True


class WithoutSecondRecordCheck(Round):
    """The confirmation does not look for the second record."""

    def _second_record_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return True


class WithoutSecondRecord(Round):
    """Entries are written once."""

    def _write_second_records(self, attempt: Attempt) -> None:
        return

    def _second_record_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return True


class WithoutSeenCheck(Round):
    """The confirmation does not look for entries of writers that have not seen ours."""

    def _all_were_seen(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return True


class RestoredTokensCount(Round):
    """A token that was missing from the ledger for a while proves as much as one that never was."""

    def _ledger_holds(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return super()._ledger_holds(attempt, replace(recorded, restored={}))

    def _all_were_seen(self, attempt: Attempt, recorded: ledger.ClaimRecords) -> bool:
        return super()._all_were_seen(attempt, replace(recorded, restored={}))


MUTATIONS = {
    "without the precondition": lambda: Substitutes(store=WithoutPrecondition),
    "pods listed before claims": lambda: Substitutes(store=PodsListedBeforeClaims),
    "age judged after the lists": lambda: Substitutes(round_type=AgeJudgedAfterTheLists),
    "an entry ended by name": lambda: Substitutes(round_type=EntryEndedByName),
    "without confirm": lambda: Substitutes(round_type=WithoutConfirm),
    "without its own-token check": lambda: Substitutes(round_type=WithoutOwnTokenCheck),
    "without its second-record check": lambda: Substitutes(round_type=WithoutSecondRecordCheck),
    "without the second record": lambda: Substitutes(round_type=WithoutSecondRecord),
    "without its check for unseen entries": lambda: Substitutes(round_type=WithoutSeenCheck),
    "restored tokens count": lambda: Substitutes(round_type=RestoredTokensCount),
    "expiry shorter than a create": lambda: Substitutes(expiry=20.0),
    "claims not common to all": lambda: Substitutes(round_type=ClaimsNotCommonToAll),
}
