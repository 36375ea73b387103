"""The webhook as real processes with real TLS behind a balancer, registered with the API server."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import urllib3

from e2e import chart, objects
from e2e.api import Api, ApiError
from e2e.balancer import Balancer
from e2e.chart import SWITCH as SWITCH
from e2e.control_plane import ControlPlane
from e2e.fault_proxy import FaultProxy
from e2e.objects import Object
from e2e.processes import Child, free_port
from e2e.waiting import wait_until

SERVICE = "hook"
READY_TIMEOUT = 60.0


class Replica:
    """One process of `tidb-ha-webhook serve`; `proxy` is what stands between it and the API server, if anything."""

    def __init__(self, child: Child, port: int, health_port: int, proxy: FaultProxy | None) -> None:
        self.child = child
        self.port = port
        self.health_port = health_port
        self.proxy = proxy
        self._http = urllib3.PoolManager(retries=False, timeout=2.0, maxsize=4)

    def start(self, *, wait: bool = True) -> None:
        """Start it (again), and wait until it says that it is ready."""
        self.child.start()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it says that it is ready."""
        self.child.wait_ready(self.ready, READY_TIMEOUT)

    def ready(self) -> bool:
        """Whether `/readyz` says so."""
        try:
            return self._http.request("GET", f"http://127.0.0.1:{self.health_port}/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def metrics(self) -> dict[str, float]:
        """`/metrics`: a sample's name with its labels, and its value."""
        answer = self._http.request("GET", f"http://127.0.0.1:{self.health_port}/metrics")
        lines = (line.rpartition(" ") for line in answer.data.decode().splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def memory(self) -> int:
        """Resident memory in bytes, of the master and its workers."""
        pages = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.child.pid:
                pages += int(fields[21])
        return pages * 4096


class Webhook:
    """1 to 3 replicas behind one address. A context manager: nothing of it is left when it ends.

    They have all rights, or with `chart_rights` those that the chart gives. `proxied` puts a fault proxy between
    each replica and its API server. `servers` are the URLs of the API servers that the replicas use in turn, the
    first one by default.
    """

    def __init__(
        self,
        plane: ControlPlane,
        directory: Path,
        *,
        replicas: int = 1,
        proxied: bool = False,
        servers: Sequence[str] = (),
        flags: Sequence[str] = (),
        chart_rights: bool = False,
        service: tuple[str, str],
    ) -> None:
        self.service = service
        self._chart_rights = chart_rights
        self._plane = plane
        self._directory = directory
        self._stack = ExitStack()
        self._flags = flags
        directory.mkdir(parents=True, exist_ok=True)
        self._write_certificate()
        urls = list(servers) or [plane.url]
        self._servers = [urls[i % len(urls)] for i in range(replicas)]
        self.replicas = [self._replica(i, url, proxied) for i, url in enumerate(self._servers)]
        self.balancer = Balancer(self.replicas)

    def __enter__(self) -> Webhook:
        token = chart.granted(self._plane, self.service) if self._chart_rights else ""
        with ExitStack() as started:
            for index, (replica, server) in enumerate(zip(self.replicas, self._servers, strict=True)):
                url = replica.proxy.url if replica.proxy else server
                self._plane.write_kubeconfig(self._kubeconfig(index), url, token or None)
                if replica.proxy is not None:
                    started.enter_context(replica.proxy)
                started.callback(replica.child.kill)
                replica.start(wait=False)
            for replica in self.replicas:
                replica.wait_ready()
            started.enter_context(self.balancer)
            wait_until(lambda: self.balancer.in_service() == len(self.replicas), "the balancer to find them", 10)
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The balancer goes first: its probes ask processes that are about to end.
        self._stack.close()

    @property
    def proxies(self) -> list[FaultProxy]:
        """The fault proxies, one per replica."""
        return [replica.proxy for replica in self.replicas if replica.proxy is not None]

    def configuration(self, name: str, *, failure_policy: str = "Ignore", **fields: object) -> Object:
        """The chart's MutatingWebhookConfiguration, for the namespaces whose label `SWITCH` is `name`.

        `fields` replace those of its entries.
        """
        (manifest,) = chart.rendered(self.service, "MutatingWebhookConfiguration")
        manifest = chart.switched(manifest, name)
        for entry in manifest["webhooks"]:
            entry["clientConfig"]["caBundle"] = base64.b64encode(self._plane.ca.cert_pem.bytes()).decode()
            entry["clientConfig"]["service"]["port"] = self.balancer.port
            entry |= {"failurePolicy": failure_policy, **fields}
        return manifest

    def logs(self, count: int = 30) -> str:
        """The ends of all logs, for messages."""
        return "\n".join(replica.child.last_lines(count) for replica in self.replicas)

    def decisions(self) -> Counter[str]:
        """How many reviews all replicas answered, by outcome and cause (`guarded NoSafeNode`)."""
        found: Counter[str] = Counter()
        for replica in self.replicas:
            for name, value in replica.metrics().items():
                if name.startswith("tidb_ha_webhook_reviews_total{"):
                    labels = dict(re.findall(r'(\w+)="([^"]*)"', name))
                    found[f"{labels['outcome']} {labels['cause']}".strip()] += int(value)
        return found

    def _replica(self, index: int, server: str, proxied: bool) -> Replica:
        proxy = FaultProxy(server, self._plane.ca) if proxied else None
        port, health_port = free_port(), free_port()
        command = [
            os.environ.get("E2E_WEBHOOK") or Path(sys.executable).parent / "tidb-ha-webhook",
            "serve",
            f"--kubeconfig={self._kubeconfig(index)}",
            f"--bind=127.0.0.1:{port}",
            f"--health-bind=127.0.0.1:{health_port}",
            f"--tls-cert={self._directory / 'tls.crt'}",
            f"--tls-key={self._directory / 'tls.key'}",
            "--log-format=text",
            *self._flags,
        ]
        child = Child(f"webhook-{index}", command, self._directory / f"webhook-{index}.log")
        return Replica(child, port, health_port, proxy)

    def _kubeconfig(self, index: int) -> Path:
        return self._directory / f"kubeconfig-{index}"

    def _write_certificate(self) -> None:
        namespace, service = self.service
        certificate = self._plane.ca.issue_cert(f"{service}.{namespace}.svc")
        key = self._directory / "tls.key"
        key.touch(mode=0o600)
        certificate.private_key_pem.write_to_path(str(key))
        chain = self._directory / "tls.crt"
        chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))


