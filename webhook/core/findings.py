"""What an audit has found, in words: the same sentence for the same thing, without times and ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook.core import keys
from webhook.core.audited import GroupAudit, Isolation, Loss, Margin, Survival
from webhook.core.model import Family, MemberClass

# Beyond this names are counted, not listed.
SHOWN: Final = 5


class FindingKind(StrEnum):
    """What was found: the reason of events, the label of metrics."""

    STACKED = "Stacked"
    UNKNOWN_DOMAIN = "UnknownDomain"
    NO_TOPOLOGY_LABEL = "NoTopologyLabel"
    LOST = "Lost"
    NO_MARGIN = "NoMargin"
    NOT_RUNNING = "NotRunning"
    GUARDED_RUNNING = "GuardedRunning"
    NEVER_PASSED = "NeverPassed"
    OPTION_PROBLEM = "OptionProblem"
    ISOLATION_NOT_CHECKED = "IsolationNotChecked"


_AT_STAKE: Final = {MemberClass.QUORUM: "its quorum", MemberClass.REPLICATED: "a majority of some data's copies"}
_UNKNOWN: Final = {
    Isolation.NOT_CHECKED: "not checked",
    Isolation.NOT_CONFIGURED: "its location-labels do not name it",
}

# What is not as it should be; the others are worth knowing.
BREACHES: Final = frozenset(
    {
        FindingKind.STACKED,
        FindingKind.UNKNOWN_DOMAIN,
        FindingKind.NO_TOPOLOGY_LABEL,
        FindingKind.LOST,
        FindingKind.NO_MARGIN,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one group; `breach`: all is not well."""

    kind: FindingKind
    text: str
    breach: bool = False


def findings(audited: GroupAudit) -> tuple[Finding, ...]:
    """Everything that was found about the group, breaches first.

    A group with the option skip has none: who sets it wants to be left alone. Its other findings stay.
    """
    found = [
        Finding(kind, text, kind in BREACHES and not audited.options.skip)
        for kind, text in (*_about_places(audited), *_about_losses(audited), *_about_members(audited))
    ]
    return tuple(sorted(found, key=lambda finding: not finding.breach))


def survival_text(audited: GroupAudit) -> str:
    """What the group survives now: "survives the loss of 1 node, of 0 zones"."""
    if audited.now is not Survival.SURVIVES and not any(margin.survives for margin in audited.margins):
        return _now(audited)
    parts = [
        f"of {_count(margin.survives, word(margin.topology_key))}{_condition(audited, margin)}"
        for margin in _told(audited)
    ]
    return f"survives the loss {', '.join(parts)}"


def loss_text(audited: GroupAudit, loss: Loss) -> str:
    """What losing the nodes would do: "loses 2 members (db-tikv-0, db-tikv-1): not certainly enough left"."""
    if not loss.concerns:
        return "no member of it is there"
    lost = _lost(loss)
    if loss.survival is Survival.BREAKS:
        already = "" if loss.members else " already"
        return f"{lost}: {_AT_STAKE[audited.group.member_class]} may be lost{already}: {_left(audited, loss)}"
    if loss.survival is Survival.IF_ISOLATED:
        return f"{lost}: survives if {_apart(audited, loss.isolated_by)}: not checked"
    return f"{lost}: survives" + (f", since {_apart(audited, loss.isolated_by)}" if loss.isolated_by else "")


def word(topology_key: str) -> str:
    """What a domain of the key is called: node, zone, rack, …"""
    return "node" if topology_key == keys.HOSTNAME else topology_key.rpartition("/")[2]


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _lost(loss: Loss) -> str:
    """What of the group is there."""
    parts = [f"loses {_count(len(loss.members), 'member')} ({listed(loss.members)})"] if loss.members else []
    if loss.resting:
        parts.append(f"holds what {listed(loss.resting)} would come back to")
    if loss.unknown and not parts:
        parts.append(f"may hold data of {listed(loss.unknown)}")
    return " and ".join(parts)


def _left(audited: GroupAudit, loss: Loss) -> str:
    """Why that is too much, in numbers."""
    running = sum(member.running for member in audited.members if member.desired)
    left = f"{running} of {audited.replicas} run"
    if loss.members:
        left += f" now and {running - len(loss.members)} then"
    if audited.not_running:
        left += f" ({listed(audited.not_running)} {'does' if len(audited.not_running) == 1 else 'do'} not)"
    return f"{left}, {_needed(audited)}"


