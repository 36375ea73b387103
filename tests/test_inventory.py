"""What the inventory keeps, how it follows, and when it has nothing to propose."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from math import inf
from threading import Event
from time import monotonic
from typing import Any

import pytest
from fake_api_server import RESET, STALL, Stream, fake_api_server, json_reply, watch_line
from kubernetes.client import Configuration
from polling import eventually

from webhook.cluster import trimming
from webhook.cluster.api import ApiDoor
from webhook.cluster.door import (
    CLAIMS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    EventType,
    Manifest,
    Resource,
    WatchEvent,
)
from webhook.cluster.inventory import Inventory, InventoryView
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.shelves import (
    AttachmentShelf,
    Catalogue,
    NodeShelf,
    PodShelf,
    Pools,
    VolumeShelf,
    attached,
    find_volume,
    pools_of,
)
from webhook.cluster.trimming import Attachment
from webhook.cluster.watching import (
    BROKEN_ALLOWED,
    FIRST_WAIT,
    LEAST_PERIOD,
    LONGEST_WAIT,
    STEADY,
    Follower,
    Pace,
    Pulse,
)
from webhook.core import keys
from webhook.core.manifests import claim_from
from webhook.core.objects import PodOnNode
from webhook.core.storage import PersistentVolume
from webhook.errors import Forbidden, Gone, TooManyRequests, UnknownOutcome

PACE = Pace(watch=3.0)
PATIENCE = 20.0


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def an_object(resource: Resource, name: str, version: int = 1, **parts: Any) -> Manifest:
    api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    metadata: Manifest = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        **parts.pop("metadata", {}),
    }
    if resource.namespaced:
        metadata["namespace"] = "n"
    return {"apiVersion": api_version, "kind": resource.kind, "metadata": metadata, **parts}


def a_node(name: str, version: int = 1, **spec: Any) -> Manifest:
    status = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return an_object(NODES, name, version, spec=spec, status=status)


def a_pod(
    name: str, node: str = "", version: int = 1, *, cpu: str = "1", phase: str = "Running", **spec: Any
) -> Manifest:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"nodeName": node, "containers": containers, **spec}
    return an_object(PODS, name, version, spec=spec, status={"phase": phase})


def placed(name: str, node: str, *, cpu: str = "1", **changes: Any) -> PodOnNode:
    pod = trimming.POD.trim(a_pod(name, node, cpu=cpu))
    assert pod is not None
    return replace(pod, **changes)


# Following one kind


class ScriptedDoor:
    """A door whose lists and watches are scripts: what they give in turn; what is an error is raised."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists = iter(lists)
        self.watches = iter(watches)
        self.calls: list[str] = []

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        self.calls.append(f"list from {resource_version or 'now'}")
        script = next(self.lists)
        if isinstance(script, Exception):
            raise script
        version, items = script
        for item in items:
            visit(item)
        return str(version)

    def watch(
        self, resource: Resource, *, resource_version: str, timeout: float, silence: float
    ) -> Iterator[WatchEvent]:
        self.calls.append(f"watch from {resource_version} for {timeout:g} s")
        script = next(self.watches)
        if isinstance(script, Exception):
            raise script
        return self._play(script)

    @staticmethod
    def _play(script: list[Any]) -> Iterator[WatchEvent]:
        for step in script:
            if isinstance(step, Exception):
                raise step
            yield step


def an_event(event_type: EventType, manifest: Manifest) -> WatchEvent:
    return WatchEvent(event_type, manifest)


def bookmark(version: int) -> WatchEvent:
    return WatchEvent(EventType.BOOKMARK, {"metadata": {"resourceVersion": str(version)}})


RESET_ERROR = UnknownOutcome("watch", "pods", status=200, detail="ProtocolError")
EXPIRED = Gone("watch", "pods", status=410)


