"""StatefulSets created at once: when all their pods have a node, which nodes, and at what cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from e2e.objects import Object
from e2e.place import node_of

from bench.arms import Arm
from bench.arrivals import Arrivals
from bench.ground import Ground
from bench.usage import cpu_seconds

AT_ONCE = 20
"""Calls that create sets, at the same time."""

PATIENCE = 45.0
"""Seconds without a further placement after which pods that the scheduler has refused count as not placed.

By then the controller has freed those that something better is there for.
"""

Sets = Sequence[tuple[str, str, int]]
"""Cluster, component and replicas of each."""


@dataclass(frozen=True)
class Trial:
    """What became of sets that were created at once."""

    pods: list[Object]
    wanted: int
    seconds: float
    """From the first create to the last pod's node."""
    scheduler: float
    """Processor time of the scheduler meanwhile (s)."""
    webhook: float
    """The same of all processes of the webhook and of the controller."""
    freed: int
    """How many pods the controller has freed meanwhile."""
    listed_again: int
    """How often the times are those of a list, since the watch was ended."""

    @property
    def placed(self) -> int:
        """How many pods have a node."""
        return sum(bool(node_of(pod)) for pod in self.pods)


def place_sets(ground: Ground, arm: Arm, sets: Sets, *, nodes: int, limit: float) -> Trial:
    """Create the sets in the arm's way, wait until as many pods as can have one have a node, and clear up.

    `limit` is in seconds; what has no node by then counts as not placed.
    """
    place = ground.places[arm]
    wanted, possible = sum(size for *_, size in sets), arm.possible([size for *_, size in sets], nodes)

    def start(cluster: str, component: str, replicas: int) -> None:
        spec = arm.pod_spec(cluster, component)
        place.start(cluster=cluster, component=component, replicas=replicas, pod_spec=spec)

    plane = ground.plane
    with (
        Arrivals(plane.url, plane.token, plane.files.ca, place.namespace) as arrivals,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        used, freed = _costs(ground), ground.freed()
        began = time.monotonic()
        for created in [pool.submit(start, *one) for one in sets]:
            created.result()
        wait_settled(arrivals, wanted, possible, limit)
        scheduler, webhook = (after - before for after, before in zip(_costs(ground), used, strict=True))
        freed = ground.freed() - freed
        pods, last = list(arrivals.pods.values()), max(arrivals.seen.values(), default=began)
    ground.clear(place)
    return Trial(pods, wanted, last - began, scheduler, webhook, freed, arrivals.listed_again)


def wait_settled(arrivals: Arrivals, wanted: int, possible: int, limit: float, patience: float = PATIENCE) -> bool:
    """Wait until sets have settled, or nothing more comes of them for `patience` (s); False if `limit` (s) is first."""
    began = time.monotonic()
    end = began + limit
    while (now := time.monotonic()) < end:
        if arrivals.wait_for(settled(wanted, possible), min(patience, end - now)):
            return True
        given_up = time.monotonic() - max(arrivals.seen.values(), default=began) >= patience
        if given_up and settled(wanted, 0)(arrivals.pods):
            return True
    return False


def settled(wanted: int, possible: int) -> Callable[[dict[str, Object]], bool]:
    """Whether all wanted pods are there, as many as possible have a node, and the scheduler has refused the others."""

    def done(pods: dict[str, Object]) -> bool:
        waiting = [pod for pod in pods.values() if not node_of(pod)]
        return len(pods) == wanted and wanted - len(waiting) >= possible and all(map(is_refused, waiting))

    return done


def is_refused(pod: Object) -> bool:
    """Whether the scheduler has looked at the pod and found no node."""
    return bool(refusal_of(pod))


def refusal_of(pod: Object) -> str:
    """What the scheduler says of a pod for which it has found no node, "" if it has not."""
    conditions = pod.get("status", {}).get("conditions", [])
    refused = [c for c in conditions if (c["type"], c.get("reason")) == ("PodScheduled", "Unschedulable")]
    return refused[0].get("message", "Unschedulable") if refused else ""


def _costs(ground: Ground) -> tuple[float, float]:
    return cpu_seconds({ground.plane.scheduler.pid}), cpu_seconds(ground.webhook_groups)
