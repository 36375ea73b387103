"""What a decision costs beside a real API server, from 10 to 5,000 nodes: `python -m bench decisions-followed`.

By a process of `tidb-ha-webhook serve` that follows an API server with nothing but etcd behind it, which holds more
and more. Otherwise as in `decisions.py`: the same nodes, pods and clusters, one review after another, one table.
"""

from __future__ import annotations

import json
import ssl
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.replicas import SERVICE, Replica, Webhook
from e2e.waiting import wait_until

from bench.decisions import (
    COUNTED,
    NAMESPACE,
    PODS_PER_NODE,
    SIZES,
    WARM,
    Cost,
    new_cluster,
    node,
    patch_in,
    pod,
    show,
    storage_class,
)
from bench.handler import review
from webhook.core.jsonpatch import apply

AGE = "tidb_ha_webhook_inventory_age_seconds{"
# Else every node would be born with a taint that nobody takes away.
APISERVER_FLAGS = ("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",)


def main() -> None:
    """Measure and print."""
    show("a decision by a process that follows a real API server", dict(followed()))


def followed() -> Iterator[tuple[int, Cost]]:
    """What decisions cost, by the number of nodes."""
    with tempfile.TemporaryDirectory(prefix="bench-decisions-") as folder, quiet_plane(Path(folder)) as plane:
        for before, size in zip((0, *SIZES), SIZES, strict=False):
            with Api(plane.url, plane.token, plane.files.ca) as api:
                fill(api, before, size)
                yield size, measure(plane, api, Path(folder) / str(size), size)


@contextmanager
def quiet_plane(folder: Path) -> Iterator[ControlPlane]:
    """An API server without anybody who works on what it holds."""
    with ControlPlane(folder / "control-plane", apiserver_flags=APISERVER_FLAGS) as plane:
        for child in (plane.kwok, plane.scheduler, plane.controller_manager):
            child.stop()
        with Api(plane.url, plane.token, plane.files.ca) as api:
            teams = {pod(number, 1)["metadata"]["namespace"] for number in range(100)}
            for name in (NAMESPACE, *sorted(teams)):
                api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            api.create(storage_class())
        yield plane


def fill(api: Api, before: int, size: int) -> None:
    """Create the nodes and pods that are missing."""
    nodes = map(node, range(before, size))
    pods = (pod(number, size) for number in range(PODS_PER_NODE * before, PODS_PER_NODE * size))
    with ThreadPoolExecutor(8) as threads:
        for created in (nodes, pods):
            for _ in threads.map(api.create, created):
                pass


def measure(plane: ControlPlane, api: Api, folder: Path, size: int) -> Cost:
    """Start a process, and ask it once it knows the cluster."""
    with Webhook(plane, folder, service=("webhook-system", SERVICE)) as webhook:
        replica = webhook.replicas[0]
        wait_until(lambda: follows(replica), "the inventory to know the cluster", 120)
        context = ssl.create_default_context(cafile=str(plane.files.ca))
        context.check_hostname = False
        connection = HTTPSConnection("127.0.0.1", replica.port, context=context)
        seconds = []
        for number in range(WARM + COUNTED):
            made, members = new_cluster(size * 1000 + number)
            uid = api.create(made)["metadata"]["uid"]
            for claim, asked in members:
                api.create(claim)
                asked["metadata"]["ownerReferences"][0]["uid"] = uid
                seconds.append(ask(connection, api, asked))
        connection.close()
        cost = Cost(seconds[3 * WARM :], replica.memory() >> 20)
    # Nobody binds these pods: for the next process they would all be on their way still.
    api.delete_all("Pod", NAMESPACE, gracePeriodSeconds=0)
    api.wait_for("Pod", lambda found: not found, NAMESPACE, timeout=60)
    return cost


def follows(replica: Replica) -> bool:
    """Whether every kind has been listed."""
    ages = [value for name, value in replica.metrics().items() if name.startswith(AGE)]
    return bool(ages) and max(ages) < float("inf")


def ask(connection: HTTPSConnection, api: Api, asked: Object) -> float:
    """The seconds until the webhook has decided for the pod; it is stored afterwards."""
    body = json.dumps(review(asked))
    began = time.perf_counter()
    connection.request("POST", "/mutate?timeout=10s", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    seconds = time.perf_counter() - began
    api.create(apply(asked, patch_in(answer)))
    return seconds