class Following:
    """A follower of pods with its shelf, its pulse and time that stands still."""

    def __init__(self, lists: list[Any], watches: list[Any], kind: trimming.Kind[Any] = trimming.POD) -> None:
        self.door = ScriptedDoor(lists, watches)
        self.clock = Clock()
        self.shelf = PodShelf()
        self.pulse = Pulse(PACE, self.clock)
        self.stopping = Event()
        door: Any = self.door
        self.follower = Follower(door, kind, self.shelf, self.pulse, self.stopping, lambda: 1.0)

    def times(self, count: int) -> list[float]:
        """Follow so often; what it would wait each time (s)."""
        return [self.follower.follow_once() for _ in range(count)]

    def seen(self) -> dict[str, list[str]]:
        """The names of the pods by node."""
        return {node: sorted(pod.name for pod in pods) for node, pods in self.shelf.view().pods.items()}


def test_a_list_then_events_make_what_is_kept() -> None:
    events = [
        an_event(EventType.ADDED, a_pod("c", "n2", 11)),
        an_event(EventType.MODIFIED, a_pod("a", "n2", 12)),
        an_event(EventType.DELETED, a_pod("b", "n1", 13)),
        bookmark(20),
    ]
    following = Following([(10, [a_pod("a", "n1"), a_pod("b", "n1")])], [events, []])
    following.times(2)
    assert following.seen() == {"n2": ["a", "c"]}
    assert following.door.calls == ["list from 0", "watch from 10 for 3 s", "watch from 20 for 3 s"]


def test_a_watch_that_breaks_goes_on_from_where_it_was_without_a_list() -> None:
    events = [an_event(EventType.ADDED, a_pod("b", "n1", 11)), RESET_ERROR]
    following = Following(
        [(10, [a_pod("a", "n1")])], [events, RESET_ERROR, [an_event(EventType.ADDED, a_pod("c", "n1", 12))]]
    )
    following.times(3)
    assert following.seen() == {"n1": ["a", "b", "c"]}
    assert following.door.calls[1:] == ["watch from 10 for 3 s", "watch from 11 for 3 s", "watch from 11 for 3 s"]


@pytest.mark.parametrize("watches", [[EXPIRED, []], [[EXPIRED], []]], ids=["at once", "among the events"])
def test_a_version_that_is_gone_is_listed_again_and_not_from_the_cache(watches: list[Any]) -> None:
    following = Following([(10, [a_pod("a", "n1"), a_pod("b", "n1")]), (50, [a_pod("b", "n2", 40)])], watches)
    following.times(2)
    assert following.seen() == {"n2": ["b"]}
    assert following.door.calls[2:] == ["list from now", "watch from 50 for 3 s"]


def test_what_is_kept_stays_while_it_cannot_be_listed_again() -> None:
    following = Following([(10, [a_pod("a", "n1")]), UnknownOutcome("list", "pods")], [EXPIRED])
    following.times(2)
    assert following.seen() == {"n1": ["a"]}


def test_the_wait_after_trouble_doubles_up_to_the_longest_and_begins_anew_after_a_good_watch() -> None:
    following = Following([(10, [])], [RESET_ERROR] * 9 + [[], RESET_ERROR])
    waits = following.times(11)
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[8:] == [LONGEST_WAIT, LEAST_PERIOD, FIRST_WAIT]


def test_the_wait_begins_anew_after_a_watch_that_broke_but_had_gone_on_for_a_second() -> None:
    following = Following(
        [(10, [])], [*[RESET_ERROR] * 9, [an_event(EventType.ADDED, a_pod("a", "n1", 11)), RESET_ERROR]]
    )
    following.times(9)

    def last(*_: Any) -> PodOnNode:
        following.clock.now += STEADY
        return placed("a", "n1")

    following.follower.kind = trimming.Kind(PODS, last)
    assert following.times(1) == [FIRST_WAIT]


