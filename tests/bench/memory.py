"""How much memory one process takes that follows a large cluster: `python -m bench.memory [NODES PODS]`.

Nothing else is in that process but what a worker has in memory anyway; what its inventory holds is told apart from it.
The cluster is another process that speaks HTTP: objects of the size that real ones have (30 images a node,
managedFields, status), lists in one piece, watches with a stream of changes. Figures are printed, not asserted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

MIB = 1024
CHANGES_PER_SECOND = 50
EXPIRES_AFTER = 20
"""Seconds after which every version is too old once, so that all is listed again while it is held."""


def main(nodes: int, pods: int) -> None:
    """Start the cluster, follow it, and print what that takes."""
    tell(f"{nodes} nodes, {pods} pods")
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(nodes), str(pods)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        subprocess.run([sys.executable, __file__, "follow", url], check=True)
    finally:
        server.terminate()
        server.wait()


def follow(url: str) -> None:
    """Follow the cluster at this address for a while."""
    from kubernetes.client import Configuration

    import webhook.wiring  # noqa: F401 - what a worker has in memory anyway
    from webhook.cluster.api import ApiDoor
    from webhook.cluster.door import PODS
    from webhook.cluster.inventory import Inventory

    before = show("before")
    began = time.monotonic()
    door = ApiDoor(Configuration(host=url))
    with Inventory(door).following() as inventory:
        while not inventory.synced():
            time.sleep(0.05)
        listed = show(f"listed after {time.monotonic() - began:.1f} s")
        tell(f"  the inventory and what listing has left behind: {listed - before} MiB")
        time.sleep(10)
        while (view := inventory.view()) is None:
            time.sleep(0.05)
        placed = sum(map(len, view.placed.pods.values()))
        show(f"after {CHANGES_PER_SECOND} changes a second for 10 s ({len(view.nodes)} nodes, {placed} pods)")
        time.sleep(EXPIRES_AFTER + 15)
        show("after all was listed once more")
        seen: Counter[str] = Counter()
        for _ in range(3):
            door.scan(PODS, lambda pod: seen.update([pod["kind"]]), timeout=60)
        show(f"after {seen['Pod']} pods were listed beside that")
    door.close()


def show(moment: str) -> int:
    """Print what this process takes now (MiB, which is returned), and the most that it ever took."""
    with open("/proc/self/status", encoding="ascii") as status:
        sizes = dict(line.split(":", 1) for line in status)
    now, peak = (int(sizes[key].split()[0]) // MIB for key in ("VmRSS", "VmHWM"))
    tell(f"  {moment}: {now} MiB, at most {peak} MiB")
    return now


def tell(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# The cluster


def node(number: int, version: int = 0) -> dict[str, Any]:
    """A node as a kubelet reports it."""
    name = f"ip-10-{number // 250}-{number % 250}.region-1.compute.internal"
    zone = f"region-1{'abc'[number % 3]}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m7.4xlarge",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": zone,
        "node.example.com/pool": f"pool-{number % 7}",
        "topology.ebs.csi.example.com/zone": zone,
    }
    capacity = {"cpu": "16", "memory": "64891380Ki", "pods": "110", "ephemeral-storage": "104845292Ki"}
    capacity |= {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    condition = {"lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": f"Kubelet{kind}", **condition}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"example.com/team-{at}/app@sha256:{at:064x}", f"example.com/team-{at}/app:v1.{at}"],
         "sizeBytes": 123456789}
        for at in range(30)
    ]  # fmt: skip
    status = {"capacity": capacity, "allocatable": capacity, "conditions": conditions, "images": images}
    spec = {"podCIDR": f"10.{number // 250}.{number % 250}.0/24", "providerID": f"example:///region-1/i-{number:017x}"}
    return {"metadata": metadata(name, "", labels, number, version), "spec": spec, "status": status}


def pod(number: int, nodes: int, version: int = 0) -> dict[str, Any]:
    """A pod of a Deployment with two containers, as it is stored when it runs."""
    app = f"app-{number // 20}"
    name, namespace = f"{app}-{number // 20:010x}-{number:05x}", f"team-{number % 60}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-{number % 3}",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/version": "v1.2.3",
        "pod-template-hash": f"{number // 20:010x}",
        "team": namespace,
    }
    resources = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    environment = [{"name": f"SETTING_{at}", "value": f"value-{at}-of-{app}"} for at in range(20)]
    mounts = [{"name": f"volume-{at}", "mountPath": f"/var/lib/app/{at}"} for at in range(4)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    containers = [
        {"name": f"main-{at}", "image": f"registry.example.com/{app}:v1.2.3", "resources": resources,
         "env": environment, "volumeMounts": mounts, "livenessProbe": probe, "readinessProbe": probe,
         "ports": [{"containerPort": 8080, "protocol": "TCP"}], "terminationMessagePath": "/dev/termination-log"}
        for at in range(2)
    ]  # fmt: skip
    term = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = (
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}} if number % 4 == 0 else {}
    )
    spec = {
        "nodeName": node_name(number % nodes),
        "containers": containers,
        "volumes": [{"name": f"volume-{at}", "configMap": {"name": f"{app}-{at}"}} for at in range(4)],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "affinity": affinity,
        "serviceAccountName": app,
    }
    statuses = [
        {"name": f"main-{at}", "ready": True, "restartCount": 0, "containerID": f"containerd://{number:064x}",
         "image": f"registry.example.com/{app}:v1.2.3", "imageID": f"registry.example.com/{app}@sha256:{number:064x}",
         "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        for at in range(2)
    ]  # fmt: skip
    status = {"phase": "Running", "podIP": "10.1.2.3", "containerStatuses": statuses, "conditions": []}
    return {"metadata": metadata(name, namespace, labels, number, version), "spec": spec, "status": status}


def node_name(number: int) -> str:
    return f"ip-10-{number // 250}-{number % 250}.region-1.compute.internal"


def metadata(name: str, namespace: str, labels: dict[str, str], number: int, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field-{at}": {"f:inner": {}, "f:other": {}} for at in range(40)}
    managed = [
        {"manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}
        for manager in ("kube-controller-manager", "kubelet")
    ]
    found = {
        "name": name,
        "uid": f"00000000-0000-4000-8000-{number:012x}",
        "resourceVersion": str(1_000_000 + version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels,
        "annotations": {"example.com/checksum": "0" * 64, "example.com/since": str(version)},
        "managedFields": managed,
    }
    return found | ({"namespace": namespace} if namespace else {})


class Cluster(BaseHTTPRequestHandler):
    """Answers lists and watches of nodes and pods; of anything else there is nothing."""

    protocol_version = "HTTP/1.1"
    nodes = pods = 0
    expires: ClassVar[dict[str, float]] = {}

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        query = parse_qs(target.query)
        plural = target.path.rpartition("/")[2]
        make: Callable[..., dict[str, Any]] | None = {
            "nodes": lambda at, version=0: node(at % self.nodes, version),
            "pods": lambda at, version=0: pod(at % self.pods, self.nodes, version),
        }.get(plural)
        count = {"nodes": self.nodes, "pods": self.pods}.get(plural, 0)
        self.send_response(200)
        self.send_header("Date", self.date_time_string())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seconds = int(query.get("timeoutSeconds", ["0"])[0])
        watches = "watch" in query
        if watches and time.monotonic() > self.expires.setdefault(plural, time.monotonic() + EXPIRES_AFTER):
            self.expires[plural] = float("inf")
            texts = iter(['{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n'])
        else:
            texts = self.changes(make, seconds) if watches else self.listing(make, count)
        for text in texts:
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def listing(self, make: Callable[..., dict[str, Any]] | None, count: int) -> Iterator[str]:
        yield '{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1000000"},"items":['
        for at in range(count if make else 0):
            assert make is not None
            yield ("," if at else "") + json.dumps(make(at), separators=(",", ":"))
        yield "]}\n"

    def changes(self, make: Callable[..., dict[str, Any]] | None, seconds: int) -> Iterator[str]:
        end = time.monotonic() + seconds
        version = 0
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 1 / CHANGES_PER_SECOND if make else left))
            version += 1
            if make:
                yield json.dumps({"type": "MODIFIED", "object": make(version * 7919, version)}) + "\n"


def serve(nodes: int, pods: int) -> None:
    """Serve until this process is ended; the address is the first line that it prints."""
    Cluster.nodes, Cluster.pods = nodes, pods
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    tell(f"http://127.0.0.1:{server.server_port}")
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["follow"]:
        follow(sys.argv[2])
    else:
        main(*(int(size) for size in sys.argv[1:] or ("5000", "20000")))
