"""What a review costs on the embedded cluster, as ratios within one run. Nothing here is asserted.

Each row sends the reviews of fresh clusters' three TiKV pods, one after another, through the application of the
webhook address; every pod is stored before the next is asked for. The rows take turns, so that whatever else the
machine does falls on all of them.
"""

from __future__ import annotations

import base64
import copy
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from webhook.app import create_app
from webhook.cluster.door import CLAIMS, STATEFUL_SETS
from webhook.cluster.memory import MemoryCluster
from webhook.core.jsonpatch import apply
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wiring import build_admission

REPETITIONS = 7
CLUSTERS_PER_REPETITION = 4
MEMBERS = 3
NODE_COUNTS = (3, 100, 1000)
UNTOUCHED = "untouched pod"


class Bench:
    """One embedded cluster with so many nodes, and the application over it."""

    def __init__(self, nodes: int) -> None:
        self.cluster = MemoryCluster([node(number) for number in range(nodes)])
        settings = Settings()
        self.client = create_app(settings, build_admission(settings, self.cluster, Metrics())).test_client()
        self.clusters = 0

    def place_members(self) -> Iterator[float]:
        """The seconds of each review of a new cluster's members."""
        self.clusters += 1
        name = f"db{self.clusters}-tikv"
        labels = member_labels(f"db{self.clusters}")
        self.cluster.create(STATEFUL_SETS, stateful_set(name, labels), namespace="bench", timeout=1)
        for ordinal in range(MEMBERS):
            pod = member(name, ordinal, labels)
            claim = {"metadata": {"name": f"tikv-{name}-{ordinal}", "labels": labels}, "spec": {}}
            self.cluster.create(CLAIMS, claim, namespace="bench", timeout=1)
            seconds, patch = self._review(pod)
            yield seconds
            self.cluster.admit(apply(pod, patch), namespace="bench")

    def leave_alone(self) -> Iterator[float]:
        """The seconds of each review of a pod that is of no group."""
        for number in range(MEMBERS):
            yield self._review({"metadata": {"name": f"web-{number}", "labels": {"app": "web"}}, "spec": {}})[0]

    def _review(self, pod: dict[str, Any]) -> tuple[float, list[dict[str, Any]]]:
        body = json.dumps(review(pod))
        began = time.perf_counter()
        answer = self.client.post("/mutate?timeout=10s", data=body, content_type="application/json")
        seconds = time.perf_counter() - began
        patch = answer.get_json()["response"].get("patch")
        return seconds, json.loads(base64.b64decode(patch)) if patch else []


def main() -> None:
    """Measure and print."""
    benches = {nodes: Bench(nodes) for nodes in NODE_COUNTS}
    seconds: dict[str, list[float]] = {UNTOUCHED: [], **{f"member, {nodes} nodes": [] for nodes in NODE_COUNTS}}
    for _ in range(REPETITIONS):
        for nodes, bench in benches.items():
            for _ in range(CLUSTERS_PER_REPETITION):
                seconds[f"member, {nodes} nodes"] += bench.place_members()
                seconds[UNTOUCHED] += bench.leave_alone()
    print_table(seconds)


def print_table(seconds: dict[str, list[float]]) -> None:
    """One row a case; ratios are to a member with the fewest nodes."""
    base = statistics.median(seconds[f"member, {NODE_COUNTS[0]} nodes"])
    table = Table(title="handler on the embedded cluster, one request at a time")
    for column in ("case", "reviews", "p50 ms", "p99 ms", "reviews/s", f"p50 : p50 of {NODE_COUNTS[0]} nodes"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for case, times in seconds.items():
        ordered = sorted(times)
        middle, late = statistics.median(ordered), ordered[int(0.99 * (len(ordered) - 1))]
        table.add_row(
            case,
            str(len(times)),
            f"{1000 * middle:.2f}",
            f"{1000 * late:.2f}",
            f"{len(times) / sum(times):.0f}",
            f"{middle / base:.2f}",
        )
    Console().print(table)


def node(number: int) -> dict[str, Any]:
    """A node of 8 CPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}"}},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        },
    }


def member_labels(cluster: str) -> dict[str, str]:
    """The labels of tidb-operator v1."""
    return {
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": "tikv",
    }


def stateful_set(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A set of TiKV."""
    return {"metadata": {"name": name}, "spec": {"replicas": MEMBERS, "selector": {"matchLabels": labels}}}


def member(name: str, ordinal: int, labels: dict[str, str]) -> dict[str, Any]:
    """A pod of it, as the StatefulSet controller asks to create it."""
    pod = f"{name}-{ordinal}"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name, "controller": True}
    volume = {"name": "tikv", "persistentVolumeClaim": {"claimName": f"tikv-{pod}"}}
    container = {"name": "tikv", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "metadata": {"name": pod, "namespace": "bench", "labels": copy.copy(labels), "ownerReferences": [owner]},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def review(pod: dict[str, Any]) -> dict[str, Any]:
    """An AdmissionReview of its CREATE."""
    request = {
        "uid": "00000000-0000-4000-8000-000000000000",
        "operation": "CREATE",
        "namespace": "bench",
        "name": pod["metadata"]["name"],
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


if __name__ == "__main__":
    main()
