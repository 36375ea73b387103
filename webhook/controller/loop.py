"""The leader's turns: find the pods of ours that wait, look at what is there for each, free those that it helps.

One pod of a group at a time: the next one's place depends on where this one's next life goes. Deleting a pod that is
bound, or has been created again, meanwhile is refused by the preconditions, whoever else is at it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from webhook.cluster.door import PODS, Door
from webhook.cluster.reader import Reader, time_left
from webhook.controller.asking import Breaker
from webhook.controller.memory import Freed, RescueMemory
from webhook.controller.rescue import Finding, Held, Kind, Sight, Verdict, judge
from webhook.controller.scan import Found, Groups, Scanner
from webhook.controller.telling import Telling
from webhook.core.manifests import pod_from
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.deadline import Deadline
from webhook.errors import ApiError, Conflict, NotFound, OutOfTime, UnknownOutcome
from webhook.events import Notice

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

    def unfreed(self, number: int) -> None:
        """So many pods are not freed, since nobody might ask the webhook about their next life."""
        ...

    def stopped(self, stopped: bool) -> None:
        """Whether nobody is freed, since one that was has come again without a decision."""
        ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What rescue works with. `look` gives what is there for a held pod, by its manifest, within a deadline.

    `unasked` says why the webhook would not be asked about a pod that is created again, "" if it would; it raises
    `errors.ApiError` or OutOfTime.
    """

    door: Door
    groups: Groups
    look: Callable[[Held, dict[str, Any], Deadline], Sight]
    unasked: Callable[[Pod, Deadline], str]
    figures: Figures
    notify: Callable[[Notice], None]
    clock: Callable[[], float]
    other_schedulers: Collection[str] = ()


class Rescue:
    """Frees pods, turn by turn. To be used by one thread."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._with = collaborators
        self._clock = collaborators.clock
        self._tell = Telling(collaborators.notify)
        self._scanner = Scanner(
            collaborators.door, collaborators.groups, collaborators.other_schedulers, self._tell.failed
        )
        self._memory = RescueMemory(self._clock)
        self._breaker = Breaker(self._clock)

    def forget(self) -> None:
        """Another one leads now: what was seen here is of no use for later."""
        self._memory = RescueMemory(self._clock)
        self._breaker = Breaker(self._clock)
        self._show()

    def seen(self, members: Iterable[Pod]) -> None:
        """All members, as an audit has found them."""
        if self._breaker.seen(members):
            logger.info("a member has come with a decision: pods are freed again")
            self._show()

    def turn(self) -> bool:
        """Look at everybody once, as far as there is time; whether the next turn should come soon."""
        deadline = Deadline.after(TURN, self._clock)
        self._tell.begin()
        try:
            # 1. Who waits, and whom we hold.
            found = tuple(self._scanner.held(deadline))
            self._memory.forget_others([each.held.pod.uid for each in found])
            # 2. Groups whose last freed pod has come again may go on.
            self._see_replacements(deadline)
            # 3. Look, first at those whose last look is longest ago, and free.
            self._look_at(found, deadline)
        except (ApiError, OutOfTime) as error:
            self._tell.failed(f"rescue cannot go on for now: {error}")
        self._show()
        return bool(self._memory.awaited())

    def _show(self) -> None:
        self._with.figures.stuck(self._memory.stuck())
        self._with.figures.unfreed(self._memory.unfreed())
        self._with.figures.stopped(self._breaker.is_open)

    def _see_replacements(self, deadline: Deadline) -> None:
        for group, freed in {**self._breaker.overdue(), **self._memory.awaited()}.items():
            if (again := self._replacement(freed, deadline)) is not None and self._see(group, again, deadline):
                self._memory.replaced(group)
            elif group in self._memory.awaited() and self._memory.is_overdue(freed):
                self._memory.replaced(group)
                self._breaker.is_late(group, freed)
                logger.warning("%s/%s was freed, and nobody has created it again", freed.namespace, freed.name)

    def _see(self, group: Group, again: Pod, deadline: Deadline) -> bool:
        """A freed pod has come again; whether it is known what it is."""
        try:
            recognised = self._with.groups.recognise(again, deadline)
        except ApiError as error:
            self._tell.failed(f"nobody knows whether {_name(again)} is a member: {error}")
            return False
        if recognised.group is None:
            # None of our business any more: the webhook leaves it alone.
            self._breaker.not_ours(group)
        elif self._breaker.came_again(group, again):
            self._tell.unasked(again, group)
        return True

    def _replacement(self, freed: Freed, deadline: Deadline) -> Pod | None:
        """The pod's next life, None if it is not there, or that cannot be read."""
        try:
            found = Reader(self._with.door, deadline).find(PODS, freed.name, namespace=freed.namespace)
        except ApiError as error:
            self._tell.failed(f"nobody knows whether {freed.namespace}/{freed.name} is there again: {error}")
            return None
        again = None if found is None else pod_from(found)
        return None if again is None or again.uid == freed.uid else again

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
            self._tell.failed(f"nothing is known of what is there for {_name(held.pod)}: {finding.why}")
            return
        is_due = self._memory.due_for(uid, due=_is_due(held, finding)) >= PATIENCE[held.kind]
        # Of a guarded pod nothing has to be waited for: it waits by our own decision.
        is_stuck = finding.verdict is Verdict.STUCK and (is_due or held.kind is Kind.GUARDED)
        self._memory.mark_stuck(uid, stuck=is_stuck)
        if is_stuck:
            self._tell.stuck(held, seen, self._memory.is_news)
        # What cannot be seen beforehand shall cost one pod: whether the webhook is asked is seen by the first of all.
        may_go = self._memory.may_free(held.pod) and (self._breaker.trusts or not self._memory.awaited())
        if finding.verdict is Verdict.FREE and is_due and may_go:
            why = self._why_unasked(held, deadline)
            self._memory.mark_unfreed(uid, unfreed=bool(why))
            if why:
                self._tell.unfreed(held, seen, why, self._memory.is_news)
            else:
                self._free(held, seen, deadline)
        else:
            self._memory.mark_unfreed(uid, unfreed=False)

    def _why_unasked(self, held: Held, deadline: Deadline) -> str:
        """Why nobody might ask the webhook about the pod's next life, "" if somebody would."""
        try:
            return self._breaker.why_open(held.group) or self._with.unasked(held.pod, deadline)
        except ApiError as error:
            return f"it cannot be read how the API server is told of the webhook: {error}"

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
            self._tell.failed(f"nobody knows whether {_name(held.pod)} was freed: {error}")
        except ApiError as error:
            self._with.figures.rescued(held.kind, "failed")
            self._memory.tried(held.pod)
            self._tell.failed(f"{_name(held.pod)} cannot be freed: {error}")
            return
        self._memory.tried(held.pod)
        self._memory.await_replacement(held.group, held.pod)
        self._with.figures.rescued(held.kind, result)
        if result == "replaced":
            self._tell.replaced(held, seen)

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


def _is_due(held: Held, finding: Finding) -> bool:
    """Whether the time runs: a pin that is impossible is so also while nothing better is there."""
    return finding.verdict is Verdict.FREE or (held.kind is Kind.PINNED and finding.verdict is Verdict.STUCK)


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
