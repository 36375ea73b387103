"""The leader's turns: find the pods of ours that wait, look at what is there for each, free those that it helps.

One pod of a group at a time: the next one's place depends on where this one's next life goes. Deleting a pod that is
bound, or has been created again, meanwhile is refused by the preconditions, whoever else is at it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from webhook.cluster.door import PODS, Door
from webhook.cluster.reader import Reader, time_left
from webhook.controller import texts
from webhook.controller.memory import Freed, RescueMemory
from webhook.controller.rescue import Finding, Held, Kind, Sight, Verdict, judge
from webhook.controller.scan import Found, Groups, Scanner
from webhook.core.manifests import pod_from
from webhook.core.objects import Pod
from webhook.deadline import Deadline
from webhook.errors import ApiError, Conflict, NotFound, OutOfTime, UnknownOutcome
from webhook.events import Notice
from webhook.logs import DecisionLine, log_decision

logger = logging.getLogger(__name__)

# A turn ends (s) while the Lease is still ours; a look takes no more of it than this (s), and at least so much.
TURN: Final = 8.0
LOOK: Final = 5.0
LEAST_LOOK: Final = 2.0
MOST_LOOKS: Final = 20
# For so long (s) without a break a pin must have been impossible, or a place have been there for a guarded pod: the
# scheduler may need a moment, and things come back.
PATIENCE: Final[Mapping[Kind, float]] = {Kind.PINNED: 10.0, Kind.GUARDED: 5.0}


class Figures(Protocol):
    """The metrics of rescue."""

    def rescued(self, kind: str, result: str) -> None:
        """A pod was freed ("replaced"), or it was not any more as it was seen ("moved-on"), or that "failed"."""
        ...

    def stuck(self, number: int) -> None:
        """So many pods wait, and nothing better is there."""
        ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What rescue works with. `look` gives what is there for a held pod, by its manifest, within a deadline."""

    door: Door
    groups: Groups
    look: Callable[[Held, dict[str, Any], Deadline], Sight]
    figures: Figures
    notify: Callable[[Notice], None]
    clock: Callable[[], float]
    other_schedulers: Collection[str] = ()


