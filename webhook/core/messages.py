"""What users are told: warnings of the API server's answer, events, refusals, lines of the log.

`texts.py` holds what is said by cause and outcome. Warnings and refusals name the pod, the group, the cause and what to
do. Texts for one cause are the same each time, so that events aggregate: no ids, no times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from webhook.core import keys
from webhook.core.decision_record import grouped_reasons, largest_counts
from webhook.core.model import Decision, Group
from webhook.core.objects import Pod
from webhook.core.outcomes import Outcome
from webhook.core.texts import text_of

# Kubernetes asks for warnings of at most 120 characters, and its API server cuts those of more than 256; the events API
# refuses messages of more than 1024. A log line has room for all.
WARNING_LIMIT: Final = 120
EVENT_LIMIT: Final = 1024
LOG_LIMIT: Final = 4096

Warn = Callable[[Decision, Pod, Group | None], tuple[str, ...]]
"""Words the warnings of a decision about a pod of a group."""

_COUNTS_SHOWN: Final = 10
_CUT: Final = ".."
# Characters of a warning that what is said of an option has however long the names are, and those its fix may take.
_LEAST_OF_A_PROBLEM: Final = 86
_MOST_OF_A_FIX: Final = 64
# Characters of an event that are kept for what its decision rests on.
_LEAST_OF_FACTS: Final = 60


_LEADS: Final[Mapping[Outcome, str]] = {
    Outcome.PINNED: "is placed",
    Outcome.RETURNED: "returns to its data",
    Outcome.RETURNED_WAITING: "waits for the node of its data",
    Outcome.GUARDED: "waits apart from its siblings",
    Outcome.DENIED: "is refused",
    Outcome.ADMITTED: "is let in without a place",
    Outcome.UNTOUCHED: "is left alone",
    Outcome.UNCHANGED: "is left as it is",
}


def warning(decision: Decision, pod: Pod, group: Group | None) -> str:
    """The warning for the answer, at most `WARNING_LIMIT` characters; "" where none is due.

    Long names of pod and group are cut in their middle; what is said about them never is.
    """
    text = text_of(decision)
    if text is None or not text.warns:
        return ""
    return _about(pod, group, f" {_LEADS[decision.outcome]}: {text.short}", WARNING_LIMIT)


def warnings(decision: Decision, pod: Pod, group: Group | None) -> tuple[str, ...]:
    """All warnings for the answer: that of the decision, and one for each option that cannot be used.

    What is said of an option is cut before its end, so that the option's name and what is right stay.
    """
    names = _about(pod, group, "", LOG_LIMIT)
    room = max(_LEAST_OF_A_PROBLEM, WARNING_LIMIT - len(names) - len(": "))
    problems = (_about(pod, group, f": {_fix_kept(_line(text), room)}", WARNING_LIMIT) for text in decision.problems)
    return tuple(filter(None, (warning(decision, pod, group), *problems)))


def sentences(decision: Decision) -> tuple[str, ...]:
    """What `warnings` says, in whole sentences of any length, without the names, and of a pod that is only planned."""
    text = text_of(decision)
    problems = tuple(map(_line, decision.problems))
    if text is None or not text.warns:
        return problems
    remedy = f". {text.remedy}" if text.remedy else ""
    return (f"{_LEADS[decision.outcome]}: {text.why}{remedy}", *problems)


def event_message(decision: Decision, pod: Pod, group: Group | None, limit: int = EVENT_LIMIT) -> str:
    """The message of the event, at most `limit` characters: with cap, counts, and a reason for the nodes.

    It also serves where nothing went wrong ("is placed: …"), for logs and tables.
    """
    text = text_of(decision)
    why = f": {text.why}" if text is not None else ""
    advice = f". {text.advice}" if text is not None and text.advice else ""
    most = min(limit // 2, limit - len(advice) - _LEAST_OF_FACTS)
    names = _about(pod, group, f" {_LEADS[decision.outcome]}{why}", most)
    facts = "; ".join(_facts(decision))
    room = limit - len(names) - len(advice) - len("; ")
    return f"{names}{'; ' if text is not None else ': '}{_end_cut(facts, room)}{advice}" if facts else names + advice


def refusal(decision: Decision, pod: Pod, group: Group | None) -> str:
    """The message of a denial, which becomes the owner's FailedCreate event: as long as an event's."""
    return event_message(decision, pod, group)


def _facts(decision: Decision) -> list[str]:
    """What the decision rests on, the most telling first: everything after it may be cut."""
    facts = [_line(decision.detail)] if decision.detail else []
    facts += map(_line, decision.problems)
    if decision.node:
        facts.append(f"node {decision.node}")
    if decision.domain and decision.domain != decision.node:
        facts.append(f"domain {decision.domain}")
    if decision.replicas:
        cap = "no cap" if decision.cap is None else f"cap {decision.cap}"
        facts.append(f"{cap} for {decision.replicas} replicas by {decision.topology_key}")
    facts += _counts(decision.counts)
    if decision.passed_over:
        facts.append("not possible: " + ", ".join(map(_line, grouped_reasons(decision.passed_over))))
    return facts


def _counts(counts: Mapping[str, int]) -> list[str]:
    """The members per domain as one text in a list, an empty list if there are none."""
    used = largest_counts(counts)
    shown = [f"{domain} {count}" for domain, count in used[:_COUNTS_SHOWN]]
    more = [f"{len(used) - _COUNTS_SHOWN} more domains"] if len(used) > _COUNTS_SHOWN else []
    return ["members: " + ", ".join(shown + more)] if used else []


def _about(pod: Pod, group: Group | None, said: str, limit: int) -> str:
    """What is said about a pod of a group, whose names are cut so that all of it fits."""
    name, of = pod.name or "a pod without a name", f" of {group}" if group else f" in {pod.namespace}"
    room = limit - len(said)
    # The shorter of the two names leaves its room to the longer.
    of = _middle_cut(of, max(room - len(name), room // 2))
    return _middle_cut(name, room - len(of)) + of + said


def _middle_cut(text: str, room: int) -> str:
    """The text in at most `room` characters: its beginning and its end (an ordinal, a component) are kept."""
    if len(text) <= room:
        return text
    tail = (room - len(_CUT)) // 2
    return text[: room - len(_CUT) - tail] + _CUT + text[len(text) - tail :]


def _fix_kept(text: str, room: int) -> str:
    """A sentence "what is wrong: what is right" in at most `room` characters, of which the second part is kept."""
    if len(text) > room:
        text = text.replace(keys.PREFIX, "")
    wrong, colon, fix = text.rpartition(": ")
    if len(text) <= room or not colon or len(fix) > _MOST_OF_A_FIX:
        return _end_cut(text, room)
    return f"{_end_cut(wrong, room - len(fix) - len(colon))}{colon}{fix}"


def _end_cut(text: str, room: int) -> str:
    """The text in at most `room` characters."""
    return text if len(text) <= room else text[: room - len(_CUT)] + _CUT


def _line(text: str) -> str:
    """A text of foreign origin on one line: the header of a warning may hold no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
