"""One release of the chart on the control plane, whose Service leads to the processes of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.balancer import Balancer
from e2e.install.helm import CHART, Helm
from e2e.install.kubelet import Kubelet
from e2e.objects import Object
from e2e.processes import free_port
from e2e.waiting import wait_until

NOWHERE = {"e2e/kubelet": "of-this-test"}


class Release:
    """`helm install`, `upgrade` and `uninstall` of one name in one namespace."""

    def __init__(self, plane: ControlPlane, api: Api, helm: Helm, namespace: str, directory: Path, name: str = "rel"):
        self.api = api
        self.helm = helm
        self.name = name
        self.service = name
        self.namespace = namespace
        self.kubelet = Kubelet(plane, namespace, directory)
        self.port, self.probe_port = free_port(), free_port()
        self._balancers: list[Balancer] = []
        self.values: dict[str, Any] = {
            "fullnameOverride": name,
            "nodeSelector": NOWHERE,
            # The API server dials the port that the configuration names, whatever the Service maps it to.
            "webhook": {"port": self.port, "servicePort": self.port, "drainSeconds": 2, "logFormat": "text"},
            "certificates": {"selfManaged": {"probePort": self.probe_port, "settleSeconds": 3, "intervalSeconds": 0.5}},
            "cleanup": {"quietSeconds": 4},
            # Its pods are not what most tests are about; those that are turn it on.
            "controller": {"enabled": False},
            "test": {"namespace": "default"},
        }

    @property
    def cluster_name(self) -> str:
        """The name of the objects without a namespace."""
        return f"{self.service}.{self.namespace}"

    def start(self) -> None:
        """Run the pods that will come, and open the addresses of the Service."""
        self.kubelet.start()
        for port in (self.port, self.probe_port):
            self._balancers.append(Balancer(port, lambda port=port: self.kubelet.backends(port)))

    def stop(self) -> None:
        """End all processes."""
        for balancer in self._balancers:
            balancer.stop()
        self.kubelet.stop()

    def install(self, **values: Any) -> str:
        """`helm install`, then the swap of the Service."""
        said = self.helm.run("install", self.name, CHART, "-n", self.namespace, values=merged(self.values, values))
        self.swap_service()
        return said

    def upgrade(self, helm: Helm | None = None, **values: Any) -> str:
        """`helm upgrade`, with this or another Helm."""
        arguments = ("upgrade", self.name, CHART, "-n", self.namespace)
        said = (helm or self.helm).run(*arguments, values=merged(self.values, values))
        self.swap_service()
        return said

    def uninstall(self, helm: Helm | None = None) -> str:
        """`helm uninstall`, with its hooks."""
        return (helm or self.helm).run("uninstall", self.name, "-n", self.namespace, "--timeout=120s")

    def swap_service(self) -> None:
        """Make the Service an ExternalName of this machine; nothing else of the chart is touched."""
        spec = {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}
        self.api.patch("Service", self.service, {"spec": spec}, self.namespace)

    def configuration(self) -> Object | None:
        """The MutatingWebhookConfiguration."""
        return self.api.find("MutatingWebhookConfiguration", self.cluster_name)

    def bundles(self) -> list[str]:
        """Each entry's bundle, base64; "" where there is none."""
        found = self.configuration() or {"webhooks": []}
        return [entry["clientConfig"].get("caBundle", "") for entry in found["webhooks"]]

    def wait_called(self, pod: Object, timeout: float = 60) -> Object:
        """Wait until a pod, created as a dry run, comes back with a decision."""

        def tried() -> Object | None:
            with contextlib.suppress(Exception):
                found = self.api.create(pod, dryRun="All")
                if "tidb-ha-webhook.io/decision" in found["metadata"].get("annotations", {}):
                    return found
            return None

        return wait_until(tried, "the webhook to be called", timeout)


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Values laid over values, as Helm does it."""
    result = dict(base)
    for key, value in more.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


@contextlib.contextmanager
def running_release(release: Release) -> Iterator[Release]:
    """A release whose processes end with the block, and whose objects are gone then."""
    release.start()
    try:
        yield release
    finally:
        with contextlib.suppress(Exception):
            release.helm.run("uninstall", release.name, "-n", release.namespace, "--no-hooks")
        for kind in ("MutatingWebhookConfiguration",):
            release.api.delete(kind, release.cluster_name, missing_ok=True)
        release.stop()