def wait_until_called(api: Api, namespace: str) -> None:
    """Wait until the API server sends this namespace's members to a webhook that answers.

    It learns of a new configuration, and of a namespace's labels, after a moment.
    """
    probe = probe_member(namespace)
    wait_until(lambda: _decision_of_a_dry_run(api, probe), f"the webhook to be called for {namespace}", 30)


def probe_member(namespace: str) -> Object:
    """A member for dry runs, without claims and of a set that is not there: the webhook answers it with the guard."""
    containers = [objects.container("probe", cpu="1m", memory="1Mi")]
    manifest = objects.stateful_set(namespace, cluster="probe", pod_spec={"containers": containers})
    return objects.member_pod(manifest, 0, uid="probe", volumes=[])


def _decision_of_a_dry_run(api: Api, pod: Object) -> bool:
    try:
        return objects.DECISION in api.create(pod, dryRun="All")["metadata"].get("annotations", {})
    except ApiError as error:
        if error.status < 500:
            raise
        return False


def tally(pods: Sequence[Object]) -> Counter[str]:
    """How many pods got what, from their own decision records: `pinned`, `guarded NoSafeNode`, `nothing`."""
    return Counter(outcome_of(pod) for pod in pods)


def outcome_of(pod: Object) -> str:
    """What one pod got, and why it got no pin."""
    record = record_of(pod)
    return f"{record['outcome']} {record.get('cause', '')}".strip() if record else "nothing"


def record_of(pod: Object) -> Object:
    """The decision record, empty if the pod has none."""
    annotation = pod["metadata"].get("annotations", {}).get(objects.DECISION)
    record: Object = json.loads(annotation) if annotation else {}
    return record
