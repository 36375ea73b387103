"""A door whose calls are kept apart."""

from __future__ import annotations

import pytest
from cluster_objects import SPACE, a_claim, a_node

from webhook.cluster.door import CLAIMS, EVENTS, NODES, EventType
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.pacing import PacedDoor


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def door(time: Time) -> PacedDoor:
    cluster = MemoryCluster([a_node("n1"), a_claim("c")])
    return PacedDoor(cluster, apart=0.1, clock=time.clock, pause=time.pause)


def test_every_call_is_the_other_doors_and_waits_for_its_turn(door: PacedDoor, time: Time) -> None:
    assert [item["metadata"]["name"] for item in door.list(NODES, timeout=1).items] == ["n1"]
    seen: list[str] = []
    version = door.scan(NODES, lambda item: seen.append(item["metadata"]["name"]), timeout=1)
    assert seen == ["n1"]
    assert door.get(CLAIMS, "c", namespace=SPACE, timeout=1)["metadata"]["name"] == "c"
    patch = {"metadata": {"annotations": {"a": "b"}}}
    stored = door.merge_patch(CLAIMS, "c", patch, namespace=SPACE, timeout=1)
    assert stored["metadata"]["annotations"] == {"a": "b"}
    door.create(EVENTS, {"metadata": {"name": "e", "namespace": SPACE}}, namespace=SPACE, timeout=1)
    door.delete(EVENTS, "e", namespace=SPACE, timeout=1)
    assert {event.type for event in door.watch(NODES, resource_version=version, timeout=0.01, silence=0.01)} == {
        EventType.BOOKMARK
    }
    assert time.pauses == [0.1] * 6


def test_who_comes_later_anyway_does_not_wait(door: PacedDoor, time: Time) -> None:
    door.list(NODES, timeout=1)
    time.now += 0.04
    door.list(NODES, timeout=1)
    time.now += 5
    door.list(NODES, timeout=1)
    assert time.pauses == [0.06]