def test_a_watch_that_lasted_is_begun_again_at_once_and_one_that_did_not_a_little_later() -> None:
    following = Following([(10, [])], [[], [an_event(EventType.ADDED, a_pod("a", "n1", 11))]])
    assert following.times(1) == [LEAST_PERIOD]

    def last(*_: Any) -> PodOnNode:
        following.clock.now += LEAST_PERIOD
        return placed("a", "n1")

    following.follower.kind = trimming.Kind(PODS, last)
    assert following.times(1) == [0.0]


def test_a_server_that_ends_every_watch_as_too_old_is_not_listed_without_pause() -> None:
    following = Following([(10, [])] * 3, [[EXPIRED]] * 3)
    assert following.times(3) == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]


def test_a_server_that_asks_to_wait_is_waited_for() -> None:
    following = Following([TooManyRequests("list", "pods", retry_after=30.0)], [])
    assert following.times(1) == [30.0]


def test_an_interruption_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    following = Following(
        [Forbidden("list", "pods", status=403), Forbidden("list", "pods", status=403), (10, [])], [[], []]
    )
    following.times(4)
    assert [record.message for record in caplog.records] == [
        "following pods was interrupted: list pods: 403",
        "following pods again",
    ]


def test_a_defect_does_not_end_the_following(caplog: pytest.LogCaptureFixture) -> None:
    trims = iter([ZeroDivisionError("a defect"), None])

    def trim(manifest: Manifest) -> PodOnNode:
        if (error := next(trims)) is not None:
            raise error
        return placed("a", "n1")

    following = Following([(10, [a_pod("a", "n1")]), (11, [a_pod("a", "n1")])], [[]], trimming.Kind(PODS, trim))
    assert following.times(2) == [FIRST_WAIT, LEAST_PERIOD]
    assert following.seen() == {"n1": ["a"]}
    assert "following pods failed" in caplog.text


def test_following_ends_when_it_is_told_to_stop() -> None:
    following = Following([], [])
    following.stopping.set()
    following.follower.run()
    assert following.door.calls == []


def test_a_watch_ends_with_the_first_thing_it_tells_after_that() -> None:
    following = Following([(10, [])], [[bookmark(11), bookmark(12)], []])
    following.stopping.set()
    following.times(2)
    assert following.door.calls[-1] == "watch from 11 for 3 s"


# When it can be relied on


def test_nothing_can_be_relied_on_before_the_first_list() -> None:
    pulse = Pulse(PACE, Clock())
    assert not pulse.sound()
    assert pulse.age() == inf


def test_what_was_heard_is_sound_for_five_seconds() -> None:
    clock = Clock()
    pulse = Pulse(PACE, clock)
    pulse.heard()
    clock.now += 5.0
    assert pulse.sound()
    assert pulse.age() == 5.0
    clock.now += 0.01
    assert not pulse.sound()


def test_a_slow_kind_whose_watch_broke_is_sound_for_five_seconds_more() -> None:
    clock = Clock()
    pulse = Pulse(Pace(watch=30.0), clock)
    pulse.heard()
    clock.now += 10.0
    pulse.broken()
    clock.now += BROKEN_ALLOWED
    assert pulse.sound()
    clock.now += 0.01
    # A second failure does not make it sound again.
    pulse.broken()
    assert not pulse.sound()


def test_nothing_is_sound_between_a_version_that_is_gone_and_the_list_that_follows_at_once() -> None:
    following = Following([(10, []), (50, [])], [[], *[RESET_ERROR] * 8, [EXPIRED], []])
    following.times(9)
    # The watch had begun: the server was heard. What it had to tell since version 10 never comes.
    assert following.times(1) == [FIRST_WAIT]
    assert not following.pulse.sound()
    following.times(1)
    assert following.pulse.sound()
    assert following.door.calls[-2:] == ["list from now", "watch from 50 for 3 s"]


