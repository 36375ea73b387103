"""One probe, judged by both; what differs, in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

from e2e.api import Api
from e2e.differential.constraints import NAMESPACES
from e2e.differential.scheduler import Verdict, reasons_in, verdict_on
from e2e.differential.stage import BY, MARKED, with_owner
from e2e.differential.webhook import InsideWebhook
from e2e.differential.worlds import World
from e2e.objects import DECISION, Object
from webhook.core.spreading import PIN_SKEWS

REPELLED: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
"""What the scheduler says of a marked pod for every node that it would accept."""

OURS: Final = ("domain ", "its node ", "node already holds a member", "guarded member ", PIN_SKEWS)
"""How the webhook's own reasons begin: the scheduler would accept the node."""

COUNTED_REASON: Final = re.compile(r"(\d+) (.*)")
UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True)
class Case:
    """A probe of a world on the stage. `by`: which of the two admissions decides."""

    api: Api
    inside: InsideWebhook
    world: World
    owner: str
    probe: Object
    by: str

    def verdict(self, **labels: str) -> Verdict:
        """The scheduler's on the probe with more labels."""
        self.inside.settle()
        pod = with_owner(self.probe, self.owner)
        metadata = {**pod["metadata"], "labels": {**pod["metadata"]["labels"], **labels}}
        return verdict_on(self.api, {**pod, "metadata": metadata}, provisioning=MARKED not in labels)

    def pods(self) -> dict[str, str]:
        """Who is there, and on which node."""
        found = (pod for name in NAMESPACES for pod in self.api.list("Pod", name))
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in found}

    def full_nodes(self, pods: Mapping[str, str]) -> set[str]:
        """The nodes that hold as many members as the HA rule allows."""
        counts = Counter(node for pod, node in pods.items() if self.is_member(pod))
        return {node for node, count in counts.items() if self.world.cap is not None and count >= self.world.cap}

    def is_member(self, pod: str) -> bool:
        """Whether a pod of this name is one of the probe's siblings."""
        return pod.startswith(f"{self.world.owner['metadata']['name']}-")


@dataclass(frozen=True)
class Judged:
    """What was decided, and in what the two differ."""

    outcome: str
    differences: tuple[str, ...]


def judge(case: Case) -> Judged:
    """Ask both about the probe. It is gone afterwards; what it has bound or preempted is not undone."""
    before = case.pods()
    repelled = case.verdict(**{MARKED: "yes"})
    decided = case.verdict(**{BY: case.by})
    gone = before.keys() - case.pods().keys()
    record = json.loads(decided.created["metadata"]["annotations"][DECISION])
    differences = [*_reasons_differ(record, repelled)]
    if record["outcome"] in ("pinned", "returned"):
        differences += _pin_differs(record, decided, gone)
    else:
        siblings = {name for name in gone if case.is_member(name)}
        differences += _refusal_differs(record, decided, siblings)
        differences += _without_need(record, case.verdict(), case.full_nodes(before))
    return Judged(_named(record, gone), tuple(differences))


def _named(record: Object, gone: Set[str]) -> str:
    return " ".join(filter(None, (record["outcome"], record.get("cause", ""), "preempting" if gone else "")))


def _no_pin_is_possible(record: Object) -> bool:
    """Whether a pin itself would have kept the pod off a node; the guard does not."""
    return any(PIN_SKEWS in reason for reason in record.get("reasons", ()))


def _announces_preemption(record: Object) -> bool:
    return "preempting" in record.get("detail", "")


def _reasons_differ(record: Object, repelled: Verdict) -> Iterator[str]:
    """The webhook's reasons, node by node, against the scheduler's."""
    if record.get("cause") == "NoLockClaim":
        # Nothing was decided: the pod's own claim cannot be used.
        return
    if repelled.node:
        yield f"a marked pod was not kept off {repelled.node}"
    theirs, ours = reasons_in(repelled.message), _counted(record)
    unsafe = sum(count for reason, count in ours.items() if reason.startswith(OURS))
    for reason in (REPELLED, *filter(lambda reason: reason.startswith(OURS), tuple(ours))):
        del theirs[reason], ours[reason]
    # A node may be both: possible by preempting only, and not by the HA rule.
    if ours - theirs or (theirs - ours and not unsafe):
        yield f"reasons: {dict(ours)}, the scheduler's: {dict(theirs)}"


def _counted(record: Object) -> Counter[str]:
    """How many nodes each of the webhook's reasons is given for; also what is in the way on the node that was taken.

    A reason that is the pod's and no node's counts once, as in `reasons_in`.
    """
    counted: Counter[str] = Counter()
    for told in record.get("reasons", ()):
        if counts := COUNTED_REASON.fullmatch(told):
            counted[counts[2]] += int(counts[1])
        else:
            counted[_as_the_scheduler_says(told)] += 1
    if in_the_way := re.search(r"preempting pods of lower priority \((.*)\)$", record.get("detail", "")):
        counted.update(in_the_way[1].split("; "))
    return counted


def _as_the_scheduler_says(reason: str) -> str:
    """Without what the webhook adds: which claim has no class."""
    return UNBOUND_IMMEDIATE if reason.startswith(UNBOUND_IMMEDIATE) else reason


def _pin_differs(record: Object, decided: Verdict, gone: Set[str]) -> Iterator[str]:
    """Whether the pod gets the node that it was promised, and whether others go for it only where that was said."""
    if decided.node != record["node"]:
        yield f"pinned to {record['node']}, but: {decided.node or decided.message}"
    if gone and not _announces_preemption(record):
        yield f"no preemption was announced, but {sorted(gone)} had to go"
    if not gone and _announces_preemption(record):
        yield "a preemption was announced, but nobody had to go"


def _refusal_differs(record: Object, decided: Verdict, siblings: Set[str]) -> Iterator[str]:
    """Whether the pod, as it was decided, has no node either; `siblings`: those that were preempted for it.

    Where these are of lower priority than the pod, and where the group may have no more members, the guard's rule
    is kept by preempting them.
    """
    if (record["outcome"], record.get("cause")) not in (
        ("guarded", "NoSafeNode"),
        ("guarded", "NoLockClaim"),
        ("returned-waiting", None),
    ):
        yield f"unexpected: {record}"
    if decided.node and not siblings and not _no_pin_is_possible(record):
        yield f"{record['outcome']} without need: the scheduler has put it on {decided.node}"


def _without_need(record: Object, untouched: Verdict, full: Set[str]) -> Iterator[str]:
    """Whether the pod as its owner made it gets a node for which the HA rule was not what we said."""
    if _no_pin_is_possible(record):
        return
    if untouched.node and untouched.node not in full:
        yield f"no node was found, but the untouched pod was put on {untouched.node}"
    elif untouched.node and not any(f" {untouched.node} " in reason for reason in record.get("reasons", ())):
        yield f"the untouched pod was put on {untouched.node}, of which nothing is said: {record}"
