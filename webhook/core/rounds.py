"""What one round decides: its members in order, each on a snapshot that holds the answers before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from webhook.core.groups import claims_of
from webhook.core.model import Decision, Entry, Placing, Snapshot
from webhook.core.objects import Claim
from webhook.core.outcomes import Outcome

Decide = Callable[[Snapshot, Placing], Decision]

# Outcomes that put the pod into a known domain, and so leave an entry.
ASSIGNED = frozenset({Outcome.PINNED, Outcome.RETURNED, Outcome.RETURNED_WAITING})


@dataclass(frozen=True, slots=True)
class Planned:
    """One member's decision in a round, and the entry that records it (None: nothing to record)."""

    placing: Placing
    decision: Decision
    entry: Entry | None


def own_claim(placing: Placing, claims: Sequence[Claim]) -> Claim | None:
    """The pod's first claim among the group's labelled ones; its uid tells this life of the member from another."""
    by_name = {claim.name: claim for claim in claims}
    return next((by_name[name] for name in placing.pod.claim_names if name in by_name), None)


def plan_round(
    snapshot: Snapshot, placings: Iterable[Placing], decide: Decide, tokens: Iterator[str]
) -> tuple[Planned, ...]:
    """Decide for every pod of the round: returning members first, then by ordinal, then by name."""
    planned: list[Planned] = []
    for placing in sorted(placings, key=lambda placing: _precedence(snapshot, placing)):
        decision = decide(snapshot, placing)
        entry = _entry(snapshot, placing, decision, tokens)
        planned.append(Planned(placing, decision, entry))
        if entry is not None:
            # It counts from now on, and takes its room.
            snapshot = replace(snapshot, entries=(*snapshot.entries, entry))
    return tuple(planned)


def _precedence(snapshot: Snapshot, placing: Placing) -> tuple[bool, int, str]:
    pod = placing.pod
    returning = any(claim.bound for claim in claims_of(pod.name, pod, snapshot.claims))
    position = snapshot.desired.position(pod.name)
    return (not returning, len(snapshot.desired.members or ()) if position is None else position, pod.name)


def _entry(snapshot: Snapshot, placing: Placing, decision: Decision, tokens: Iterator[str]) -> Entry | None:
    # A set of one is not placed by the webhook and leaves no entry; a guarded pod is kept apart by the scheduler.
    if decision.outcome not in ASSIGNED:
        return None
    # A claim that the group's label does not find tells the member's lives apart as well.
    claim = own_claim(placing, (*snapshot.volumes.claims.values(), *snapshot.claims))
    return Entry(
        token=next(tokens),
        member=placing.pod.name,
        claim_uid=claim.uid if claim else "",
        node=decision.node,
        domain=decision.domain,
        topology_key=decision.topology_key,
        time=snapshot.now,
        guarded=decision.guard_too,
    )
