"""What users are told: warnings of the API server's answer, events, refusals.

One table holds the texts: by cause, and by outcome for those that go back to their data. Warnings and
refusals name the pod, the group, the cause and what to do. Texts for one cause are the same each time, so
that events aggregate: no ids, no times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.core.decision_record import grouped_reasons, largest_counts
from webhook.core.model import Decision, Group
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome

# The API server asks for warnings of at most 120 characters and cuts longer ones; the events API refuses
# messages of more than 1024.
WARNING_LIMIT: Final = 120
EVENT_LIMIT: Final = 1024

_COUNTS_SHOWN: Final = 10
_CUT: Final = ".."


@dataclass(frozen=True, slots=True)
class Text:
    """What is said of one cause.

    `short`: cause and what to do in a few words, for warnings. `why`: the cause as a sentence's end.
    `advice`: what to do, sentences. `warns`: whether a warning is due; not where the user asked for it.
    """

    short: str
    why: str
    advice: str
    warns: bool = True


TEXTS: Final[Mapping[Cause | Outcome, Text]] = {
    Cause.NO_SAFE_NODE: Text(
        "no safe node; see its event, then add a node",
        "no node that can take it is within the cap of its group",
        "Add a node, or make one of these possible. The scheduler starts it on a node without siblings by itself; "
        "for any other node, kubectl delete pod.",
    ),
    Cause.UNKNOWN_DOMAIN: Text(
        "a sibling's domain is unknown; see its event",
        "it is not known where a sibling is, or its node lacks the topology key",
        "Bring the sibling's node or its label back, or delete that sibling's pod; then kubectl delete pod this one.",
    ),
    Cause.NO_LOCK_CLAIM: Text(
        "no claim to lock on; label its claims",
        "its group has no PersistentVolumeClaim to lock on, or its own claim is missing or being deleted",
        "Use volumeClaimTemplates, or give the claims the labels of the group's pods; then kubectl delete pod.",
    ),
    Cause.BUDGET_USED_UP: Text(
        "no time left to decide; delete the pod to retry",
        "the time-out of the admission was used up before a node was confirmed",
        "kubectl delete pod has it decided anew. If this is frequent, raise timeoutSeconds.",
    ),
    Cause.BUSY: Text(
        "its group is busy; delete the pod to retry",
        "too many pods of its group were waiting to be placed",
        "kubectl delete pod has it decided anew.",
    ),
    Cause.API_TROUBLE: Text(
        "the API server failed; delete the pod to retry",
        "the API server did not answer as it should",
        "kubectl delete pod has it decided anew. The webhook's log has the failed call.",
    ),
    Cause.API_FORBIDDEN: Text(
        "RBAC forbids a call; see the webhook's log",
        "the webhook's service account may not do what it has to",
        "Grant its service account the verb that is named here; then kubectl delete pod.",
    ),
    Cause.NEWER_FORMAT: Text(
        "records of a newer version; finish the upgrade",
        "the group's records are of a newer version of the webhook than the one that was asked",
        "Finish the upgrade, so that all replicas run one version; then kubectl delete pod.",
    ),
    Cause.GUARD_OPTION: Text(
        "the option placement is Guard",
        "the option placement is Guard",
        "Nothing to do: the scheduler chooses a node apart from its siblings.",
        warns=False,
    ),
    Cause.OTHER_SCHEDULER: Text(
        "another scheduler places it; see schedulerName",
        "its schedulerName is one that pods are not pinned for",
        "Nothing to do if this is meant; else use the default scheduler.",
    ),
    Cause.TIDB_SCHEDULER: Text(
        "tidb-scheduler places it; use one of the two",
        "its schedulerName is tidb-scheduler, and two deciders must not work on one pod",
        "Set the cluster's schedulerName to default-scheduler, or take the webhook off it with the option skip.",
    ),
    Cause.REQUESTER_FIELDS: Text(
        "its own affinity leaves no way; see its event",
        "the fields that its operator sets, and sets again, leave no way to do what was decided",
        "Remove the required affinity or the nodeSelector from the group's overlay, or set the option placement "
        "to Guard and give it required anti-affinity against its whole group.",
    ),
    Cause.SET_OF_ONE: Text(
        "its set has one member",
        "its set has one member, so there is nothing to keep apart",
        "Nothing to do.",
        warns=False,
    ),
    Cause.SKIP_OPTION: Text(
        "the option skip is set",
        "the option skip is set",
        "Nothing to do; remove the option to have it placed.",
        warns=False,
    ),
    Cause.NOT_A_MEMBER: Text(
        "it is of no group",
        "it is not a member of a group that is kept apart",
        "Nothing to do, unless it should be one.",
        warns=False,
    ),
    Cause.UNUSABLE_SELECTOR: Text(
        "its set's selector has no matchLabels; add some",
        "the selector of its StatefulSet has no matchLabels, so its siblings and claims cannot be found",
        "Re-create the StatefulSet with matchLabels in its selector.",
    ),
    Cause.INTERNAL: Text(
        "an error of the webhook; see its log, report it",
        "an error inside the webhook",
        "Report it with the webhook's log; then kubectl delete pod.",
    ),
    Outcome.RETURNED: Text(
        "its domain is above the cap; move a sibling",
        "its volumes allow only this domain, which holds more members than the cap",
        "Move a sibling's data to another domain: scale out, then delete one store's pod and claim at a time.",
    ),
    Outcome.RETURNED_WAITING: Text(
        "no node there is possible now; repair or uncordon",
        "its volumes allow only one domain, and it can be pinned to no node there now",
        "Repair or uncordon a node there; the scheduler then starts it without further help.",
    ),
}

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


def text_of(decision: Decision) -> Text | None:
    """The texts for a decision: those of its cause if there is one, else of its outcome; None if all is well."""
    return TEXTS.get(decision.cause) or TEXTS.get(decision.outcome)


def warning(decision: Decision, pod: Pod, group: Group | None) -> str:
    """The warning for the answer, at most `WARNING_LIMIT` characters; "" where none is due.

    Long names of pod and group are cut in their middle; what is said about them never is.
    """
    text = text_of(decision)
    if text is None or not text.warns:
        return ""
    return _about(pod, group, f" {_LEADS[decision.outcome]}: {text.short}", WARNING_LIMIT)


def warnings(decision: Decision, pod: Pod, group: Group | None) -> tuple[str, ...]:
    """All warnings for the answer: that of the decision, and one for each option that cannot be used."""
    problems = (_about(pod, group, f": {_end_cut(_line(text), 80)}", WARNING_LIMIT) for text in decision.problems)
    return tuple(filter(None, (warning(decision, pod, group), *problems)))


def event_message(decision: Decision, pod: Pod, group: Group | None) -> str:
    """The message of the event, at most `EVENT_LIMIT` characters: with cap, counts, and a reason for the nodes.

    It also serves where nothing went wrong ("is placed: …"), for logs and tables.
    """
    text = text_of(decision)
    why = f": {text.why}" if text is not None else ""
    advice = f". {text.advice}" if text is not None else ""
    names = _about(pod, group, f" {_LEADS[decision.outcome]}{why}", EVENT_LIMIT // 2)
    facts = "; ".join(_facts(decision))
    room = EVENT_LIMIT - len(names) - len(advice) - len("; ")
    return f"{names}{'; ' if text is not None else ': '}{_end_cut(facts, room)}{advice}" if facts else names + advice


def refusal(decision: Decision, pod: Pod, group: Group | None) -> str:
    """The message of a denial, which becomes the owner's FailedCreate event: as long as an event's."""
    return event_message(decision, pod, group)


def _facts(decision: Decision) -> list[str]:
    """What the decision rests on, the most telling first: everything after it may be cut."""
    facts = [_line(decision.detail)] if decision.detail else []
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
    return facts + [_line(problem) for problem in decision.problems]


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


def _end_cut(text: str, room: int) -> str:
    """The text in at most `room` characters."""
    return text if len(text) <= room else text[: room - len(_CUT)] + _CUT


def _line(text: str) -> str:
    """A text of foreign origin on one line: the header of a warning may hold no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
