"""The real tidb-operator v1; PD and the status ports of TiKV are faked from the live pods."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from e2e.api import Api, Objects
from e2e.control_plane import ControlPlane
from e2e.control_plane.components import BUILT
from e2e.objects import LOCAL_STORAGE, Object
from e2e.place import is_ready, labels_of
from e2e.processes import Child

PD_PORT = 12379
"""What `build.sh` links the operator with."""

STATUS_PORT = 20180
OWN_PORT = 6060
"""The operator listens there on all addresses, and cannot be told otherwise."""

# Who is not root becomes it in a user namespace.
UNSHARE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "--"]

BINARY = BUILT / "tidb-controller-manager"


def why_not() -> str:
    """Why the operator cannot run here, "" if it can."""
    if not os.access(BINARY, os.X_OK):
        return "no tidb-controller-manager: run `make control-plane`"
    refused = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if refused.returncode:
        return f"its names need a mount namespace: {refused.stderr.strip()}"
    for port in (PD_PORT, STATUS_PORT, OWN_PORT):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return f"port {port} is taken"
    return ""


def kinds() -> Iterator[Object]:
    """The CustomResourceDefinitions."""
    for path in sorted((BUILT / "tidb-operator-kinds").glob("*.yaml")):
        yield from filter(None, yaml.safe_load_all(path.read_text()))


def tidb_cluster(namespace: str, name: str, *, tikv: int = 3) -> Object:
    """A TidbCluster of 3 PD and some TiKV, as small as it may be."""
    member = {
        "storageClassName": LOCAL_STORAGE,
        "requests": {"storage": "100Gi", "cpu": "100m", "memory": "256Mi"},
        "maxFailoverCount": 0,
        "config": "",
    }
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "version": "v8.5.0",
            "pvReclaimPolicy": "Retain",
            "discovery": {},
            "pd": {**member, "baseImage": "example.invalid/pd", "replicas": 3},
            "tikv": {**member, "baseImage": "example.invalid/tikv", "replicas": tikv, "evictLeaderTimeout": "10s"},
        },
    }


class FakePd:
    """PD's HTTP interface as far as the operator asks, answered from the pods of one cluster."""

    def __init__(self, api: Api, namespace: str, cluster: str) -> None:
        self._api, self._namespace, self._cluster = api, namespace, cluster

    def answer(self, path: str) -> tuple[int, Any]:
        """Status and body of a GET."""
        members = self._running("pd")
        if not members:
            return 503, {}
        path = path.partition("?")[0].removeprefix("/pd/api/v1/").removeprefix("/")
        match path:
            case "health":
                return 200, [{**self._member(pod), "health": True} for pod in members]
            case "members":
                return 200, {"members": [self._member(pod) for pod in members], "leader": self._member(members[0])}
            case "cluster":
                return 200, {"id": 7}
            case "leader":
                return 200, self._member(members[0])
            case "stores":
                stores = self._stores()
                return 200, {"count": len(stores), "stores": stores}
            case "config":
                return 200, {"replication": {"max-replicas": 3, "location-labels": ""}}
            case "schedulers":
                return 200, []
            case _:
                return 200, {}

    def _running(self, component: str) -> Objects:
        pods = self._api.list("Pod", self._namespace, labels=labels_of(self._cluster, component))
        return [pod for pod in pods if is_ready(pod)]

    def _member(self, pod: Object) -> Object:
        name = pod["metadata"]["name"]
        ordinal = int(name.rpartition("-")[2])
        url = f"http://{name}.{self._cluster}-pd-peer.{self._namespace}.svc:2379"
        return {"name": name, "member_id": 100 + ordinal, "client_urls": [url]}

    def _stores(self) -> list[Object]:
        return [
            {
                "store": {
                    "id": 200 + int(pod["metadata"]["name"].rpartition("-")[2]),
                    "address": f"{pod['metadata']['name']}.{self._cluster}-tikv-peer.{self._namespace}.svc:20160",
                    "state_name": "Up",
                    "version": "8.5.0",
                },
                "status": {"leader_count": 0, "region_count": 1, "capacity": "10GiB", "available": "9GiB"},
            }
            for pod in self._running("tikv")
        ]


@contextmanager
def served(port: int, answer: Any) -> Iterator[None]:
    """A plain HTTP server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = answer(self.path)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            head = f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            self.wfile.write(head.encode() + data)

        do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running(plane: ControlPlane, api: Api, directory: Path, namespace: str, cluster: str) -> Iterator[Child]:
    """The operator for one cluster; it resolves the names of PD and TiKV by a hosts file of its own."""
    names = [f"{cluster}-pd.{namespace}"]
    names += [f"{cluster}-tikv-{i}.{cluster}-tikv-peer.{namespace}" for i in range(10)]
    hosts = directory / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {name} {name}.svc\n" for name in names))
    flags = "--cluster-scoped=true --auto-failover=false --workers=5 --kube-client-qps=100 --kube-client-burst=200"
    script = f"mount --bind {hosts} /etc/hosts && exec {BINARY} {flags} --leader-resource-lock=leases -v=2"
    child = Child(
        "tidb-operator",
        [*UNSHARE, "sh", "-c", script],
        directory / "tidb-operator.log",
        {"NAMESPACE": namespace, "KUBECONFIG": str(plane.kubeconfig)},
    )
    no_leaders = 'tikv_raftstore_region_count{type="leader"} 0\n'
    with (
        served(PD_PORT, FakePd(api, namespace, cluster).answer),
        served(STATUS_PORT, lambda path: (200, no_leaders)),
    ):
        child.start()
        try:
            yield child
        finally:
            child.kill()
