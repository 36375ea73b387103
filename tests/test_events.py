"""Events: what is sent, how often, and that nobody waits for it."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from e2e.waiting import wait_until

from webhook.cluster.door import CLAIMS, EVENTS, Manifest, Resource
from webhook.cluster.memory import MemoryCluster
from webhook.core.objects import OwnerReference
from webhook.errors import Forbidden, NotFound, OutOfTime
from webhook.events import MOST_REMEMBERED, MOST_WAITING, EventRecorder, Notice

OWNER = OwnerReference("apps/v1", "StatefulSet", "db-tikv", "uid-1")
NOW = 1_800_000_000.0
# An event's name must be a DNS subdomain.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
PATIENCE = 20.0


def a_notice(message: str = "db-tikv-0 waits", *, owner: OwnerReference = OWNER, reason: str = "NoSafeNode") -> Notice:
    return Notice("shop", owner, reason, message)


class Door:
    """The embedded cluster's events; creates wait while `held`, and fail with `error` if there is one."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(clock=lambda: NOW)
        self.held = threading.Event()
        self.held.set()
        self.entered = threading.Event()
        self.error: Exception | None = None
        self.asked = 0

    def create(self, resource: Resource, manifest: Manifest, **parameters: Any) -> Manifest:
        self.asked += 1
        self.entered.set()
        assert self.held.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return self.cluster.create(resource, manifest, **parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def events(self) -> list[Manifest]:
        return list(self.cluster.list(EVENTS, timeout=1).items)


class Clock:
    """Seconds of this process, which a test moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.held.set()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(door: Door, clock: Clock) -> EventRecorder:
    return EventRecorder(door, clock, lambda: NOW, idle_time=0.01)


def senders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "events"]


def wait_for(condition: Any, what: str) -> None:
    wait_until(condition, what, PATIENCE)


def all_sent() -> None:
    """Wait until the sending thread has ended, as it does when nothing is left."""
    wait_for(lambda: not senders(), "all events to be sent")


def test_an_event_is_on_the_pods_owner_and_says_what_happened(door: Door, recorder: EventRecorder) -> None:
    recorder.record(a_notice())
    all_sent()
    [event] = door.events()
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db-tikv",
        "namespace": "shop",
        "uid": "uid-1",
    }
    assert event["metadata"]["namespace"] == "shop"
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "NoSafeNode", "db-tikv-0 waits")
    assert (event["count"], event["firstTimestamp"]) == (1, "2027-01-15T08:00:00Z")
    assert event["source"] == {"component": "tidb-ha-webhook"}


def test_the_pods_claim_is_told_too(door: Door, recorder: EventRecorder) -> None:
    door.cluster.create(CLAIMS, {"metadata": {"name": "tikv-db-tikv-0"}}, namespace="shop", timeout=1)
    uid = door.cluster.get(CLAIMS, "tikv-db-tikv-0", namespace="shop", timeout=1)["metadata"]["uid"]
    recorder.record(replace(a_notice(), claim="tikv-db-tikv-0"))
    all_sent()
    on_claim, on_owner = sorted(door.events(), key=lambda event: str(event["involvedObject"]["kind"]))
    assert on_owner["involvedObject"]["name"] == "db-tikv"
    assert on_claim["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": "tikv-db-tikv-0",
        "namespace": "shop",
        "uid": uid,
    }
    assert (on_claim["reason"], on_claim["message"]) == (on_owner["reason"], on_owner["message"])


def test_a_claim_that_is_not_there_is_told_nothing(door: Door, recorder: EventRecorder) -> None:
    recorder.record(replace(a_notice(), claim="tikv-db-tikv-0"))
    all_sent()
    assert [event["involvedObject"]["kind"] for event in door.events()] == ["StatefulSet"]


def test_the_same_again_within_the_quiet_time_is_not_sent(door: Door, recorder: EventRecorder, clock: Clock) -> None:
    for _ in range(3):
        recorder.record(a_notice())
        clock.now += 4.0
    all_sent()
    assert [event["count"] for event in door.events()] == [1]


def test_what_goes_on_is_one_event_whose_count_grows(door: Door, recorder: EventRecorder, clock: Clock) -> None:
    for _ in range(3):
        recorder.record(a_notice())
        all_sent()
        clock.now += 10.0
    assert [event["count"] for event in door.events()] == [3]


@pytest.mark.parametrize("count", [None, "many", True])
def test_an_event_whose_count_is_rubbish_counts_on_from_one(
    count: Any, door: Door, recorder: EventRecorder, clock: Clock
) -> None:
    recorder.record(a_notice())
    all_sent()
    name = door.events()[0]["metadata"]["name"]
    door.cluster.merge_patch(EVENTS, name, {"count": count}, namespace="shop", timeout=1)
    clock.now += 10.0
    recorder.record(a_notice())
    all_sent()
    assert [event["count"] for event in door.events()] == [2]


@pytest.mark.parametrize(
    "other",
    [
        a_notice("db-tikv-1 waits"),
        a_notice(reason="Busy"),
        a_notice(owner=OwnerReference("apps/v1", "StatefulSet", "db-tikv", "uid-2")),
    ],
    ids=["message", "reason", "owner"],
)
def test_what_differs_is_another_event(other: Notice, door: Door, recorder: EventRecorder) -> None:
    recorder.record(a_notice())
    recorder.record(other)
    all_sent()
    assert len(door.events()) == 2


@pytest.mark.parametrize("name", ["a" * 253, "a" * 198 + "-" * 20 + "b" * 35, "a" * 198 + "." + "-" * 20 + "b"])
def test_an_events_name_is_one_whatever_its_owners_is(name: str, door: Door, recorder: EventRecorder) -> None:
    recorder.record(a_notice(owner=OwnerReference("apps/v1", "StatefulSet", name, "uid-1")))
    all_sent()
    [event] = door.events()
    assert NAME.fullmatch(event["metadata"]["name"])
    assert len(event["metadata"]["name"]) <= 253
    assert event["involvedObject"]["name"] == name


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("create", "events", status=403),
        NotFound("create", "events", status=404),
        OutOfTime("late"),
        RuntimeError("a defect"),
    ],
    ids=["forbidden", "namespace gone", "late", "defect"],
)
def test_an_event_that_cannot_be_sent_is_a_log_line_and_the_next_one_is_sent(
    error: Exception, door: Door, recorder: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    door.error = error
    recorder.record(a_notice())
    wait_for(lambda: "event not sent" in caplog.text, "the log line")
    door.error = None
    recorder.record(a_notice("another"))
    all_sent()
    assert [event["message"] for event in door.events()] == ["another"]


def test_nobody_waits_for_a_stalled_api_server_and_the_line_is_bounded(
    door: Door, recorder: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    door.held.clear()
    recorder.record(a_notice("first"))
    assert door.entered.wait(PATIENCE)
    for number in range(MOST_WAITING + 5):
        recorder.record(a_notice(str(number)))
    assert caplog.text.count("too many wait") == 5
    door.held.set()
    all_sent()
    assert len(door.events()) == 1 + MOST_WAITING


def test_what_did_not_fit_into_the_line_is_sent_when_it_comes_again(door: Door, recorder: EventRecorder) -> None:
    door.held.clear()
    recorder.record(a_notice("first"))
    assert door.entered.wait(PATIENCE)
    for number in range(MOST_WAITING):
        recorder.record(a_notice(str(number)))
    recorder.record(a_notice("dropped"))
    door.held.set()
    all_sent()
    recorder.record(a_notice("dropped"))
    all_sent()
    assert "dropped" in [event["message"] for event in door.events()]


def test_what_was_sent_is_not_remembered_without_bound(door: Door, recorder: EventRecorder) -> None:
    recorder.record(a_notice("first"))
    for number in range(MOST_REMEMBERED):
        recorder.record(a_notice(str(number)))
        if number % 100 == 0:
            all_sent()
    recorder.record(a_notice("first"))
    all_sent()
    assert [event["count"] for event in door.events() if event["message"] == "first"] == [2]


def test_without_a_thread_to_be_had_an_event_waits_for_the_next_one(door: Door) -> None:
    tries: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        tries.append(thread)
        if len(tries) == 1:
            raise RuntimeError("can't start new thread")
        thread.start()

    recorder = EventRecorder(door, idle_time=0.01, start=start)
    recorder.record(a_notice("first"))
    assert door.asked == 0
    recorder.record(a_notice("second"))
    all_sent()
    assert {event["message"] for event in door.events()} == {"first", "second"}


def test_the_thread_ends_when_nothing_is_left_and_comes_back(door: Door, recorder: EventRecorder) -> None:
    recorder.record(a_notice("first"))
    all_sent()
    recorder.record(a_notice("second"))
    all_sent()
    assert len(door.events()) == 2
