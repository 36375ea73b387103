"""The use case: an AdmissionReview comes in, the pod's group is found, a node is decided, the answer goes out.

`Admission.review` is the one way in; it does not know HTTP. Trouble with the API never becomes an exception
here as long as a guard can be built: no answer means guard, not denial (invariant 6). Only where not even the
group can be known (a generic set whose StatefulSet cannot be read) does `ApiError` go up, so that the API
server's failurePolicy decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Protocol

from webhook.core import keys, messages, options, records
from webhook.core.affinity import PatchResult, patch_for, without_ours
from webhook.core.groups import Recognised, needs_owner, recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Cause, Decision, Group, Options, Outcome, Placing
from webhook.core.objects import OwnerReference, Pod
from webhook.core.policy import untouched_cause, when_unplaceable
from webhook.core.review import Review, allow, deny, parse_review
from webhook.deadline import Deadline
from webhook.events import Notice
from webhook.locking.protocol import Answer, Request
from webhook.logs import DecisionLine, log_decision

logger = logging.getLogger(__name__)

# Clients of Kubernetes wait so long (s) after a 429 and try again by themselves.
RETRY_AFTER: Final = 1
# Causes that say "nothing could be read": a decision of ours on the pod is then left as it stands.
UNREADABLE: Final = frozenset({Cause.API_TROUBLE, Cause.API_FORBIDDEN, Cause.BUDGET_USED_UP, Cause.BUSY})
PLACED: Final = frozenset({Outcome.PINNED.value, Outcome.RETURNED.value, Outcome.RETURNED_WAITING.value})


class Owners(Protocol):
    """Reads the StatefulSet that owns a pod; raises `errors.ApiError`."""

    def owner_of(self, pod: Pod, deadline: Deadline) -> Mapping[str, Any] | None:
        """The StatefulSet, None if the pod has none or it is gone."""
        ...


class Placer(Protocol):
    """Decides for one pod of a group; never raises for API trouble."""

    def place(self, group: Group, request: Request) -> Answer:
        """Decide, and record the decision."""
        ...

    def look(self, group: Group, request: Request) -> Answer:
        """Decide as if; write nothing."""
        ...


class Figures(Protocol):
    """The metrics that an admission counts."""

    def reviewed(self, outcome: Outcome, cause: Cause, component: str, seconds: float) -> None:
        """A review was answered."""
        ...

    def decided(self, lock_wait_seconds: float, rounds: int, conflicts: int, unknown: int) -> None:
        """A member's answer was decided after so long, so many attempts, lost swaps and unknown outcomes."""
        ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What an admission works with. `requests_of` gives what a pod's manifest asks of a node, in base units."""

    owners: Owners
    placer: Placer
    figures: Figures
    notify: Callable[[Notice], None]
    requests_of: Callable[[Mapping[str, Any]], Mapping[str, Decimal]]


@dataclass(frozen=True, slots=True)
class Case:
    """One review about a pod, as far as it has been understood."""

    review: Review
    pod: Pod
    deadline: Deadline
    arrived: float


