"""A cluster that a simulation changes: the webhook decides, everybody else is played."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.app import DEFAULT_TIMEOUT
from webhook.cluster.door import NODES, PODS, Manifest
from webhook.cluster.fleet import FoundGroup, read_fleet
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.reader import Reader
from webhook.cluster.store import GroupStore
from webhook.core.affinity import without_ours
from webhook.core.case import case_for
from webhook.core.manifests import pod_from
from webhook.core.model import Group
from webhook.core.outcomes import Outcome
from webhook.core.safety import guard_reason
from webhook.core.shapes import inside, text
from webhook.deadline import Deadline
from webhook.embedded.answers import Admitted, admitted
from webhook.embedded.reviews import review_of
from webhook.metrics import Metrics
from webhook.operating.auditing import Report, report_of
from webhook.operating.connecting import Connection
from webhook.operating.looking import look
from webhook.operating.simulating.volumes import TIMEOUT, bind_local_volumes
from webhook.wiring import build_reviewer

# Seconds between two steps: what was in flight before is over.
BETWEEN: Final = 1000.0
# How often the waiting are asked again after a step: each place that one takes may be another's reason.
PASSES: Final = 3
RUNNING: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of one pod in a step. `node` "": it waits. `why` is the webhook's reason."""

    group: Group
    name: str
    node: str
    outcome: str
    why: str = ""


class World:
    """The copy. To be used by one thread."""

    def __init__(self, objects: Iterable[Manifest], connection: Connection, now: float) -> None:
        self._now = now
        self.cluster = MemoryCluster(objects, clock=lambda: self._now)
        self._connection = replace(connection, door=self.cluster)
        self._reviewer = build_reviewer(connection.settings, self.cluster, Metrics())
        # How each member was last seen, to be created again.
        self.last: dict[tuple[str, str], Manifest] = {}
        self._remember()

    @property
    def reader(self) -> Reader:
        """Reads of the copy."""
        return self._connection.reader

    def report(self) -> Report:
        """The audit of all groups now."""
        return report_of(read_fleet(self.reader))

    def settle(self, wanted: Iterable[Manifest]) -> list[Placed]:
        """Create what is wanted and not there, and have the waiting decided on anew; what became of each.

        `wanted`: pods as their owners would create them, in order.
        """
        self._now += BETWEEN
        found: dict[tuple[str, str], Placed] = {}
        for manifest in wanted:
            if placed := self._create(manifest):
                found[placed.group.namespace, placed.name] = placed
        for _ in range(PASSES):
            moved = [placed for manifest in self._waiting() if (placed := self._again(manifest)) is not None]
            found.update({(placed.group.namespace, placed.name): placed for placed in moved})
            if not any(placed.node for placed in moved):
                break
        self._remember()
        return list(found.values())

    def lose(self, names: Iterable[str]) -> None:
        """Take nodes away, with what runs on them."""
        gone = set(names)
        for pod in self.cluster.list(PODS, timeout=TIMEOUT).items:
            if text(inside(pod, "spec", "nodeName")) in gone:
                self._remove(pod)
        for name in gone:
            self.cluster.delete(NODES, name, timeout=TIMEOUT)

    def nodes_of_members(self) -> Iterator[str]:
        """The node of each member that has one."""
        for found in read_fleet(self.reader).groups:
            yield from (pod.node_name for pod in found.snapshot.pods if pod.node_name)

    def _members(self) -> Iterator[tuple[FoundGroup, str]]:
        for found in read_fleet(self.reader).groups:
            for pod in found.snapshot.pods:
                yield found, pod.name

    def _remember(self) -> None:
        for found, name in self._members():
            namespace = found.group.namespace
            self.last[namespace, name] = self.cluster.get(PODS, name, namespace=namespace, timeout=TIMEOUT)

    def _waiting(self) -> list[Manifest]:
        """Members without a node that their owners want."""
        found = []
        for group, name in self._members():
            pod = self.cluster.get(PODS, name, namespace=group.group.namespace, timeout=TIMEOUT)
            members = group.snapshot.desired.members
            if not inside(pod, "spec", "nodeName") and (members is None or name in members):
                found.append(pod)
        return found

    def _again(self, manifest: Manifest) -> Placed | None:
        self._remove(manifest)
        return self._create(manifest)

    def _remove(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        if metadata.get("finalizers"):
            patch = {"metadata": {"finalizers": None}}
            self.cluster.merge_patch(PODS, metadata["name"], patch, namespace=metadata["namespace"], timeout=TIMEOUT)
        self.cluster.delete(PODS, metadata["name"], namespace=metadata["namespace"], timeout=TIMEOUT)

    def _create(self, manifest: Manifest) -> Placed | None:
        """Have a pod admitted and, where it has a place, run; None for one that is no member."""
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        pod = fresh(manifest)
        group = GroupStore(self.cluster).recognise(pod_from(pod), Deadline.after(TIMEOUT)).group
        if group is None:
            return None
        # Its owner knows nothing of what we put in.
        pod = without_ours(pod, group)
        review = review_of(pod, namespace=namespace, uid=name)
        budget = DEFAULT_TIMEOUT - self._connection.settings.budget_margin
        answer = admitted(pod, self._reviewer.review(json.dumps(review).encode(), Deadline.after(budget)))
        outcome = answer.audit.get("outcome", Outcome.UNTOUCHED.value)
        node = (answer.node or self._scheduled(group, answer, outcome)) if answer.allowed else ""
        # It may be held to a node that is lost, by itself or by a record that nobody can read.
        node = node if node and self.reader.find(NODES, node) is not None else ""
        if node:
            self._run(namespace, name, node)
        why = text(answer.record.get("detail")) or answer.message or answer.audit.get("cause", "")
        return Placed(group, name, node, outcome, why)

    def _scheduled(self, group: Group, answer: Admitted, outcome: str) -> str:
        """Where the default scheduler may put a pod that is not pinned, "" if it waits."""
        if outcome == Outcome.RETURNED_WAITING.value:
            return ""
        seen = look(self._connection, group, answer.pod, namespace=group.namespace)
        if seen.snapshot is None:
            return ""
        case = case_for(seen.snapshot, seen.placing)
        apart = outcome == Outcome.GUARDED.value
        possible = [
            node.name
            for node in case.survey.feasible
            if not guard_reason(case.census, node) and not (apart and case.domain_of(node) in case.census.occupied)
        ]
        return next(iter(possible), "")

    def _run(self, namespace: str, name: str, node: str) -> None:
        patch: dict[str, Any] = {"spec": {"nodeName": node}, "status": RUNNING}
        pod = self.cluster.merge_patch(PODS, name, patch, namespace=namespace, timeout=TIMEOUT)
        manifest = self.cluster.get(NODES, node, timeout=TIMEOUT)
        bind_local_volumes(self.cluster, namespace, pod_from(pod).claim_names, manifest)


def fresh(manifest: Manifest) -> Manifest:
    """A pod as its owner creates it: without node, state and identity."""
    metadata = {
        key: deepcopy(value)
        for key, value in manifest["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "finalizers")
    }
    spec = {key: deepcopy(value) for key, value in manifest["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
