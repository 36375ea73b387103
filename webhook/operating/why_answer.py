"""The answer of `why` in five lines: what holds for the pod, what was decided, how it is, what would be, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.controller.rescue import Finding, Verdict
from webhook.controller.texts import NOT_FREED
from webhook.core import keys
from webhook.core.counting import guard_key
from webhook.core.decision_record import largest_counts
from webhook.core.explanation import Explanation
from webhook.core.model import Decision, Group
from webhook.core.objects import Pod
from webhook.core.outcomes import PINNING, Cause, Outcome
from webhook.core.policy import nothing_to_decide
from webhook.core.texts import TEXTS, text_of
from webhook.operating import why_running
from webhook.operating.page import listed
from webhook.operating.why import Story

NEVER_ASKED: Final = (
    "is a member, but the webhook was never asked about it: it was created while no replica answered, before the"
    " webhook was there, or past its selectors"
)

# A pod that is named, unlike in "kubectl delete pod has it decided anew".
_DELETE: Final = re.compile(r"kubectl delete pod (?=(?!-n )\S*-\S)")


def headline(story: Story) -> str:
    """What holds for the pod, in one sentence."""
    return f"{story.namespace}/{story.name} {_holds(story)}"


def facts(story: Story) -> Iterator[tuple[str, str]]:
    """The four lines below it."""
    yield "decided", _decided(story)
    yield "present", present(story)
    yield "again", again(story)
    yield "to do", to_do(story)


def _holds(story: Story) -> str:
    if story.absent is not None:
        return f"does not exist; {story.absent.why}"
    pod, group = story.pod, story.group
    if pod is None or group is None:
        return f"is left alone: not a member, because {story.recognised.detail}"
    if story.recorded.explanation is not None:
        return f"of {group} {_by_record(story.recorded.explanation, pod, _known_why(story))}"
    if story.recorded.problem:
        return f"of {group} has no decision that can be read: {story.recorded.problem}"
    return f"of {group} {_without_record(story, pod, group)}"


def _without_record(story: Story, pod: Pod, group: Group) -> str:
    if guard_key(pod, group):
        return "carries the guard of the floor: the API server put it in, and no replica of the webhook was asked"
    if pod.annotations.get(keys.PREFIX + keys.SKIP) == "true":
        return f"is left alone: {TEXTS[Cause.SKIP_OPTION].why}"
    if pod.scheduler_name == keys.TIDB_SCHEDULER:
        return f"is left alone: {TEXTS[Cause.TIDB_SCHEDULER].why}"
    if keys.MIRROR_POD in pod.annotations:
        return f"is left alone: {nothing_to_decide(pod)}"
    if story.look is not None and story.look.decision.outcome is Outcome.UNTOUCHED:
        return f"is left alone: {TEXTS[story.look.decision.cause].why}"
    return NEVER_ASKED


def _known_why(story: Story) -> str:
    """What is in the way, more exactly than by the record's cause, if it is the same now; else ""."""
    explanation, look = story.recorded.explanation, story.look
    if explanation is None or look is None or not _is_same(explanation, look.decision):
        return ""
    text = text_of(look.decision)
    return text.why if text is not None else ""


def _by_record(explanation: Explanation, pod: Pod, known: str) -> str:
    record = explanation.record
    why = known or _why(record.outcome, record.cause)
    match record.outcome:
        case Outcome.PINNED:
            return f"was pinned to {record.node}{_whether_there(pod, record.node)}"
        case Outcome.RETURNED:
            above = _above(explanation.above_cap)
            return f"went back to its data on {record.node}{above}{_whether_there(pod, record.node)}"
        case Outcome.RETURNED_WAITING:
            return f"waits for the node of its data (domain {record.domain})" if not pod.node_name else _on(pod)
        case Outcome.GUARDED if pod.node_name:
            return f"was guarded ({why}), and the scheduler has put it on {pod.node_name}"
        case Outcome.GUARDED:
            return f"waits apart from its siblings: {why}"
        case Outcome.UNTOUCHED:
            return f"is left alone: {why}"
        case Outcome.ADMITTED:
            return f"was let in without a place: {why}"
        case _:
            return f"was {record.outcome}"


def _why(outcome: str, cause: str) -> str:
    """The table's words for what a record names; a cause of a later version stands for itself."""
    known = {each.value: text for each, text in TEXTS.items()}
    text = known.get(cause) or known.get(outcome)
    return text.why if text is not None else cause or outcome


def _whether_there(pod: Pod, node: str) -> str:
    if not pod.node_name:
        return ", and is not bound yet"
    return ", and is there" if pod.node_name == node else f", but is on {pod.node_name}"


def _on(pod: Pod) -> str:
    return f"came back to its data on {pod.node_name}"


def _decided(story: Story) -> str:
    explanation = story.recorded.explanation
    if explanation is None:
        return story.recorded.problem and "nothing that can be read"
    parts = [explanation.detail] if explanation.detail else []
    if explanation.replicas:
        cap = "no cap" if explanation.cap is None else f"cap {explanation.cap}"
        parts.append(f"{cap} for {explanation.replicas} replicas by {explanation.record.topology_key}")
    if counts := largest_counts(explanation.counts):
        parts.append("members then: " + listed([f"{domain} {count}" for domain, count in counts]))
    return "; ".join(parts)


