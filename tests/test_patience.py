"""A door that waits when the API server asks it to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_objects import SPACE, a_claim, a_node
from stand import Clock, WatchedDoor

from webhook.cluster.door import CLAIMS, EVENTS, NODES
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.patience import MOST_TRIES, SHORTEST_WAIT, Patience, PatientDoor
from webhook.errors import TooManyRequests, UnknownOutcome


@dataclass
class Line:
    """A door behind which somebody asks to wait."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.watched = WatchedDoor(MemoryCluster([a_node("n1"), a_claim("c")]), self.clock)
        self.door: Any = PatientDoor(self.watched, Patience(self.clock.monotonic, self.clock.pause))  # type: ignore[arg-type]

    def is_long(self, retry_after: float, times: int | None = None) -> None:
        for verb in ("list", "get", "create", "patch", "delete"):
            self.watched.fails(verb, TooManyRequests(verb, "nodes", retry_after=retry_after), times=times)


def test_a_call_is_made_again_after_as_long_as_the_server_asks() -> None:
    line = Line()
    line.is_long(2.0, times=3)
    assert [item["metadata"]["name"] for item in line.door.list(NODES, timeout=30).items] == ["n1"]
    assert line.clock.pauses == [2.0, 2.0, 2.0]


def test_every_call_but_a_watch_is_made_again() -> None:
    line = Line()
    line.is_long(1.0, times=1)
    seen: list[str] = []
    version = line.door.scan(NODES, lambda item: seen.append(item["metadata"]["name"]), timeout=9)
    assert (seen, bool(version)) == (["n1"], True)
    assert line.door.get(CLAIMS, "c", namespace=SPACE, timeout=9)["metadata"]["name"] == "c"
    patch = {"metadata": {"annotations": {"a": "b"}}}
    assert line.door.merge_patch(CLAIMS, "c", patch, namespace=SPACE, timeout=9)["metadata"]["annotations"]
    line.door.create(EVENTS, {"metadata": {"name": "e", "namespace": SPACE}}, namespace=SPACE, timeout=9)
    line.door.delete(EVENTS, "e", namespace=SPACE, timeout=9)
    assert line.clock.pauses == [1.0] * 5
    with pytest.raises(AttributeError):
        line.door.watch(NODES, resource_version="1", timeout=1, silence=1)


def test_who_asks_to_wait_for_longer_than_there_is_time_is_not_waited_for() -> None:
    line = Line()
    line.is_long(7.0)
    with pytest.raises(TooManyRequests):
        line.door.get(NODES, "n1", timeout=5)
    assert line.clock.pauses == []


def test_the_waits_of_a_call_stay_within_its_time() -> None:
    line = Line()
    line.is_long(2.0)
    with pytest.raises(TooManyRequests):
        line.door.get(NODES, "n1", timeout=5)
    assert line.clock.pauses == [2.0, 2.0]


def test_who_asks_for_no_time_at_all_is_not_asked_for_ever() -> None:
    line = Line()
    line.is_long(0.0)
    with pytest.raises(TooManyRequests):
        line.door.get(NODES, "n1", timeout=30)
    assert line.clock.pauses == [SHORTEST_WAIT] * (MOST_TRIES - 1)


def test_other_errors_are_not_waited_for() -> None:
    line = Line()
    line.watched.fails("get", UnknownOutcome("get", "nodes", status=503))
    with pytest.raises(UnknownOutcome):
        line.door.get(NODES, "n1", timeout=30)
    assert line.clock.pauses == []