def test_every_sign_of_life_is_heard() -> None:
    following = Following([(10, [])], [[bookmark(11)], RESET_ERROR, []])
    following.times(1)
    following.clock.now += 4.0
    following.times(1)
    assert following.pulse.age() == 4.0
    following.clock.now += 4.0
    assert not following.pulse.sound()
    following.times(1)
    assert following.pulse.sound()


# The shelves


def test_pods_are_added_up_by_node() -> None:
    shelf = PodShelf()
    shelf.put_all(
        {
            ("n", "a"): placed("a", "n1", cpu="500m"),
            ("n", "b"): placed("b", "n1", cpu="1"),
            ("n", "c"): placed("c", "n2"),
        }
    )
    view = shelf.view()
    assert {name: dict(room.requested) for name, room in view.rooms.items()} == {
        "n1": {"cpu": Decimal("1.5"), "pods": 2},
        "n2": {"cpu": 1, "pods": 1},
    }
    shelf.put(("n", "c"), placed("c", "n1"))
    shelf.put(("n", "a"), None)
    shelf.put(("n", "never"), None)
    assert {name: dict(room.requested) for name, room in shelf.view().rooms.items()} == {"n1": {"cpu": 2, "pods": 2}}
    assert [pod.name for pod in view.pods["n2"]] == ["c"], "a view that was handed out stays as it was"


def a_stored_volume(name: str, storage_class: str, phase: str = "Available") -> PersistentVolume:
    return PersistentVolume(name, storage_class=storage_class, phase=phase)


def in_classes(pools: Pools) -> dict[str, list[str]]:
    return {name: [f"{volume.name} {volume.phase}" for volume in pool] for name, pool in pools.items() if pool}


def test_volumes_are_kept_by_class() -> None:
    shelf = VolumeShelf()
    shelf.put_all({("", name): a_stored_volume(name, found) for name, found in (("a", "x"), ("b", "x"), ("c", "y"))})
    view = shelf.view()
    assert in_classes(view) == {"x": ["a Available", "b Available"], "y": ["c Available"]}
    shelf.put(("", "a"), a_stored_volume("a", "x", "Bound"))
    shelf.put(("", "b"), None)
    shelf.put(("", "c"), a_stored_volume("c", "z"))
    assert in_classes(shelf.view()) == {"x": ["a Bound"], "z": ["c Available"]}
    assert in_classes(view) == {"x": ["a Available", "b Available"], "y": ["c Available"]}, "it stays as it was"
    found = [find_volume(shelf.view(), name) for name in ("a", "c", "b")]
    assert [volume and volume.storage_class for volume in found] == ["x", "z", None]
    assert in_classes(pools_of(found[:2])) == in_classes(shelf.view())


def test_a_class_whose_volumes_have_not_changed_keeps_its_pool() -> None:
    shelf = VolumeShelf()
    shelf.put_all({("", name): a_stored_volume(name, found) for name, found in (("a", "x"), ("b", "y"))})
    before = shelf.view()
    shelf.put(("", "a"), a_stored_volume("a", "x", "Bound"))
    after = shelf.view()
    assert (after["y"] is before["y"], after["x"] is before["x"]) == (True, False)


def test_attached_volumes_are_kept_by_node() -> None:
    shelf = AttachmentShelf()
    given = {("", "1"): Attachment("n1", "a"), ("", "2"): Attachment("n1", "b"), ("", "3"): Attachment("n2", "c")}
    shelf.put_all(given)
    view = shelf.view()
    assert view == attached(given.values()) == {"n1": {"a", "b"}, "n2": {"c"}}
    shelf.put(("", "1"), None)
    shelf.put(("", "3"), Attachment("n1", "c"))
    assert {name: there for name, there in shelf.view().items() if there} == {"n1": {"b", "c"}}
    assert view == {"n1": {"a", "b"}, "n2": {"c"}}


