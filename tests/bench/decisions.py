"""What a decision costs in clusters of 10 to 5,000 nodes, four pods to a node: `python -m bench decisions`.

On the embedded cluster, a process for each size. Reviews of the three members of fresh TiKV clusters go to the webhook
one after another, and each pod is stored before the next is asked for. Ratios are to the smallest cluster of the run.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import objects
from e2e.objects import Object
from rich.console import Console

from bench import memory as large
from bench.figures import percentile, ratio
from bench.handler import review
from bench.tables import new_table
from webhook.app import create_app
from webhook.cluster.door import CLAIMS, STATEFUL_SETS
from webhook.cluster.inventory import PromptInventory
from webhook.cluster.memory import MemoryCluster
from webhook.core.jsonpatch import apply
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wiring import build_admission, build_parts

SIZES = (10, 100, 1000, 5000)
PODS_PER_NODE = 4
WARM, COUNTED = 4, 40
"""Clusters of three stores: those that do not count, and those that do."""

NAMESPACE, CLASS = "bench", "made-where-needed"


@dataclass(frozen=True)
class Cost:
    """Seconds of each decision, and how much memory the process took then (MiB)."""

    seconds: list[float]
    memory: int


def main() -> None:
    """Measure and print."""
    show("a decision on the embedded cluster, which is in the memory too", {size: embedded(size) for size in SIZES})


def show(title: str, costs: dict[int, Cost]) -> None:
    """One row a size."""
    columns = ("nodes", "pods", "decisions", "p50 ms", "p99 ms", f"p50 x {SIZES[0]} nodes", "MiB", f"MiB x {SIZES[0]}")
    table = new_table(title, columns, words=0)
    first = costs[SIZES[0]]
    base = percentile(first.seconds, 50)
    for size, cost in costs.items():
        middle, late = percentile(cost.seconds, 50), percentile(cost.seconds, 99)
        table.add_row(
            f"{size:,}",
            f"{PODS_PER_NODE * size:,}",
            str(len(cost.seconds)),
            f"{1000 * middle:.1f}",
            f"{1000 * late:.1f}",
            ratio(middle, base),
            str(cost.memory),
            ratio(cost.memory, first.memory),
        )
    Console(width=140).print(table)


def new_cluster(number: int) -> tuple[Object, list[tuple[Object, Object]]]:
    """A set of three stores, and its claims and pods as their controller creates them."""
    made = objects.stateful_set(NAMESPACE, cluster=f"db{number}", cpu="10m", memory="16Mi", storage_class=CLASS)
    members = range(made["spec"]["replicas"])
    claims = [objects.member_claims(made, ordinal)[0] for ordinal in members]
    pods = [objects.member_pod(made, ordinal, uid="unknown") for ordinal in members]
    return made, list(zip(claims, pods, strict=True))


def storage_class() -> Object:
    """The class of the members' claims."""
    return {**objects.storage_class(CLASS), "provisioner": "disk.example.com"}


def node(number: int) -> Object:
    """A node with the labels that clouds give it."""
    found = large.node(number)
    metadata = {"name": found["metadata"]["name"], "labels": found["metadata"]["labels"]}
    status = {key: value for key, value in found["status"].items() if key != "images"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(number: int, nodes: int) -> Object:
    """A pod of a Deployment that is on its node; every fourth keeps away from its siblings."""
    found = large.pod(number, nodes)
    metadata = {key: found["metadata"][key] for key in ("name", "namespace", "labels")}
    spec = {key: value for key, value in found["spec"].items() if key != "serviceAccountName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def embedded(size: int) -> Cost:
    """What decisions cost on an embedded cluster of so many nodes."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.decisions", str(size)], stdout=subprocess.PIPE, text=True, check=True
    )
    return Cost(**json.loads(told.stdout))


def measure_embedded(size: int) -> Cost:
    """The work of that process."""
    pods = (pod(number, size) for number in range(PODS_PER_NODE * size))
    cluster = MemoryCluster([storage_class(), *map(node, range(size)), *pods])
    settings = Settings()
    parts = build_parts(settings, cluster, PromptInventory(cluster))
    client = create_app(settings, build_admission(settings, cluster, Metrics(), parts)).test_client()
    seconds = []
    for number in range(WARM + COUNTED):
        made, members = new_cluster(number)
        cluster.create(STATEFUL_SETS, made, namespace=NAMESPACE, timeout=1)
        for claim, asked in members:
            cluster.create(CLAIMS, claim, namespace=NAMESPACE, timeout=1)
            body = json.dumps(review(asked))
            began = time.perf_counter()
            answer = client.post("/mutate?timeout=10s", data=body, content_type="application/json")
            seconds.append(time.perf_counter() - began)
            cluster.admit(apply(asked, patch_in(answer.get_json())), namespace=NAMESPACE)
    return Cost(seconds[3 * WARM :], int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20)


def patch_in(answer: dict[str, Any]) -> list[Any]:
    """The JSON Patch of an answer; it must hold a pin."""
    found = json.loads(base64.b64decode(answer["response"]["patch"]))
    assert "metadata.name" in json.dumps(found), found
    return list(found)


if __name__ == "__main__":
    found = measure_embedded(int(sys.argv[1]))
    sys.stdout.write(json.dumps({"seconds": found.seconds, "memory": found.memory}))
