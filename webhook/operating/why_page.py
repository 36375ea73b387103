"""The whole text of `why`: the answer, then what it rests on, in at most 100 lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.core import keys, ledger
from webhook.core.audit import audit
from webhook.core.counting import guard_key
from webhook.core.decision_record import largest_counts
from webhook.core.explanation import Explanation, recorded_on
from webhook.core.model import Decision, Entry, Group, Options, Snapshot
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause
from webhook.core.selectors import pinned_node
from webhook.operating.looking import Look
from webhook.operating.page import Page, columns, listed
from webhook.operating.why import Story
from webhook.operating.why_answer import facts, headline

MOST_LINES: Final = 100
MOST_MEMBERS: Final = 25


def page_of(story: Story) -> str:
    """The text; the answer is in its first five lines."""
    page = Page(MOST_LINES)
    page.answer(headline(story), facts(story))
    if story.recorded.explanation is not None:
        page.section("Recorded on the pod:", tuple(_recorded(story.recorded.explanation)), most=14)
    if story.look is not None and story.look.snapshot is not None:
        snapshot = story.look.snapshot
        page.section(f"The group {snapshot.group} now:", tuple(_group(story.look, snapshot)), most=28)
        page.section("The nodes for it now:", tuple(_nodes(story.look.decision, snapshot)), most=20)
        page.section("Answers in flight:", tuple(_in_flight(snapshot)), most=10)
    if story.events.problem:
        page.section("Events:", (story.events.problem,), most=2)
    page.section("Events:", tuple(map(str, story.events.happened)), most=14)
    return page.text()


def _recorded(explanation: Explanation) -> Iterator[str]:
    record = explanation.record
    yield from (
        f"{name}: {value}"
        for name, value in (
            ("outcome", record.outcome),
            ("cause", record.cause),
            ("node", record.node),
            ("domain", f"{record.domain} (by {record.topology_key})" if record.domain else ""),
            ("guarded too", "yes" if explanation.guard_too else ""),
            ("above the cap", "yes" if explanation.above_cap else ""),
        )
        if value
    )
    more = f" and {explanation.more_counts} more domains" if explanation.more_counts else ""
    if counts := largest_counts(explanation.counts):
        yield "members then: " + listed([f"{domain} {count}" for domain, count in counts], 20) + more
    if explanation.reasons:
        more = f"; {explanation.more_reasons} more reasons" if explanation.more_reasons else ""
        yield "nodes passed over: " + "; ".join(explanation.reasons) + more
    yield from (f"problem: {problem}" for problem in explanation.problems)


def _group(look: Look, snapshot: Snapshot) -> Iterator[str]:
    decision = look.decision
    # Who cannot be decided on has a cap all the same.
    limit = audit(snapshot).cap if decision.cause is Cause.NO_LOCK_CLAIM else decision.cap
    cap = "not known" if not look.known else "none" if limit is None else str(limit)
    yield (
        f"replicas {snapshot.desired.replicas}, cap {cap} for this pod, kept apart by"
        f" {snapshot.desired.options.topology_key}{_options(look.options)}"
    )
    members = sorted(snapshot.pods, key=_by_ordinal)
    if not members:
        yield "no pod of it is there"
        return
    rows = [("MEMBER", "NODE", "STATE", "HELD BY"), *(_row(pod, snapshot.group) for pod in members[:MOST_MEMBERS])]
    yield from columns(rows)
    if len(members) > MOST_MEMBERS:
        yield f"and {len(members) - MOST_MEMBERS} more members"


def _options(options: Options) -> str:
    default = Options()
    set_here = {
        keys.PLACEMENT: (options.placement, default.placement),
        keys.WHEN_UNPLACEABLE: (options.when_unplaceable, default.when_unplaceable),
        keys.COPIES: (options.copies, default.copies),
        keys.MIN_DOMAINS: (options.min_domains, default.min_domains),
    }
    return "".join(f", {name} {value}" for name, (value, usual) in set_here.items() if value != usual)


def _by_ordinal(pod: Pod) -> tuple[str, int, str]:
    prefix, _, end = pod.name.rpartition("-")
    return prefix, int(end) if end.isascii() and end.isdigit() and len(end) < 10 else -1, end


def _row(pod: Pod, group: Group) -> tuple[str, str, str, str]:
    state = "being deleted" if pod.deleting else "Ready" if pod.ready else pod.phase or "Pending"
    holds = []
    if pin := pinned_node(pod):
        holds.append(f"pin to {pin}")
    if key := guard_key(pod, group):
        holds.append(f"guard by {key}")
    recorded = recorded_on(pod)
    if recorded.problem:
        holds.append("unreadable record")
    elif recorded.explanation is None:
        holds.append("no record")
    return pod.name, pod.node_name or "-", state, ", ".join(holds) or "-"


def _nodes(decision: Decision, snapshot: Snapshot) -> Iterator[str]:
    """The chosen one, those that only rank lower, and the others by their reasons, the most frequent first."""
    names = sorted(node.name for node in snapshot.nodes)
    if not names:
        yield "there are none"
        return
    if decision.node:
        yield f"chosen: {decision.node}"
    possible = [name for name in names if name not in decision.passed_over and name != decision.node]
    if possible and decision.node:
        yield f"possible too, but lower in rank: {listed(possible, 10)}"
    yield from (
        f"{len(there)} not possible: {reason}: {listed(there, 10)}"
        for reason, there in _by_reason(decision.passed_over).items()
    )


def _by_reason(passed_over: Mapping[str, str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in sorted(passed_over.items()):
        found.setdefault(reason, []).append(name)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _in_flight(snapshot: Snapshot) -> Iterator[str]:
    recorded = ledger.read_records(snapshot.claims)
    for entry in sorted(snapshot.entries, key=lambda entry: (entry.member, entry.time)):
        yield _entry(entry, snapshot.now)
    names = {claim.uid: claim.name for claim in snapshot.claims}
    yield from (
        f"claim {names[location.claim_uid]}: annotation {location.key} cannot be read; it is ignored"
        for location in recorded.unreadable
    )
    yield from (
        f"claim {names[location.claim_uid]}: annotation {location.key} is of a newer version"
        for location in recorded.newer
    )


def _entry(entry: Entry, now: int) -> str:
    where = entry.node or f"domain {entry.domain}"
    return f"{entry.member} to {where}, {now - entry.time} s ago (token {entry.token})"
