"""What would be answered for each pod, decided in sequence as creates behave on a cluster, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.admission import Reviewer
from webhook.app import DEFAULT_TIMEOUT
from webhook.cluster.door import PODS, STATEFUL_SETS, Manifest, Resource
from webhook.cluster.kinds import resource_of
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.store import GroupStore
from webhook.core.manifests import pod_from
from webhook.core.messages import sentences
from webhook.core.outcomes import Cause, Outcome
from webhook.core.policy import nothing_to_decide
from webhook.core.review import KIND as REVIEW
from webhook.core.review import Review, parse_review
from webhook.core.shapes import inside, integer, text
from webhook.core.texts import TEXTS
from webhook.deadline import Deadline
from webhook.embedded.answers import Admitted, admitted
from webhook.embedded.reviews import review_of
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import ApiError, DumpError, NotFound, ReviewError
from webhook.metrics import Metrics
from webhook.planning.inputs import DEFAULT_NAMESPACE, STATEFUL_SET, Wanted
from webhook.planning.rows import EXISTS, Row
from webhook.settings import Settings
from webhook.wiring import build_reviewer

_CALL_TIMEOUT: Final = 1.0
# What the user asked for, of which the record says where it stands.
_ASKED_FOR: Final = {cause.value: TEXTS[cause].why for cause in (Cause.SKIP_OPTION, Cause.GUARD_OPTION)}


def with_wanted(objects: Iterable[Manifest], wanted: Iterable[Wanted]) -> tuple[Manifest, ...]:
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
    return (*kept, *sets.values())


def planner_on(objects: Iterable[Manifest], settings: Settings) -> Planner:
    """A planner on the embedded cluster of these objects. Raises DumpError."""
    cluster = MemoryCluster(objects)
    reviewer = build_reviewer(settings, cluster, Metrics(), warnings=lambda decision, _pod, _group: sentences(decision))
    return Planner(cluster, reviewer, settings)


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
            return _row(request, answer, self._missing_owner(request, answer))
        return self._left_alone(request, answer.warnings)

    def _missing_owner(self, request: Review, answer: Admitted) -> str:
        """What is not in the dump though the answer rests on it, in a sentence; "" if nothing is."""
        # Nothing else can be the matter with the embedded cluster.
        if answer.audit.get("cause") != Cause.API_TROUBLE:
            return ""
        owner = pod_from(request.pod_manifest).owner
        if owner is not None and owner.kind == STATEFUL_SET:
            return f"StatefulSet {request.namespace}/{owner.name} is not in the dump; add it, or give it with -f"
        kind = owner.kind if owner is not None else "owner"
        return f"no {kind}Group and no {kind} of {answer.audit.get('group')} is in the dump; add them"

    def _left_alone(self, request: Review, warnings: tuple[str, ...]) -> Row:
        """A pod about which the answer says nothing; `recognise` knows why."""
        pod = pod_from(request.pod_manifest, namespace=request.namespace)
        cause, reason = Cause.NOT_A_MEMBER, nothing_to_decide(pod)
        if request.operation != "CREATE" or request.sub_resource:
            reason = "only the CREATE of a pod is decided on"
        if not reason:
            recognised = self._store.recognise(pod, _soon())
            cause, reason = recognised.cause, recognised.detail
        name = pod.name or text(inside(request.pod_manifest, "metadata", "generateName"))
        lacks_set = (
            cause is Cause.UNUSABLE_SELECTOR and pod.owner is not None and self._store.owner_of(pod, _soon()) is None
        )
        return Row(
            namespace=request.namespace,
            pod=name,
            outcome=Outcome.UNTOUCHED.value,
            cause=cause.value,
            node=pod.node_name,
            known=not lacks_set,
            reason=f"{reason}; add it, or give it with -f" if lacks_set else reason,
            warnings=() if lacks_set else warnings,
        )


def _soon() -> Deadline:
    return Deadline.after(_CALL_TIMEOUT)


def _row(request: Review, answer: Admitted, missing: str) -> Row:
    """`missing`: what says how many members there are and is not in the dump, "" if nothing is."""
    record = answer.record if answer.allowed else {}
    return Row(
        namespace=request.namespace,
        pod=request.name,
        outcome=answer.audit["outcome"],
        cause=answer.audit.get("cause", ""),
        group=answer.audit.get("group", ""),
        node=answer.audit.get("node") or answer.node,
        domain=text(record.get("domain")),
        replicas=integer(record.get("replicas")),
        cap=integer(record.get("cap")),
        above_cap=record.get("aboveCap") is True,
        known=not missing,
        reason=missing or _reason(text(record.get("detail")), answer),
        warnings=() if missing else answer.warnings,
        patch=answer.operations,
    )


def _reason(detail: str, answer: Admitted) -> str:
    """What was found out, else why, in the words of the cause."""
    cause = answer.audit.get("cause", "")
    if cause in _ASKED_FOR and detail:
        return f"{_ASKED_FOR[cause]} ({detail})"
    words = TEXTS[Cause(cause)].why if cause else "it carries a decision that is still right"
    return detail or answer.message or next(iter(answer.warnings), words)


def _key(manifest: Manifest) -> tuple[Resource | None, str, str]:
    metadata = manifest["metadata"]
    return resource_of(manifest), metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"]