def test_a_view_is_made_anew_only_when_something_has_changed() -> None:
    nodes, pods, others = NodeShelf(), PodShelf(), Catalogue[str]()
    kept = trimming.NODE.trim(a_node("a"))
    nodes.put(("", "a"), kept)
    pods.put(("n", "a"), placed("a", "n1"))
    others.put(("", "a"), "x")
    before = nodes.view(), pods.view(), others.view()
    # A heartbeat of the kubelet, a new restart count: another version, nothing that matters.
    nodes.put(("", "a"), trimming.NODE.trim(a_node("a", version=2)))
    pods.put(("n", "a"), placed("a", "n1"))
    others.put_all({("", "a"): "x"})
    assert all(now is then for now, then in zip((nodes.view(), pods.view(), others.view()), before, strict=True))
    others.put(("", "a"), "y")
    assert (others.view(), before[2]) == ({("", "a"): "y"}, {("", "a"): "x"})


def test_nodes_are_in_order_and_what_is_known_is_kept_once() -> None:
    shelf = NodeShelf()
    for name in ("c", "a", "b"):
        shelf.put(("", name), trimming.NODE.trim(a_node(name)))
    assert [node.name for node in shelf.view()] == ["a", "b", "c"]
    again = trimming.NODE.trim(a_node("a", version=9))
    assert again is not None
    assert shelf.known(("", "a"), again) is shelf.view()[0]
    changed = replace(again, unschedulable=True)
    assert shelf.known(("", "a"), changed) is changed


# What is kept of each kind

PINNED = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        (a_pod("a", "n1"), "n1"),
        (a_pod("a", phase="Pending", affinity=PINNED), "n2"),
        (a_pod("a", phase="Pending", nodeSelector={"kubernetes.io/hostname": "n3"}), "n3"),
        ({**a_pod("a"), "status": {"phase": "Pending", "nominatedNodeName": "n4"}}, "n4"),
    ],
    ids=["bound", "pinned", "pinned by hostname", "nominated"],
)  # fmt: skip
def test_a_pod_takes_its_place_from_when_it_is_known(pod: Manifest, node: str) -> None:
    kept = trimming.POD.trim(pod)
    assert kept is not None
    assert (kept.node_name, kept.bound) == (node, node == "n1")


@pytest.mark.parametrize(
    "pod",
    [a_pod("a"), a_pod("a", "n1", phase="Succeeded"), a_pod("a", "n1", phase="Failed")],
    ids=["nowhere", "succeeded", "failed"],
)
def test_a_pod_that_takes_no_place_is_not_kept(pod: Manifest) -> None:
    assert trimming.POD.trim(pod) is None


TURNED_AWAY = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}


@pytest.mark.parametrize(
    ("annotations", "status", "node"),
    [
        ({}, {}, None),
        ({keys.ASSIGNED_NODE: "n2"}, {}, "n2"),
        ({}, {"nominatedNodeName": "n3"}, "n3"),
    ],
    ids=["a DaemonSet's", "ours", "nominated"],
)
def test_a_pinned_pod_that_the_scheduler_turned_away_takes_no_place_unless_it_is_ours(
    annotations: dict[str, str], status: Manifest, node: str | None
) -> None:
    pod = a_pod("a", affinity=PINNED)
    pod["metadata"]["annotations"] = annotations
    kept = trimming.POD.trim({**pod, "status": TURNED_AWAY | status})
    assert (kept and kept.node_name) == node


UNBOUND = an_object(CLAIMS, "a", spec={})