class Rescue:
    """Frees pods, turn by turn. To be used by one thread."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._with = collaborators
        self._clock = collaborators.clock
        self._scanner = Scanner(
            collaborators.door, collaborators.groups, collaborators.other_schedulers, self._say_failed
        )
        self._memory = RescueMemory(self._clock)
        self._failures: set[str] = set()
        self._failures_before: set[str] = set()

    def forget(self) -> None:
        """Another one leads now: what was seen here is of no use for later."""
        self._memory = RescueMemory(self._clock)
        self._with.figures.stuck(0)

    def turn(self) -> bool:
        """Look at everybody once, as far as there is time; whether the next turn should come soon."""
        deadline = Deadline.after(TURN, self._clock)
        self._failures_before, self._failures = self._failures, set()
        try:
            # 1. Who waits, and whom we hold.
            found = tuple(self._scanner.held(deadline))
            self._memory.forget_others([each.held.pod.uid for each in found])
            # 2. Groups whose last freed pod has come again may go on.
            self._see_replacements(deadline)
            # 3. Look, first at those whose last look is longest ago, and free.
            self._look_at(found, deadline)
        except (ApiError, OutOfTime) as error:
            self._say_failed(f"rescue cannot go on for now: {error}")
        self._with.figures.stuck(self._memory.stuck())
        return bool(self._memory.awaited())

    def _see_replacements(self, deadline: Deadline) -> None:
        for group, freed in self._memory.awaited().items():
            if self._is_replaced(freed, deadline):
                self._memory.replaced(group)
            elif self._memory.is_overdue(freed):
                self._memory.replaced(group)
                logger.warning("%s/%s was freed, and nobody has created it again", freed.namespace, freed.name)

    def _is_replaced(self, freed: Freed, deadline: Deadline) -> bool:
        try:
            found = Reader(self._with.door, deadline).find(PODS, freed.name, namespace=freed.namespace)
        except ApiError as error:
            self._say_failed(f"nobody knows whether {freed.namespace}/{freed.name} is there again: {error}")
            return False
        return found is not None and pod_from(found).uid != freed.uid

    def _look_at(self, found: Sequence[Found], deadline: Deadline) -> None:
        def order(each: Found) -> tuple[float, str, str]:
            pod = each.held.pod
            return self._memory.looked_at(pod.uid), pod.namespace, pod.name

        for each in sorted(found, key=order)[:MOST_LOOKS]:
            if deadline.left() < LEAST_LOOK:
                return
            if each.held.group not in self._memory.awaited():
                self._consider(each, deadline)

    def _consider(self, found: Found, deadline: Deadline) -> None:
        held, uid = found.held, found.held.pod.uid
        seen = self._with.look(held, found.manifest, Deadline.after(min(LOOK, deadline.left()), self._clock))
        finding = judge(held, seen)
        self._memory.look_at(uid)
        if finding.verdict is Verdict.UNKNOWN:
            self._say_failed(f"nothing is known of what is there for {_name(held.pod)}: {finding.why}")
            return
        is_due = self._memory.due_for(uid, due=_is_due(held, finding)) >= PATIENCE[held.kind]
        # Of a guarded pod nothing has to be waited for: it waits by our own decision.
        is_stuck = finding.verdict is Verdict.STUCK and (is_due or held.kind is Kind.GUARDED)
        self._memory.mark_stuck(uid, stuck=is_stuck)
        if is_stuck:
            self._say_stuck(held, seen)
        elif finding.verdict is Verdict.FREE and is_due and self._memory.may_free(held.pod):
            self._free(held, seen, deadline)

    def _free(self, held: Held, seen: Sight, deadline: Deadline) -> None:
        """Delete the pod, if it is still the one that was looked at."""
        result = "replaced"
        try:
            self._delete(held, deadline)
        except (Conflict, NotFound):
            # It was bound, or replaced, or changed: the next turn sees.
            self._with.figures.rescued(held.kind, "moved-on")
            return
        except UnknownOutcome as error:
            # If it is gone its replacement will be seen, else time goes by.
            result = "failed"
            self._say_failed(f"nobody knows whether {_name(held.pod)} was freed: {error}")
        except ApiError as error:
            self._with.figures.rescued(held.kind, "failed")
            self._memory.tried(held.pod)
            self._say_failed(f"{_name(held.pod)} cannot be freed: {error}")
            return
        self._memory.tried(held.pod)
        self._memory.await_replacement(held.group, held.pod)
        self._with.figures.rescued(held.kind, result)
        if result == "replaced":
            self._say_replaced(held, seen)

    def _delete(self, held: Held, deadline: Deadline) -> None:
        """Raises Conflict where the pod is not any more what was looked at."""
        now = self._scanner.fresh(held, deadline)
        # Without them nothing would be checked.
        if now is None or not now.pod.uid or not now.pod.resource_version:
            raise Conflict("delete", PODS.plural, held.pod.name, detail="it is not as it was")
        self._with.door.delete(
            PODS,
            now.pod.name,
            namespace=now.pod.namespace,
            uid=now.pod.uid,
            resource_version=now.pod.resource_version,
            timeout=time_left(deadline),
        )

    def _say_replaced(self, held: Held, seen: Sight) -> None:
        message = texts.of_replaced(held, seen)
        line = DecisionLine(
            uid="",
            namespace=held.pod.namespace,
            pod=held.pod.name,
            group=str(held.group),
            node=seen.decision.node,
            outcome="replaced",
            cause=held.kind.value,
        )
        log_decision(logger, line, message)
        self._notify(held.pod, texts.REPLACED, message)

    def _say_stuck(self, held: Held, seen: Sight) -> None:
        reason, message = texts.of_stuck(held, seen)
        if message and self._memory.is_news(held.pod.uid, message):
            logger.info("%s", message)
            self._notify(held.pod, reason, message)

    def _notify(self, pod: Pod, reason: str, message: str) -> None:
        if pod.owner is not None:
            self._with.notify(Notice(pod.namespace, pod.owner, reason, message))

    def _say_failed(self, what: str) -> None:
        """Log what goes wrong when it begins to, not at each turn."""
        if what not in self._failures | self._failures_before:
            logger.warning("%s", what)
        self._failures.add(what)


def _is_due(held: Held, finding: Finding) -> bool:
    """Whether the time runs: a pin that is impossible is so also while nothing better is there."""
    return finding.verdict is Verdict.FREE or (held.kind is Kind.PINNED and finding.verdict is Verdict.STUCK)


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
