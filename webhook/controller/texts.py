"""What the controller says of a pod, in events and in its log: the same text for the same thing."""

from __future__ import annotations

from typing import Final

from webhook.controller.rescue import Held, Kind, Sight, Verdict, foreign_guard, judge
from webhook.core import messages
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.core.outcomes import PINNING, Cause

REPLACED: Final = "PodReplaced"
CANNOT_RUN: Final = "PodCannotRun"
NOT_FREED: Final = "PodNotFreed"
NOT_ASKED: Final = "WebhookNotAsked"


def of_replaced(held: Held, seen: Sight) -> str:
    """Why a pod is deleted."""
    before = f"it could not run on {held.node}, where it was pinned: {seen.problem}"
    if held.kind is Kind.GUARDED:
        before = "it waited apart from its siblings"
    after = f"{seen.decision.node} is possible now"
    if not seen.decision.node:
        after = f"by {foreign_guard(held, seen)}, while its group is kept apart by {seen.decision.topology_key}"
    return fitting(f"{held.pod.name} of {held.group} never ran and is deleted to be created again: {before}; {after}")


def of_stuck(held: Held, seen: Sight) -> tuple[str, str]:
    """Reason and message for a pod that nothing better is there for; ("", "") where nothing need be said.

    Of a guarded one what the webhook would say of it, so that both are one event.
    """
    decision = seen.decision
    finding = judge(held, seen)
    if finding.verdict is Verdict.STUCK and seen.paused and decision.outcome in PINNING:
        return CANNOT_RUN, fitting(
            f"{held.pod.name} of {held.group} waits, and is left alone though {decision.node} is possible now:"
            f" {finding.why}"
        )
    if held.kind is Kind.GUARDED:
        if not messages.warnings(decision, held.pod, held.group):
            return "", ""
        reason = decision.cause.value or f"Pod{decision.outcome.value.title().replace('-', '')}"
        return reason, messages.event_message(decision, held.pod, held.group)
    detail = decision.detail or (decision.cause.value if decision.cause is not Cause.NONE else decision.outcome.value)
    return CANNOT_RUN, fitting(
        f"{held.pod.name} of {held.group} cannot run on {held.node}, where it is pinned: {seen.problem}. It is left"
        f" alone, since nothing better is there: repair or uncordon the node, make room, or add a node; {detail}"
    )


def of_unfreed(held: Held, seen: Sight, why: str) -> str:
    """Why a pod is not deleted though something better is there for it."""
    there = f"{seen.decision.node} is possible now" if seen.decision.node else "that would help"
    return fitting(
        f"{held.pod.name} of {held.group} is not deleted to be created again, though {there}: the webhook might not be"
        f" asked about it, {why}"
    )


def of_unasked(pod: Pod, group: Group) -> str:
    """What is said of a freed pod that has come again past the webhook."""
    return fitting(
        f"{pod.name} of {group} was created again without a decision: the webhook was not asked about it; no pod of a"
        " group is deleted any more until a member of that group comes with one"
    )


def fitting(text: str) -> str:
    """The text on one line, as long as an event's message may be."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= messages.EVENT_LIMIT else f"{line[: messages.EVENT_LIMIT - 1]}…"
