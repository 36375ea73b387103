"""Events on a pod's owner and on its claim: what `kubectl describe` shows of a decision that somebody should know.

An event is a courtesy: it never holds an answer up, and is dropped when the line of waiting ones is full. Texts
are the same for one cause, so one thing that goes on is one event whose count grows.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from threading import Lock, Thread
from time import monotonic, time
from typing import Any, Final

from webhook.cluster.door import CLAIMS, EVENTS, Door
from webhook.core.objects import OwnerReference
from webhook.core.shapes import inside, integer, text
from webhook.errors import ApiError, Conflict, NotFound, OutOfTime

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
# Characters of the owner's name in the event's, which may have 253.
MOST_OF_A_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Notice:
    """An event to be sent: on `owner` in `namespace`, `reason` in CamelCase, `message` of at most 1024 characters.

    `claim`: the PersistentVolumeClaim that is told too, by name, "" for none. It outlives pod and owner.
    """

    namespace: str
    owner: OwnerReference
    reason: str
    message: str
    claim: str = ""


class EventRecorder:
    """Sends events from a thread of its own, which lives only while there is something to send."""

    def __init__(
        self,
        door: Door,
        clock: Callable[[], float] = monotonic,
        wall_clock: Callable[[], float] = time,
        idle_time: float = IDLE_TIME,
        start: Callable[[Thread], None] = Thread.start,
    ) -> None:
        """`clock` is monotonic, `wall_clock` is in seconds since 1970, for what people read; `idle_time` in seconds."""
        self._door = door
        self._clock = clock
        self._wall_clock = wall_clock
        self._idle_time = idle_time
        self._start = start
        self._queue: Queue[Notice] = Queue(MOST_WAITING)
        self._lock = Lock()
        self._sent: OrderedDict[Notice, float] = OrderedDict()
        self._sender: Thread | None = None

    def record(self, notice: Notice) -> None:
        """Have the event sent, unless it was just now, or too many wait. Never raises, never waits."""
        with self._lock:
            now = self._clock()
            last = self._sent.get(notice)
            if last is not None and now - last < QUIET_TIME:
                return
            try:
                self._queue.put_nowait(notice)
            except Full:
                logger.info("event not sent: too many wait")
                return
            self._remember(notice, now)
            if self._sender is None:
                self._send_on()

    def _remember(self, notice: Notice, now: float) -> None:
        self._sent[notice] = now
        self._sent.move_to_end(notice)
        if len(self._sent) > MOST_REMEMBERED:
            self._sent.popitem(last=False)

    def _send_on(self) -> None:
        sender = Thread(target=self._send_all, name="events", daemon=True)
        try:
            self._start(sender)
        except RuntimeError as error:
            # No thread to be had now. It waits in the line for the next one's.
            logger.warning("event not sent: %s", error)
        else:
            self._sender = sender

    def _send_all(self) -> None:
        while True:
            try:
                notice = self._queue.get(timeout=self._idle_time)
            except Empty:
                with self._lock:
                    if self._queue.empty():
                        self._sender = None
                        return
                continue
            try:
                self._send(notice)
            except (ApiError, OutOfTime) as error:
                logger.info("event not sent: %s", error)
            except Exception:
                # The edge of this thread. A defect of ours must not end it: others wait in the line.
                logger.exception("event not sent")

    def _send(self, notice: Notice) -> None:
        self._send_one(notice)
        claim = self._claim(notice) if notice.claim else None
        if claim is not None:
            self._send_one(replace(notice, owner=claim))

    def _claim(self, notice: Notice) -> OwnerReference | None:
        """The claim by its uid, without which nobody would find the event; None if it is not there."""
        try:
            found = self._door.get(CLAIMS, notice.claim, namespace=notice.namespace, timeout=CALL_TIMEOUT)
        except NotFound:
            return None
        return OwnerReference("v1", CLAIMS.kind, notice.claim, text(inside(found, "metadata", "uid")))

    def _send_one(self, notice: Notice) -> None:
        manifest = self._manifest(notice)
        try:
            self._door.create(EVENTS, manifest, namespace=notice.namespace, timeout=CALL_TIMEOUT)
        except Conflict:
            name = manifest["metadata"]["name"]
            there = self._door.get(EVENTS, name, namespace=notice.namespace, timeout=CALL_TIMEOUT)
            patch = {"count": (integer(there.get("count")) or 1) + 1, "lastTimestamp": manifest["lastTimestamp"]}
            self._door.merge_patch(EVENTS, name, patch, namespace=notice.namespace, timeout=CALL_TIMEOUT)

    def _manifest(self, notice: Notice) -> dict[str, Any]:
        owner = notice.owner
        identity = "\0".join((owner.uid, notice.reason, notice.message))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        now = datetime.fromtimestamp(int(self._wall_clock()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{_beginning(owner.name)}.{digest}", "namespace": notice.namespace},
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


def _beginning(name: str) -> str:
    """As much of an owner's name as an event's name has room for, ending as a name may."""
    return name[:MOST_OF_A_NAME].rstrip("-.")
