"""How rescue tells of what it does: a log line, and an event on the pod's owner."""

from __future__ import annotations

import logging
from collections.abc import Callable

from webhook.controller import texts
from webhook.controller.rescue import Held, Sight
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.events import Notice
from webhook.logs import DecisionLine, log_decision

logger = logging.getLogger(__name__)

IsNews = Callable[[str, str], bool]
"""Whether a text should be said of the pod with this uid."""


class Telling:
    """`notify` has an event written; `is_news` is asked before what goes on is said again."""

    def __init__(self, notify: Callable[[Notice], None]) -> None:
        self._notify = notify
        self._failures: set[str] = set()
        self._failures_before: set[str] = set()

    def begin(self) -> None:
        """A turn begins."""
        self._failures_before, self._failures = self._failures, set()

    def failed(self, what: str) -> None:
        """Log what goes wrong when it begins to, not at each turn."""
        if what not in self._failures | self._failures_before:
            logger.warning("%s", what)
        self._failures.add(what)

    def replaced(self, held: Held, seen: Sight) -> None:
        """A pod is deleted."""
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
        self._tell_owner(held.pod, texts.REPLACED, message)

    def stuck(self, held: Held, seen: Sight, is_news: IsNews) -> None:
        """Nothing better is there for a pod."""
        reason, message = texts.of_stuck(held, seen)
        if message and is_news(held.pod.uid, message):
            logger.info("%s", message)
            self._tell_owner(held.pod, reason, message)

    def unfreed(self, held: Held, seen: Sight, why: str, is_news: IsNews) -> None:
        """A pod is not deleted though that would help."""
        message = texts.of_unfreed(held, seen, why)
        if is_news(held.pod.uid, message):
            logger.warning("%s", message)
            self._tell_owner(held.pod, texts.NOT_FREED, message)

    def unasked(self, pod: Pod, group: Group) -> None:
        """A freed pod has come again past the webhook."""
        message = texts.of_unasked(pod, group)
        logger.warning("%s", message)
        self._tell_owner(pod, texts.NOT_ASKED, message)

    def _tell_owner(self, pod: Pod, reason: str, message: str) -> None:
        if pod.owner is not None:
            self._notify(Notice(pod.namespace, pod.owner, reason, message, pod.first_claim))
