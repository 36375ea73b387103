"""The use case: an AdmissionReview comes in, the pod's group is found, a node is decided, the answer goes out.

`Admission.review` is the one way in; it does not know HTTP. Trouble with the API never becomes an exception
here as long as a guard can be built: no answer means guard, not denial (docs/design.md, invariant 6). Only
where not even the group can be known (a generic set whose StatefulSet cannot be read) does the error go up, so that
the API server's failurePolicy decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Protocol

from webhook.core import keys, messages, options
from webhook.core.affinity import PatchResult, patch_for
from webhook.core.carriers import OptionCarriers
from webhook.core.decision_record import DecisionRecord
from webhook.core.groups import Recognised
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Group, Options
from webhook.core.objects import Pod
from webhook.core.outcomes import UNREADABLE, Cause, Outcome
from webhook.core.policy import nothing_to_decide, untouched, untouched_cause, when_unplaceable
from webhook.core.repeated import has_own_guard, own_placement
from webhook.core.requested import as_requested
from webhook.core.review import Review, allow, deny, parse_review
from webhook.deadline import Deadline
from webhook.errors import ApiError, OutOfTime
from webhook.events import Notice
from webhook.locking.protocol import Answer, Request
from webhook.logs import DecisionLine, log_decision

logger = logging.getLogger(__name__)

# Clients of Kubernetes wait so long (s) after a 429 and try again by themselves.
RETRY_AFTER: Final = 1


class Reviewer(Protocol):
    """What answers reviews: an `Admission`, or what stands before one."""

    def review(self, body: bytes, deadline: Deadline) -> dict[str, Any]:
        """The AdmissionReview that answers the one in `body`; raises `ReviewError` if there is none in it."""
        ...


class Groups(Protocol):
    """Finds the group that a pod is a member of; raises `errors.ApiError` or `errors.OutOfTime`."""

    def recognise(self, pod: Pod, deadline: Deadline) -> Recognised:
        """The pod's group, or why it is of none."""
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

    def decided(self, lock_wait_seconds: float, attempts: int, conflicts: int, unknown: int) -> None:
        """A member's answer was decided after so long, so many attempts, lost swaps and unknown outcomes."""
        ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What an admission works with. `requests_of` gives what a pod's manifest asks of a node, in base units."""

    groups: Groups
    placer: Placer
    figures: Figures
    notify: Callable[[Notice], None]
    requests_of: Callable[[Mapping[str, Any]], Mapping[str, Decimal]]
    warnings: messages.Warn = messages.warnings


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

        Raises ReviewError if the body is none; ApiError, OutOfTime and PatchError where no answer can be given.
        """
        arrived = deadline.clock()
        # 1. Read the review. Only the CREATE of a pod is our business.
        review = parse_review(body)
        if review.operation != "CREATE" or review.sub_resource:
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
        self._count(case, group.component, result.decision)
        self._tell(case, group, replace(answer, decision=result.decision))
        return self._response(case, group, result)

    def _recognise(self, case: Case) -> Recognised:
        pod = case.pod
        if why := nothing_to_decide(pod):
            return Recognised(None, Cause.NOT_A_MEMBER, why)
        try:
            return self._with.groups.recognise(pod, case.deadline)
        except (ApiError, OutOfTime):
            # Only its StatefulSet knows a generic set's group, but some pods are left alone whatever that is.
            cause = untouched_cause(pod, _own_options(pod, pod.labels[keys.CLASS_LABEL]))
            if cause is None:
                raise
            return Recognised(None, cause, "its StatefulSet could not be read")

    def _decide(self, case: Case, group: Group) -> Answer:
        pod = case.pod
        own = _own_options(pod, group.component)
        cause = untouched_cause(pod, own)
        if cause is not None:
            return Answer(untouched(cause, own))
        request = self._request(case, group)
        if (unchanged := self._placed_before(case, group, request)) is not None:
            return unchanged
        answer = self._asked(case, group, request)
        if answer.decision.cause in UNREADABLE and has_own_guard(pod, group):
            return Answer(Decision(Outcome.UNCHANGED))
        decision = when_unplaceable(answer.decision, answer.options)
        return replace(answer, decision=replace(decision, problems=decision.problems or answer.options.problems))

    def _asked(self, case: Case, group: Group, request: Request) -> Answer:
        """The placer's answer, and how long the pod waited for it."""
        decide = self._with.placer.look if case.review.dry_run else self._with.placer.place
        begun = case.deadline.clock()
        answer = decide(group, request)
        effort = replace(answer.effort, seconds=case.deadline.clock() - begun)
        if effort.attempts:
            self._with.figures.decided(effort.seconds, effort.attempts, effort.conflicts, effort.unknown)
        return replace(answer, effort=effort)

    def _request(self, case: Case, group: Group) -> Request:
        """What is ours in the pod is decided anew."""
        manifest, namespace = case.review.pod_manifest, case.pod.namespace
        placing = as_requested(manifest, group, self._with.requests_of, namespace=namespace)
        return Request(placing, case.deadline, case.arrived, case.review.uid)

    def _placed_before(self, case: Case, group: Group, request: Request) -> Answer | None:
        """The answer to a pod that carries a decision of ours for its own name which is still right, else None."""
        record = own_placement(case.pod, group)
        if record is None:
            return None
        if not record.token:
            # A dry run's, of which there is nothing to look up.
            return _unchanged(record) if case.review.dry_run else None
        seen = self._with.placer.look(group, request)
        is_right = record.token in seen.live_tokens and seen.decision.node == record.node
        return _unchanged(record) if is_right or seen.decision.cause in UNREADABLE else None

    def _left_alone(self, case: Case, recognised: Recognised) -> dict[str, Any]:
        """The answer for a pod of no group: in silence, unless its owner asks for more than can be done."""
        pod, cause, detail = case.pod, recognised.cause, recognised.detail
        decision = Decision(Outcome.UNTOUCHED, cause, detail=detail)
        if cause is Cause.NOT_A_MEMBER and keys.CLASS_LABEL in pod.labels:
            decision = Decision(Outcome.UNTOUCHED, cause, problems=(detail,))
        self._count(case, "", decision)
        if cause is not Cause.NOT_A_MEMBER or decision.problems:
            self._tell(case, None, Answer(decision))
        else:
            logger.debug("left alone: %s/%s: %s (review %s)", pod.namespace, pod.name, detail, case.review.uid)
        return allow(case.review.uid, warnings=self._with.warnings(decision, pod, None))

    def _count(self, case: Case, component: str, decision: Decision) -> None:
        seconds = case.deadline.clock() - case.arrived
        self._with.figures.reviewed(decision.outcome, decision.cause, component, seconds)

    def _tell(self, case: Case, group: Group | None, answer: Answer) -> None:
        """One log line, and an event where a warning is due: of a controller's pods nobody sees the warning."""
        decision, pod = answer.decision, case.pod
        line = DecisionLine(
            uid=case.review.uid,
            namespace=pod.namespace,
            pod=pod.name,
            group=str(group or ""),
            node=decision.node,
            outcome=decision.outcome,
            cause=decision.cause,
            lock_wait_ms=1000 * answer.effort.seconds,
            rounds=answer.effort.attempts,
        )
        log_decision(logger, line, messages.event_message(decision, pod, group, messages.LOG_LIMIT))
        if not case.review.dry_run and pod.owner is not None and messages.warnings(decision, pod, group):
            reason = decision.cause.value or f"Pod{decision.outcome.value.title().replace('-', '')}"
            message = messages.event_message(decision, pod, group)
            self._with.notify(Notice(pod.namespace, pod.owner, reason, message, pod.first_claim))

    def _response(self, case: Case, group: Group, result: PatchResult) -> dict[str, Any]:
        decision = result.decision
        found = {"outcome": decision.outcome, "group": str(group), "cause": decision.cause, "node": decision.node}
        audit = {name: str(value) for name, value in found.items() if value}
        uid = case.review.uid
        if result.refused is None and decision.outcome is not Outcome.DENIED:
            warnings = self._with.warnings(decision, case.pod, group)
            return allow(uid, patch=result.operations, warnings=warnings, audit=audit)
        message = messages.refusal(decision, case.pod, group)
        if result.refused is not None:
            # The v2 operator tries again by itself, and holds no StatefulSet worker meanwhile.
            return deny(uid, code=429, reason="TooManyRequests", message=message, retry_after=RETRY_AFTER, audit=audit)
        return deny(uid, code=403, reason="Forbidden", message=message, audit=audit)


def _own_options(pod: Pod, component: str) -> Options:
    """The options that stand on the pod itself, for which nothing has to be read."""
    return options.of_pod(component, pod, OptionCarriers())


def _unchanged(record: DecisionRecord) -> Answer:
    """The answer that leaves the pod where a decision of ours has placed it."""
    return Answer(Decision(Outcome.UNCHANGED, node=record.node, domain=record.domain))
