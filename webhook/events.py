"""Events on a pod's owner: what `kubectl describe` shows of a decision that somebody should know about.

An event is a courtesy: it never holds an answer up, and is dropped when the line of waiting ones is full. Texts
are the same for one cause, so one thing that goes on is one event whose count grows.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from threading import Lock, Thread
from time import monotonic, time
from typing import Any, Final

from webhook.cluster.door import EVENTS, Door
from webhook.core.objects import OwnerReference
from webhook.errors import ApiError, Conflict

logger = logging.getLogger(__name__)

COMPONENT: Final = "tidb-ha-webhook"
# Longest line of events that wait to be sent; more than one burst of reviews needs.
MOST_WAITING: Final = 256
# The same event again within this time (s) is not sent: whoever looks has seen it.
QUIET_TIME: Final = 10.0
MOST_REMEMBERED: Final = 1024
# A call's time-out (s), and how long the sending thread waits for work before it ends.
CALL_TIMEOUT: Final = 5.0
IDLE_TIME: Final = 1.0


@dataclass(frozen=True, slots=True)
class Notice:
    """An event to be sent: on `owner` in `namespace`, `reason` in CamelCase, `message` of at most 1024 characters."""

    namespace: str
    owner: OwnerReference
    reason: str
    message: str


class EventRecorder:
    """Sends events from a thread of its own, which lives only while there is something to send."""

    def __init__(
        self, door: Door, clock: Callable[[], float] = monotonic, wall_clock: Callable[[], float] = time
    ) -> None:
        self._door = door
        self._clock = clock
        self._wall_clock = wall_clock
        self._queue: Queue[Notice] = Queue(MOST_WAITING)
        self._lock = Lock()
        self._sent: OrderedDict[Notice, float] = OrderedDict()
        self._sender: Thread | None = None

    def record(self, notice: Notice) -> None:
        """Have the event sent, unless it was just now, or too many wait."""
        with self._lock:
            if self._clock() - self._sent.get(notice, -QUIET_TIME) < QUIET_TIME:
                return
            self._sent[notice] = self._clock()
            self._sent.move_to_end(notice)
            if len(self._sent) > MOST_REMEMBERED:
                self._sent.popitem(last=False)
            try:
                self._queue.put_nowait(notice)
            except Full:
                return
            if self._sender is None:
                self._sender = Thread(target=self._send_all, name="events", daemon=True)
                self._sender.start()

    def _send_all(self) -> None:
        while True:
            try:
                notice = self._queue.get(timeout=IDLE_TIME)
            except Empty:
                with self._lock:
                    if self._queue.empty():
                        self._sender = None
                        return
                continue
            try:
                self._send(notice)
            except ApiError as error:
                logger.info("event not sent: %s", error)

    def _send(self, notice: Notice) -> None:
        manifest = self._manifest(notice)
        try:
            self._door.create(EVENTS, manifest, namespace=notice.namespace, timeout=CALL_TIMEOUT)
        except Conflict:
            name = manifest["metadata"]["name"]
            there = self._door.get(EVENTS, name, namespace=notice.namespace, timeout=CALL_TIMEOUT)
            patch = {"count": int(there.get("count") or 1) + 1, "lastTimestamp": manifest["lastTimestamp"]}
            self._door.merge_patch(EVENTS, name, patch, namespace=notice.namespace, timeout=CALL_TIMEOUT)

    def _manifest(self, notice: Notice) -> dict[str, Any]:
        owner = notice.owner
        identity = "\0".join((owner.uid, notice.reason, notice.message))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        now = datetime.fromtimestamp(int(self._wall_clock()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            # Names of objects may be 253 characters long, those of events too.
            "metadata": {"name": f"{owner.name[:200]}.{digest}", "namespace": notice.namespace},
            "involvedObject": {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "namespace": notice.namespace,
                "uid": owner.uid,
            },
            "type": "Warning",
            "reason": notice.reason,
            "message": notice.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