@pytest.mark.parametrize(
    ("kind", "manifest", "kept"),
    [
        (trimming.NAMESPACE, an_object(NAMESPACES, "a", metadata={"labels": {"team": "x"}}), {"team": "x"}),
        (trimming.CLAIMED, an_object(CLAIMS, "a", spec={"volumeName": "pv"}), trimming.Claimed("pv")),
        (trimming.CLAIMED, UNBOUND, trimming.Claimed(claim=claim_from(UNBOUND))),
        (trimming.PUBLISHER, an_object(CSI_DRIVERS, "a", spec={"storageCapacity": True}), True),
        (trimming.PUBLISHER, an_object(CSI_DRIVERS, "a", spec={}), None),
        (trimming.ATTACH_LIMITS,
         an_object(CSI_NODES, "a", spec={"drivers": [{"name": "d", "allocatable": {"count": 3}}]}),
         {"d": 3}),
        (trimming.ATTACH_LIMITS, an_object(CSI_NODES, "a", spec={"drivers": []}), None),
        (trimming.ATTACHMENT,
         an_object(VOLUME_ATTACHMENTS, "a", spec={"nodeName": "n1", "source": {"persistentVolumeName": "pv"}}),
         trimming.Attachment("n1", "pv")),
        (trimming.ATTACHMENT, an_object(VOLUME_ATTACHMENTS, "a", spec={"nodeName": "n1", "source": {}}), None),
    ],
    ids=[
        "namespace", "bound claim", "unbound claim", "driver that publishes", "driver that does not", "limits",
        "no limits", "attachment", "inline volume",
    ],
)  # fmt: skip
def test_of_other_kinds_only_what_a_filter_needs_is_kept(
    kind: trimming.Kind[Any], manifest: Manifest, kept: Any
) -> None:
    assert kind.trim(manifest) == kept


@pytest.mark.parametrize(
    "kind",
    [trimming.NODE, trimming.POD, trimming.NAMESPACE, trimming.VOLUME, trimming.CLASS, trimming.CLAIMED,
     trimming.PUBLISHER, trimming.CAPACITY, trimming.ATTACH_LIMITS, trimming.ATTACHMENT],
    ids=lambda kind: kind.resource.plural,
)  # fmt: skip
@pytest.mark.parametrize(
    "odd", [{}, {"spec": None, "status": 3}, {"spec": [], "status": {"conditions": None}}, {"spec": "x"}]
)
def test_odd_objects_are_trimmed_without_raising(kind: trimming.Kind[Any], odd: Manifest) -> None:
    kind.trim({"metadata": {"name": 5, "labels": ["a"]}, **odd})
    trimming.key_of({"metadata": {"name": None, "namespace": 5}})


# The whole inventory


def nodes_in(view: InventoryView | None) -> list[str]:
    return [node.name for node in view.nodes] if view else []


QUICK = Pace(watch=0.3, late=PATIENCE)


def a_world() -> MemoryCluster:
    return MemoryCluster(
        [
            a_node("n1"),
            a_pod("a", "n1"),
            an_object(NAMESPACES, "n"),
            an_object(PERSISTENT_VOLUMES, "pv"),
            an_object(STORAGE_CLASSES, "fast"),
            an_object(CSI_STORAGE_CAPACITIES, "c"),
        ]
    )


def test_the_inventory_follows_the_cluster() -> None:
    cluster = a_world()
    with Inventory(cluster, quick=QUICK, slow=QUICK).following() as inventory:
        inventory.start()
        view = eventually(inventory.view)
        assert inventory.synced()
        assert inventory.age() < PATIENCE
        assert nodes_in(view) == ["n1"]
        assert {name: len(pods) for name, pods in view.placed.pods.items()} == {"n1": 1}
        assert {name: [volume.name for volume in pool] for name, pool in view.volumes().items()} == {"": ["pv"]}
        assert set(inventory.ages()) >= {"nodes", "pods", "persistentvolumes"}

        cluster.create(NODES, {"metadata": {"name": "n2"}}, timeout=1)
        cluster.delete(PODS, "a", namespace="n", timeout=1)
        eventually(lambda: nodes_in(inventory.view()) == ["n1", "n2"])
        eventually(lambda: (view := inventory.view()) and not view.placed.pods)
    inventory.stop(PATIENCE)
    assert not any(thread.is_alive() for thread in inventory._threads)


