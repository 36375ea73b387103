"""What `why` says of a pod that has its node: whether it may stay there, and what to do if not."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.audit import audit
from webhook.core.audited import GroupAudit
from webhook.core.findings import listed, word
from webhook.core.model import Decision
from webhook.core.objects import Node, Pod
from webhook.core.outcomes import Outcome
from webhook.core.texts import TEXTS, text_of
from webhook.operating.why import Story


def amiss(story: Story) -> str:
    """What is wrong with where the pod is, as the end of a sentence, "" if nothing is, or nobody knows."""
    pod, audited = story.pod, _audited(story)
    if pod is None or audited is None:
        return ""
    if pod.node_name not in _nodes(story):
        return "a node that is not there (any more)"
    if audited.options.skip:
        return ""
    if pod.name in audited.unlabelled:
        return f"a node without the label {audited.topology_key}"
    domain = _stacked(audited, pod)
    if not domain:
        return ""
    names = listed([member.name for member in audited.members if member.domain == domain and member.desired])
    count = f"{audited.stacked[domain]} members of its group ({names})"
    return f"stacked: {word(audited.topology_key)} {domain} holds {count}, at most {audited.cap} may be there"


def to_do(story: Story) -> str:
    """What helps a pod that has its node."""
    pod, audited = story.pod, _audited(story)
    if pod is None or audited is None or not amiss(story):
        return "nothing"
    delete = f"kubectl delete pod -n {story.namespace} {story.name}"
    if pod.node_name not in _nodes(story):
        return (
            f"bring {pod.node_name} back; if it is gone for good: {delete}, and, where its volume was on that node and"
            " the others have its data (tidb-ha-webhook audit), its claim with it"
        )
    if pod.name in audited.unlabelled:
        return f"kubectl label node {pod.node_name} {audited.topology_key}=…, or correct the option topology-key"
    look = story.look
    return _move(look.decision, pod, delete) if look is not None else "nothing"


def _move(decision: Decision, pod: Pod, delete: str) -> str:
    """How one of the members that are together comes elsewhere."""
    when = "one at a time, when all others run"
    if decision.outcome is Outcome.PINNED and decision.node != pod.node_name:
        return f"{when}: {delete}; it would go to {decision.node}"
    if decision.outcome in (Outcome.PINNED, Outcome.RETURNED, Outcome.RETURNED_WAITING):
        return f"{TEXTS[Outcome.RETURNED].advice} Only {when}"
    text = text_of(decision)
    return f"first: {text.remedy if text else 'see why it has no other node'} Then, {when}: {delete}"


def _stacked(audited: GroupAudit, pod: Pod) -> str:
    domain = next((member.domain for member in audited.members if member.name == pod.name and member.desired), None)
    return domain if domain and domain in audited.stacked else ""


def _audited(story: Story) -> GroupAudit | None:
    """The audit of the pod's group, None where nothing is known."""
    if story.look is None or story.look.snapshot is None or not _nodes(story):
        return None
    return audit(story.look.snapshot)


def _nodes(story: Story) -> Mapping[str, Node]:
    snapshot = story.look.snapshot if story.look is not None else None
    return {node.name: node for node in snapshot.nodes} if snapshot is not None else {}
