"""How long a call takes that creates a pod: a member's, an ordinary pod's, and one conditional write for comparison."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from e2e import objects
from e2e.objects import Object
from e2e.place import HandSet, Place, node_of

from bench.arms import Arm
from bench.figures import COMPONENT_LABELS
from bench.ground import Ground

CLUSTERS = 14
"""How many, of three TiKV each, whose members a block creates in turn: never two of one one after another."""

MEMBERS = 3
PER_SECOND = 20
"""Members created in a second where calls do not wait for each other."""

MEMBER, ORDINARY, PATCH = "create a member", "create an ordinary pod", "conditional PATCH of a claim"
ALONE, PACED = "one call at a time", f"{PER_SECOND} members/s"
PACES = (ALONE, PACED)

_numbers = count()

Call = Callable[[], object]
Calls = list[tuple[str, Call]]


@dataclass
class Latencies:
    """Seconds of each call, by kind of call."""

    by_kind: dict[str, list[float]] = field(default_factory=lambda: {MEMBER: [], ORDINARY: [], PATCH: []})

    def timed(self, kind: str, call: Call) -> None:
        """Make a call."""
        began = time.monotonic()
        call()
        self.by_kind[kind].append(time.monotonic() - began)


class Block:
    """The calls of one block in an arm's namespace: for every member also an ordinary pod and a conditional write.

    Of clusters there is an even number.
    """

    def __init__(self, place: Place, arm: Arm, clusters: int) -> None:
        self._place, self._api = place, place.api
        self._number = next(_numbers)
        self._members_in_all = clusters * MEMBERS
        self._sets = []
        for index in range(clusters):
            cluster = f"c{self._number}-{index}"
            members = HandSet(place, cluster=cluster, pod_spec=arm.pod_spec(cluster, "tikv"))
            members.create_claims(range(MEMBERS))
            self._sets.append(members)
        self._spares = [self._api.create(self._spare_claim(index)) for index in range(self._members_in_all)]

    def alone(self) -> Calls:
        """All calls, to be made one after another."""
        number = self._members_in_all
        together = zip(self._members(), self._ordinary(number), self._patches(number), strict=True)
        return [call for calls in together for call in calls]

    def paced(self) -> Calls:
        """All calls, to be made `2 * PER_SECOND` a second: members, and between them the others in turn."""
        number = self._members_in_all // 2
        others = [call for pair in zip(self._ordinary(number), self._patches(number), strict=True) for call in pair]
        return [call for pair in zip(self._members(), others, strict=True) for call in pair]

    def _members(self) -> Calls:
        return [
            (MEMBER, self._create(objects.member_pod(members.set, ordinal)))
            for ordinal in range(MEMBERS)
            for members in self._sets
        ]

    def _ordinary(self, number: int) -> Calls:
        return [(ORDINARY, self._create(self._ordinary_pod(index))) for index in range(number)]

    def _create(self, pod: Object) -> Call:
        return lambda: self._api.create(pod)

    def _patches(self, number: int) -> Calls:
        # A claim each: two that overlap must not be in each other's way.
        return [(PATCH, self._patch(spare["metadata"])) for spare in self._spares[:number]]

    def _patch(self, metadata: Object) -> Call:
        precondition = {"resourceVersion": metadata["resourceVersion"]}
        patch = {"metadata": {**precondition, "annotations": {"example.test/value": "1"}}}
        return lambda: self._api.patch("PersistentVolumeClaim", metadata["name"], patch, self._place.namespace)

    def _ordinary_pod(self, index: int) -> Object:
        metadata = {"name": f"web-{self._number}-{index}", "namespace": self._place.namespace, "labels": {"app": "web"}}
        spec = {"containers": [objects.container("web", cpu="10m", memory="16Mi")]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _spare_claim(self, index: int) -> Object:
        claim = objects.claim_template("spare", {}, storage_class=objects.LOCAL_STORAGE, size="1Gi")
        metadata = {"name": f"spare-{self._number}-{index}", "namespace": self._place.namespace}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "metadata": metadata}


def measure(ground: Ground, arm: Arm, clusters: int, found: Mapping[str, Latencies]) -> list[Object]:
    """Make a block of calls at each pace of `found`; all members, as they are when all have a node."""
    place = ground.places[arm]
    for pace, latencies in found.items():
        block = Block(place, arm, clusters)
        ground.settle()
        if pace == ALONE:
            for kind, call in block.alone():
                latencies.timed(kind, call)
        else:
            in_time(block.paced(), 2 * PER_SECOND, latencies)
    pods = _placed(place)
    ground.clear(place)
    return pods


def _placed(place: Place) -> list[Object]:
    """The members, when all have a node; a call has been timed whether or not its pod can run."""
    with suppress(TimeoutError):
        place.api.wait_for(
            "Pod", lambda pods: all(map(node_of, pods)), place.namespace, labels=COMPONENT_LABELS[1], timeout=20
        )
    return place.api.list("Pod", place.namespace, labels=COMPONENT_LABELS[1])


def in_time(calls: Sequence[tuple[str, Call]], per_second: float, latencies: Latencies) -> None:
    """Start so many calls a second, whether or not those before have been answered."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(calls)) as pool:
        running: list[Future[None]] = []
        for index, (kind, call) in enumerate(calls):
            time.sleep(max(began + index / per_second - time.monotonic(), 0))
            running.append(pool.submit(latencies.timed, kind, call))
    for each in running:
        each.result()