def test_an_inventory_that_was_never_started_proposes_nothing_and_can_be_stopped() -> None:
    inventory = Inventory(a_world())
    inventory.stop()
    assert inventory.view() is None
    assert not inventory.synced()
    assert inventory.age() == inf


class Breakable:
    """A door whose calls about one kind fail on demand."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.broken: Resource | None = None

    def scan(self, resource: Resource, *arguments: Any, **parameters: Any) -> str:
        self._check(resource)
        return self.cluster.scan(resource, *arguments, **parameters)

    def watch(self, resource: Resource, **parameters: Any) -> Iterator[WatchEvent]:
        self._check(resource)
        return self.cluster.watch(resource, **parameters)

    def _check(self, resource: Resource) -> None:
        if resource == self.broken:
            raise UnknownOutcome("watch", resource.plural, detail="ConnectionResetError")


@pytest.mark.parametrize("resource", [NODES, PODS, PERSISTENT_VOLUMES], ids=lambda resource: resource.plural)
def test_five_seconds_after_a_watch_broke_nothing_is_proposed_until_it_is_back(resource: Resource) -> None:
    clock = Clock()
    door: Any = Breakable(a_world())
    inventory = Inventory(door, quick=PACE, slow=Pace(watch=30.0), clock=clock, chance=lambda: 0.0)
    quickly = [replace_pace(follower, 0.01) for follower in inventory.followers]

    def follow() -> None:
        for follower in quickly:
            follower.follow_once()

    follow()
    assert inventory.view() is not None
    door.broken = resource
    follow()
    clock.now += BROKEN_ALLOWED
    assert inventory.view() is not None
    follow()
    clock.now += 0.01
    for follower in quickly:
        if follower.kind.resource != resource:
            follower.follow_once()
    assert inventory.view() is None
    door.broken = None
    follow()
    assert inventory.view() is not None


def replace_pace(follower: Follower, seconds: float) -> Follower:
    """The follower with watches that end at once, and all else by its own pace."""
    door = follower._door

    class Short:
        scan = staticmethod(door.scan)

        @staticmethod
        def watch(resource: Resource, **parameters: Any) -> Iterator[WatchEvent]:
            return door.watch(resource, **{**parameters, "timeout": seconds})

    short: Any = Short()
    follower._door = short
    return follower


# Over HTTP


@pytest.mark.parametrize(
    "trouble",
    [RESET, STALL, Stream((b"garbage\n",)), Stream((b'{"type":',), then=RESET), Stream((), then=STALL)],
    ids=["reset", "no answer", "garbage", "reset in an event", "silent"],
)
def test_whatever_happens_to_a_watch_the_next_one_goes_on(trouble: Any) -> None:
    first = Stream((watch_line("ADDED", a_pod("b", "n1", 11)),))
    last = Stream((watch_line("ADDED", a_pod("c", "n1", 12)),))
    listing = json_reply({"metadata": {"resourceVersion": "10"}, "items": [a_pod("a", "n1")]})
    with fake_api_server() as server:
        server.answer_with(listing, first, trouble, last)
        door = ApiDoor(Configuration(host=server.url))
        shelf, pulse = PodShelf(), Pulse(Pace(watch=0.1, late=0.1), monotonic)
        follower = Follower(door, trimming.POD, shelf, pulse, Event(), lambda: 0.0)
        waits = [follower.follow_once() for _ in range(3)]
        door.close()
    assert waits[1] == FIRST_WAIT / 2
    assert sorted(pod.name for pod in shelf.view().pods["n1"]) == ["a", "b", "c"]
    assert [asked.path.partition("&allow")[0] for asked in server.asked] == [
        "/api/v1/pods?resourceVersion=0",
        "/api/v1/pods?watch=true&resourceVersion=10",
        "/api/v1/pods?watch=true&resourceVersion=11",
        "/api/v1/pods?watch=true&resourceVersion=11",
    ]