def _needed(audited: GroupAudit) -> str:
    """How many may be missing."""
    if not audited.copies:
        return f"{audited.replicas - audited.budget} are needed"
    return f"and whichever they are, {audited.budget} may be missing"


def _about_places(audited: GroupAudit) -> Iterator[tuple[FindingKind, str]]:
    for domain, count in audited.stacked.items():
        there = [member.name for member in audited.members if member.domain == domain and member.desired]
        names = f" ({listed(there)})" if there else ""
        limit = f"at most {audited.cap} may be there"
        yield (
            FindingKind.STACKED,
            f"{word(audited.topology_key)} {domain} holds {_count(count, 'member')}{names}, {limit}",
        )
    if audited.unknown:
        yield (
            FindingKind.UNKNOWN_DOMAIN,
            f"it is not known in which {word(audited.topology_key)} {listed(audited.unknown)} is: the node is gone",
        )
    for member, node in audited.unlabelled.items():
        yield (
            FindingKind.NO_TOPOLOGY_LABEL,
            f"{member} is on node {node}, which has no label {audited.topology_key}",
        )


def _about_losses(audited: GroupAudit) -> Iterator[tuple[FindingKind, str]]:
    margin = audited.margin
    checked = audited.margin.isolation is not Isolation.NOT_CHECKED
    if audited.now is not Survival.SURVIVES:
        kind = FindingKind.LOST if audited.now is Survival.BREAKS else FindingKind.ISOLATION_NOT_CHECKED
        yield kind, _now(audited)
    elif audited.budget and not (margin.survives if checked else margin.best):
        yield FindingKind.NO_MARGIN, f"the loss of any one {word(margin.topology_key)} may be too much now"
    elif not checked and margin.best > margin.survives:
        yield (
            FindingKind.ISOLATION_NOT_CHECKED,
            f"the loss of {_count(margin.best, word(margin.topology_key))} is survived if"
            f" {_apart(audited, margin.isolated_by)}: not checked",
        )


def _about_members(audited: GroupAudit) -> Iterator[tuple[FindingKind, str]]:
    if audited.not_running or audited.missing:
        missing = [f"{audited.missing} without a pod"] if audited.missing else []
        names = [listed(audited.not_running)] if audited.not_running else []
        yield FindingKind.NOT_RUNNING, f"not running: {', and '.join(names + missing)}"
    if audited.guarded_running:
        yield (
            FindingKind.GUARDED_RUNNING,
            f"guarded and running, so others are kept off its {word(audited.topology_key)} until it is re-created:"
            f" {listed(audited.guarded_running)}",
        )
    if audited.never_passed:
        yield FindingKind.NEVER_PASSED, f"never passed the webhook: {listed(audited.never_passed)}"
    for problem in audited.options.problems:
        yield FindingKind.OPTION_PROBLEM, problem


def _told(audited: GroupAudit) -> list[Margin]:
    """The margins that say something: those of keys that members' nodes have, and always the group's own."""
    return [margin for margin in audited.margins if margin.domains or margin.topology_key == audited.topology_key]


def _condition(audited: GroupAudit, margin: Margin) -> str:
    if margin.best == margin.certain:
        return ""
    by = _apart(audited, margin.isolated_by)
    if margin.isolation is Isolation.CONFIGURED:
        return f" (since {by})"
    return f" ({margin.best} if {by}: {_UNKNOWN[margin.isolation]})"


def _apart(audited: GroupAudit, topology_key: str) -> str:
    who = "copies are kept apart" if audited.group.family is Family.GENERIC else "PD isolates"
    return f"{who} by {'host' if topology_key == keys.HOSTNAME else word(topology_key)}"


def _now(audited: GroupAudit) -> str:
    running = sum(member.running for member in audited.members if member.desired)
    if audited.now is Survival.IF_ISOLATED:
        return f"{running} of {audited.replicas} run: enough if copies are kept apart: not checked"
    if audited.now is Survival.SURVIVES:
        return "survives no loss"
    return f"{running} of {audited.replicas} run: {_AT_STAKE[audited.group.member_class]} may be lost already"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