class Admission:
    """Answers AdmissionReviews."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._with = collaborators

    def review(self, body: bytes, deadline: Deadline) -> dict[str, Any]:
        """The whole answer to the AdmissionReview in a request body.

        Raises ReviewError if the body is none; ApiError and PatchError where no answer can be given at all.
        """
        arrived = deadline.clock()
        # 1. Read the review. Only the CREATE of a pod is our business.
        review = parse_review(body)
        if review.operation != "CREATE" or review.sub_resource or review.resource != "pods":
            return allow(review.uid)
        case = Case(review, pod_from(review.pod_manifest, namespace=review.namespace), deadline, arrived)
        # 2. Find the pod's group.
        recognised = self._recognise(case)
        group = recognised.group
        if group is None:
            return self._left_alone(case, recognised)
        # 3. Decide.
        answer = self._decide(case, group)
        # 4. Turn the decision into a patch that has been checked against this very pod.
        result = patch_for(review.pod_manifest, group, answer.decision, answer.token or None)
        # 5. Tell, and answer.
        self._tell(case, group, answer, result)
        return self._response(case, group, result)

    def _recognise(self, case: Case) -> Recognised:
        if case.pod.node_name or not case.pod.name:
            # Bound already, or its name is made after admission: there is nothing to decide about it.
            return Recognised(None, Cause.NOT_A_MEMBER, "the pod has a node or no name yet")
        owner = self._with.owners.owner_of(case.pod, case.deadline) if needs_owner(case.pod) else None
        return recognise(case.pod, owner)

    def _decide(self, case: Case, group: Group) -> Answer:
        pod = case.pod
        own = options.resolve(group.component, pod=pod.annotations, group_objects=(), cluster={})
        cause = Cause.SKIP_OPTION if own.skip else untouched_cause(pod)
        if cause is not None:
            return Answer(Decision(Outcome.UNTOUCHED, cause))
        manifest = without_ours(case.review.pod_manifest, group)
        placing = Placing(pod_from(manifest, namespace=pod.namespace), self._with.requests_of(manifest))
        request = Request(placing, case.deadline, case.arrived)
        if self._stands(case, group, request):
            return Answer(Decision(Outcome.UNCHANGED))
        decide = self._with.placer.look if case.review.dry_run else self._with.placer.place
        answer = decide(group, request)
        in_force = answer.options if answer.options != Options() else own
        return replace(answer, decision=when_unplaceable(answer.decision, in_force))

    def _stands(self, case: Case, group: Group, request: Request) -> bool:
        """Whether the pod carries a decision of ours for its own name that is still right."""
        record = records.record_from(case.pod.annotations.get(keys.DECISION))
        if record is None or record.member != case.pod.name or record.outcome not in PLACED:
            return False
        if not record.token:
            # A dry run's: accepted in a dry run, where there is nothing to look it up in.
            return case.review.dry_run
        seen = self._with.placer.look(group, request)
        if seen.decision.cause in UNREADABLE:
            return True
        return record.token in seen.live_tokens and seen.decision.node == record.node

    def _left_alone(self, case: Case, recognised: Recognised) -> dict[str, Any]:
        decision = Decision(Outcome.UNTOUCHED, recognised.cause, detail=recognised.detail)
        self._with.figures.reviewed(decision.outcome, decision.cause, "", case.deadline.clock() - case.arrived)
        logger.debug("left alone: %s/%s: %s", case.pod.namespace, case.pod.name, recognised.detail)
        return allow(case.review.uid, warnings=messages.warnings(decision, case.pod, None))

    def _tell(self, case: Case, group: Group, answer: Answer, result: PatchResult) -> None:
        decision, pod = result.decision, case.pod
        seconds = case.deadline.clock() - case.arrived
        effort = answer.effort
        self._with.figures.reviewed(decision.outcome, decision.cause, group.component, seconds)
        if effort.attempts:
            self._with.figures.decided(seconds, effort.attempts, effort.conflicts, effort.unknown)
        line = DecisionLine(
            uid=case.review.uid,
            namespace=pod.namespace,
            pod=pod.name,
            group=str(group),
            node=decision.node,
            outcome=decision.outcome,
            cause=decision.cause,
            lock_wait_ms=1000 * seconds,
            rounds=effort.attempts,
        )
        log_decision(logger, line, messages.event_message(decision, pod, group))
        if not case.review.dry_run and pod.owner is not None and messages.warning(decision, pod, group):
            self._with.notify(_notice(pod, pod.owner, group, decision))

    def _response(self, case: Case, group: Group, result: PatchResult) -> dict[str, Any]:
        decision = result.decision
        warnings = messages.warnings(decision, case.pod, group)
        audit = {"outcome": decision.outcome.value, "group": str(group)}
        if decision.cause is not Cause.NONE:
            audit["cause"] = decision.cause.value
        if decision.node:
            audit["node"] = decision.node
        uid = case.review.uid
        if result.refused is None and decision.outcome is not Outcome.DENIED:
            return allow(uid, patch=result.operations, warnings=warnings, audit=audit)
        message = messages.refusal(decision, case.pod, group)
        if result.refused is not None:
            # The v2 operator tries again by itself, and holds no StatefulSet worker meanwhile.
            return deny(uid, code=429, reason="TooManyRequests", message=message, retry_after=RETRY_AFTER, audit=audit)
        return deny(uid, code=403, reason="Forbidden", message=message, audit=audit)


def _notice(pod: Pod, owner: OwnerReference, group: Group, decision: Decision) -> Notice:
    reason = f"Pod{decision.outcome.value.title().replace('-', '')}"
    return Notice(pod.namespace, owner, reason, messages.event_message(decision, pod, group))
