"""The embedded cluster's watches: what is told, when, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Condition, Thread

import pytest

from webhook.cluster.door import NODES, PODS, EventType, Manifest, WatchEvent
from webhook.cluster.history import History
from webhook.cluster.memory import MemoryCluster
from webhook.errors import Gone, NotFound


def an_object(name: str, version: int) -> Manifest:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def told(events: Iterator[WatchEvent]) -> list[tuple[str, str]]:
    """Type and version of each event."""
    return [(event.type.value, event.resource_version) for event in events]


def a_history(*, kept: int = 10) -> History:
    history = History(100, Condition(), kept)
    for version in range(101, 105):
        resource = NODES if version % 2 else PODS
        history.add(version, resource, EventType.ADDED, an_object("a", version))
    return history


def test_only_events_of_the_resource_after_the_version_are_told_and_then_how_far_it_came() -> None:
    assert told(a_history().follow(NODES, 101, 0)) == [("ADDED", "103"), ("BOOKMARK", "104")]
    assert told(a_history().follow(PODS, 100, 0)) == [("ADDED", "102"), ("ADDED", "104"), ("BOOKMARK", "104")]


def test_a_watch_from_before_what_is_kept_is_gone() -> None:
    history = a_history(kept=2)
    assert told(history.follow(NODES, 102, 0)) == [("ADDED", "103"), ("BOOKMARK", "104")]
    with pytest.raises(Gone, match="too old resource version: 101"):
        history.follow(NODES, 101, 0)


def test_a_watch_that_falls_behind_what_is_kept_is_gone() -> None:
    history = a_history(kept=2)
    events = history.follow(NODES, 104, 10)
    for version in range(105, 109):
        history.add(version, NODES, EventType.MODIFIED, an_object("a", version))
    with pytest.raises(Gone):
        next(events)


def test_who_waits_is_told_when_it_happens() -> None:
    cluster = MemoryCluster()
    version = cluster.list(NODES, timeout=1).resource_version
    events = cluster.watch(NODES, resource_version=version, timeout=10, silence=10)
    seen: list[WatchEvent] = []
    waiting = Thread(target=lambda: seen.append(next(events)))
    waiting.start()
    cluster.create(PODS, {"metadata": {"name": "p"}}, namespace="n", timeout=1)
    created = cluster.create(NODES, {"metadata": {"name": "a"}}, timeout=1)
    waiting.join(10)
    assert seen == [WatchEvent(EventType.ADDED, created)]


def test_an_object_that_ends_with_its_last_finalizer_is_told_as_deleted() -> None:
    cluster = MemoryCluster()
    cluster.create(NODES, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}, timeout=1)
    version = cluster.list(NODES, timeout=1).resource_version
    cluster.delete(NODES, "a", timeout=1)
    cluster.merge_patch(NODES, "a", {"metadata": {"finalizers": None}}, timeout=1)
    events = list(cluster.watch(NODES, resource_version=version, timeout=0.01, silence=1))
    assert [event.type for event in events] == [EventType.MODIFIED, EventType.DELETED, EventType.BOOKMARK]
    with pytest.raises(NotFound):
        cluster.get(NODES, "a", timeout=1)


def test_a_watch_of_an_empty_cluster_can_begin_at_its_list() -> None:
    cluster = MemoryCluster()
    version = cluster.list(NODES, timeout=1).resource_version
    assert told(cluster.watch(NODES, resource_version=version, timeout=0.01, silence=1)) == [("BOOKMARK", version)]