def present(story: Story) -> str:
    """How the pod is now."""
    pod = story.pod
    if story.absent is not None or pod is None:
        return ""
    state = [pod.phase or "Pending", *(["Ready"] if pod.ready else []), *(["being deleted"] if pod.deleting else [])]
    state.append(f"on {pod.node_name}" if pod.node_name else "without a node")
    if pod.node_name and (wrong := why_running.amiss(story)):
        state.append(wrong)
    if story.scheduler and not pod.node_name:
        state.append(f"the scheduler says: {story.scheduler}")
    return ", ".join(state)


def again(story: Story) -> str:
    """What would be decided now."""
    if story.look is None:
        return ""
    decision = story.look.decision
    if story.absent is not None and decision.cause is Cause.NO_LOCK_CLAIM:
        return "not known: its claims are not there either; `tidb-ha-webhook plan` shows what it would get with them"
    if not story.look.known:
        why = decision.detail or TEXTS[decision.cause].why
        return f"not known what would be decided now: {why}"
    explanation = story.recorded.explanation
    same = explanation is not None and _is_same(explanation, decision)
    said = f"{_in_short(decision)}{f' ({decision.detail})' if decision.detail else ''}"
    if same:
        return f"the same if it were created now: {said}"
    moved = "; what runs is not moved" if story.pod is not None and story.pod.node_name else ""
    return f"if it were created now: {said}{moved}"


def _is_same(explanation: Explanation, decision: Decision) -> bool:
    record = explanation.record
    return (record.outcome, record.cause, record.node) == (decision.outcome, decision.cause, decision.node)


def _above(above_cap: bool) -> str:
    return ", above the cap" if above_cap else ""


def _in_short(decision: Decision) -> str:
    text = text_of(decision)
    why = f", because {text.why}" if text is not None and decision.cause is not Cause.NONE else ""
    match decision.outcome:
        case Outcome.PINNED:
            return f"pinned to {decision.node}"
        case Outcome.RETURNED:
            return f"sent back to its data on {decision.node}{_above(decision.above_cap)}"
        case Outcome.RETURNED_WAITING:
            return f"left to wait for the node of its data (domain {decision.domain})"
        case Outcome.UNTOUCHED:
            return f"left alone{why}"
        case outcome:
            return f"{outcome.value}{why}"


def to_do(story: Story) -> str:
    """What helps, if anything has to; pods that are to be deleted are named with their namespace."""
    return _DELETE.sub(rf"kubectl delete pod -n {story.namespace} ", _to_do(story))


def _to_do(story: Story) -> str:
    if story.absent is not None:
        return _for_absent(story)
    if story.pod is None or story.group is None:
        return _for_stranger(story)
    if story.pod.node_name or story.pod.finished:
        return "nothing" if story.pod.finished else why_running.to_do(story)
    if isinstance(story.finding, Finding) and story.finding.verdict is Verdict.FREE:
        if any(happened.reason == NOT_FREED for happened in story.events.happened):
            mend = f"mend first what the event {NOT_FREED} below names: do not delete it before"
            return f"{story.finding.why}; but {mend}"
        return (
            f"{_first(story)}{story.finding.why}: the controller has it created anew within 30 s; where none runs: "
            f"kubectl delete pod -n {story.namespace} {story.name}"
        )
    if isinstance(story.finding, Finding) and story.finding.verdict is Verdict.LEAVE:
        return f"wait: {story.finding.why}"
    if isinstance(story.finding, Finding) and story.look is not None and story.look.decision.outcome in PINNING:
        return f"let its owner go on: {story.finding.why}"
    if story.look is None or not story.look.known:
        return "mend what keeps the webhook's data from being read, then ask again"
    text = text_of(story.look.decision)
    return text.advice if text is not None else "wait for the scheduler; its own words are above"


def _for_absent(story: Story) -> str:
    if story.look is None or not story.look.known:
        where = "look at the events below, and at its owner's" if story.events.happened else "look at its owner"
        return f"{where}: kubectl describe -n {story.namespace}"
    decision = story.look.decision
    if decision.outcome is Outcome.DENIED:
        text = text_of(decision)
        return f"{text.advice if text else ''} Or set the option when-unplaceable to Guard, so that it waits instead"
    return "its owner tries again by itself, with a delay that doubles up to about 16 minutes"


def _first(story: Story) -> str:
    """What has to be mended first where the pod would wait again if it were created anew."""
    if story.look is None or story.look.decision.cause is not Cause.NO_SAFE_NODE:
        return ""
    text = text_of(story.look.decision)
    return f"{text.remedy} Until then it waits again. " if text is not None else ""


def _for_stranger(story: Story) -> str:
    """For a pod of no group. One without a controller may be a member that its owner has let go, so others count it."""
    pod = story.pod
    labels = pod.labels if pod is not None and pod.owner is None else {}
    if keys.TIDB_OPERATOR in labels.values():
        label = next(key for key, value in labels.items() if value == keys.TIDB_OPERATOR)
        return f"audit and can-drain count it by its labels; if it is no orphan of a set, take the label {label} off it"
    return TEXTS[story.recognised.cause].advice
