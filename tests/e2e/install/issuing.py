"""cert-manager, as processes of this machine: its controller, its injector, and its webhook."""

from __future__ import annotations

import base64
import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import yaml

from e2e.api import Api, ApiError
from e2e.conftest import define
from e2e.control_plane import ControlPlane, components
from e2e.objects import Object
from e2e.processes import Child, free_port
from e2e.waiting import wait_until

NAMESPACE = "cert-manager"
SERVICE = "cert-manager-webhook"
PROGRAMS = ("controller", "cainjector", "webhook")


def missing() -> str:
    """What is not built, and what to do about it; empty when all is there."""
    names = [each for each in PROGRAMS if not os.access(components.BUILT / f"cert-manager-{each}", os.X_OK)]
    return f"no cert-manager {', '.join(names)}: run `tests/e2e/install/cert_manager/build.sh` first" if names else ""


class CertManager:
    """Runs for the length of a `with` block; its kinds stay."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self._api = Api(plane.url, plane.token, plane.files.ca)
        self._port, health = free_port(), free_port()
        access = [f"--kubeconfig={plane.kubeconfig}"]
        alone = [*access, "--leader-elect=false"]
        flags = {
            "controller": [*alone, f"--metrics-listen-address=127.0.0.1:{free_port()}"],
            "cainjector": alone,
            "webhook": [
                *access,
                f"--secure-port={self._port}",
                f"--healthz-port={health}",
                f"--dynamic-serving-ca-secret-namespace={NAMESPACE}",
                f"--dynamic-serving-ca-secret-name={SERVICE}-ca",
                f"--dynamic-serving-dns-names={SERVICE},{SERVICE}.{NAMESPACE},{SERVICE}.{NAMESPACE}.svc",
            ],
        }
        self.children = [
            Child(
                f"cert-manager-{name}",
                [components.BUILT / f"cert-manager-{name}", *flags[name]],
                directory / f"{name}.log",
                # The webhook asks for its own namespace.
                {"POD_NAMESPACE": NAMESPACE},
            )
            for name in PROGRAMS
        ]
        self._stack = ExitStack()

    def __enter__(self) -> CertManager:
        with ExitStack() as started:
            started.callback(self._api.close)
            self._prepare()
            for kind in ("Mutating", "Validating"):
                path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
                started.callback(self._api.request, "DELETE", f"{path}/{SERVICE}")
                self._api.request("POST", path, self._configuration(kind))
            for child in self.children:
                started.callback(child.kill)
                child.start()
            wait_until(self._issues, "cert-manager to take an issuer", 90)
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def authority(self, namespace: str, secret: str) -> bytes:
        """The CA of a certificate that was issued, PEM."""
        return base64.b64decode(self._api.get("Secret", secret, namespace)["data"]["ca.crt"])

    def _prepare(self) -> None:
        kinds = sorted((components.BUILT / "cert-manager-kinds").glob("*.yaml"))
        define(self._api, *(yaml.safe_load(kind.read_text()) for kind in kinds))
        if self._api.find("Namespace", NAMESPACE) is None:
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            spec = {"type": "ExternalName", "externalName": "localhost"}
            metadata = {"name": SERVICE, "namespace": NAMESPACE}
            self._api.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})

    def _configuration(self, kind: str) -> Object:
        """As its own chart has it; the bundle is its injector's affair."""
        service = {"name": SERVICE, "namespace": NAMESPACE, "port": self._port}
        path = "/mutate" if kind == "Mutating" else "/validate"
        entry = {
            "name": "webhook.cert-manager.io",
            "rules": [
                {
                    "apiGroups": ["cert-manager.io", "acme.cert-manager.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["*/*"],
                }
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {**service, "path": path}},
        }
        annotations = {"cert-manager.io/inject-ca-from-secret": f"{NAMESPACE}/{SERVICE}-ca"}
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": SERVICE, "annotations": annotations},
            "webhooks": [entry],
        }

    def _issues(self) -> bool:
        issuer = {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": "probe"},
            "spec": {"selfSigned": {}},
        }
        path = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/issuers"
        try:
            self._api.request("POST", path, issuer, query={"dryRun": "All"})
        except ApiError:
            return False
        return True
