"""What would be answered for each pod, decided in sequence as creates behave on a cluster, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from webhook.admission import Reviewer
from webhook.app import DEFAULT_TIMEOUT
from webhook.cluster.door import PODS, STATEFUL_SETS, Manifest, Resource
from webhook.cluster.kinds import resource_of
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.store import GroupStore
from webhook.core.manifests import pod_from
from webhook.core.outcomes import PINNING, Cause, Outcome
from webhook.core.policy import nothing_to_decide
from webhook.core.review import KIND as REVIEW
from webhook.core.review import Review, parse_review
from webhook.core.shapes import inside, integer, text
from webhook.deadline import Deadline
from webhook.embedded.answers import Admitted, admitted
from webhook.embedded.reviews import review_of
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import ApiError, DumpError, NotFound, ReviewError
from webhook.metrics import Metrics
from webhook.planning.inputs import DEFAULT_NAMESPACE, STATEFUL_SET, Wanted
from webhook.settings import Settings
from webhook.wiring import build_reviewer, objects_of

EXISTS: Final = "exists"
_LEFT_ALONE: Final = frozenset({Cause.NOT_A_MEMBER.value, Cause.SET_OF_ONE.value, Cause.SKIP_OPTION.value})
_CALL_TIMEOUT: Final = 1.0


class Verdict(StrEnum):
    """What an outcome means for whoever waits for the pod."""

    PLACED = "placed"
    NOT_PLACED = "not placed"
    LEFT_ALONE = "left alone"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class Row:
    """What would be answered for one pod. `outcome` and `cause` are Kubernetes-style words of the product.

    `cap` None: none, or not known. `node` "": any that the scheduler likes. `patch`: the JSON Patch.
    """

    namespace: str
    pod: str
    outcome: str
    cause: str = ""
    group: str = ""
    node: str = ""
    domain: str = ""
    replicas: int | None = None
    cap: int | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    patch: Sequence[Any] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """Whether the pod has its place."""
        if self.outcome == EXISTS:
            return Verdict.EXISTS
        if self.outcome in PINNING or (self.outcome == Outcome.UNCHANGED and self.node):
            return Verdict.PLACED
        left_alone = self.outcome == Outcome.UNTOUCHED and self.cause in _LEFT_ALONE
        return Verdict.LEFT_ALONE if left_alone else Verdict.NOT_PLACED


def all_placed(rows: Iterable[Row]) -> bool:
    """Whether every member has its place. Pods that are left alone do not matter, but they are no success either."""
    verdicts = {row.verdict for row in rows}
    return Verdict.NOT_PLACED not in verdicts and not verdicts <= {Verdict.LEFT_ALONE}


def cluster_with(objects: Iterable[Manifest], wanted: Iterable[Wanted]) -> MemoryCluster:
    """The dump's objects with the StatefulSets that the user wants in the place of those of their names."""
    sets = {_key(each.manifest): each.manifest for each in wanted if each.kind == STATEFUL_SET}
    kept = []
    for found in objects:
        applied = sets.get(_key(found))
        if applied is None:
            kept.append(found)
        else:
            # Applied to the set that is there: its pods know it by its uid.
            metadata = {**applied["metadata"], "uid": found["metadata"].get("uid")}
            sets[_key(found)] = {**applied, "metadata": metadata}
    return MemoryCluster([*kept, *sets.values()])


def planner_for(dump: Path, wanted: Iterable[Wanted], settings: Settings) -> Planner:
    """A planner on the embedded cluster of a dump. Raises DumpError."""
    cluster = cluster_with(objects_of(dump), wanted)
    return Planner(cluster, build_reviewer(settings, cluster, Metrics()), settings)


class Planner:
    """Has creates decided one after another; `reviewer` works on `cluster` and keeps what it admits there."""

    def __init__(self, cluster: MemoryCluster, reviewer: Reviewer, settings: Settings) -> None:
        self._cluster = cluster
        self._store = GroupStore(cluster)
        self._reviewer = reviewer
        self._budget = DEFAULT_TIMEOUT - settings.budget_margin

    def rows(self, wanted: Wanted) -> Iterator[Row]:
        """A row for each pod of one wanted object. Raises DumpError for one that cannot be created."""
        try:
            if wanted.kind == REVIEW:
                yield self._answer(wanted.manifest)
            elif wanted.kind == STATEFUL_SET:
                yield from self._set(wanted)
            else:
                yield self._answer(review_of(wanted.manifest, namespace=wanted.namespace, uid=wanted.name))
        except (SetError, ReviewError, ApiError) as error:
            raise DumpError(f"{wanted.place}: {error}") from error

    def _set(self, wanted: Wanted) -> Iterator[Row]:
        """Its controller creates those pods that are not there."""
        resource = resource_of(wanted.manifest) or STATEFUL_SETS
        stored = self._find(resource, wanted.namespace, wanted.name) or wanted.manifest
        for pod in pods_of(stored):
            name = pod["metadata"]["name"]
            there = self._find(PODS, wanted.namespace, name)
            if there is None:
                yield self._answer(review_of(pod, namespace=wanted.namespace, uid=name))
            else:
                node = pod_from(there).node_name
                yield Row(wanted.namespace, name, EXISTS, node=node, reason="a pod of this name is there already")

    def _find(self, resource: Resource, namespace: str, name: str) -> Manifest | None:
        try:
            return self._cluster.get(resource, name, namespace=namespace, timeout=_CALL_TIMEOUT)
        except NotFound:
            return None

    def _answer(self, review: Manifest) -> Row:
        try:
            body = json.dumps(review).encode()
        except TypeError as error:
            # YAML has types that JSON has not.
            raise ReviewError(f"a value cannot be written as JSON: {error}") from error
        request = parse_review(body)
        answer = admitted(request.pod_manifest, self._reviewer.review(body, Deadline.after(self._budget)))
        if "outcome" in answer.audit:
            return _row(request.namespace, request.name, answer)
        return self._left_alone(request, answer.warnings)

    def _left_alone(self, request: Review, warnings: tuple[str, ...]) -> Row:
        """A pod about which the answer says nothing; `recognise` knows why."""
        pod = pod_from(request.pod_manifest, namespace=request.namespace)
        cause, reason = Cause.NOT_A_MEMBER, nothing_to_decide(pod)
        if request.operation != "CREATE" or request.sub_resource:
            reason = "only the CREATE of a pod is decided on"
        if not reason:
            recognised = self._store.recognise(pod, Deadline.after(_CALL_TIMEOUT))
            cause, reason = recognised.cause, recognised.detail
        name = pod.name or text(inside(request.pod_manifest, "metadata", "generateName"))
        return Row(
            namespace=request.namespace,
            pod=name,
            outcome=Outcome.UNTOUCHED.value,
            cause=cause.value,
            node=pod.node_name,
            reason=reason,
            warnings=warnings,
        )


def _row(namespace: str, name: str, answer: Admitted) -> Row:
    record = answer.record if answer.allowed else {}
    return Row(
        namespace=namespace,
        pod=name,
        outcome=answer.audit["outcome"],
        cause=answer.audit.get("cause", ""),
        group=answer.audit.get("group", ""),
        node=answer.audit.get("node") or answer.node,
        domain=text(record.get("domain")),
        replicas=integer(record.get("replicas")),
        cap=integer(record.get("cap")),
        reason=text(record.get("detail")) or answer.message or next(iter(answer.warnings), ""),
        warnings=answer.warnings,
        patch=answer.operations,
    )


def _key(manifest: Manifest) -> tuple[Resource | None, str, str]:
    metadata = manifest["metadata"]
    return resource_of(manifest), metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"]
