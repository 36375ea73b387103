"""The command line of each component, as a function of where its files and ports are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
BUILT = FOLDER / "bin"
BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")

Command = list[str | Path]


def binary(name: str) -> Path:
    """The binary of KUBEBUILDER_ASSETS if that has it, else that of `build.sh`, which has the same rule."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    # kwok is always ours, because it belongs with the stages that came with it.
    if assets and name != "kwok" and os.access(Path(assets) / name, os.X_OK):
        return Path(assets) / name
    return BUILT / name


@dataclass(frozen=True)
class Files:
    """Everything the components read, below one temporary directory."""

    directory: Path

    @property
    def ca(self) -> Path:
        """The certificate that signs every server certificate here."""
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        """The one server certificate that the components share."""
        return self.directory / "server.crt"

    @property
    def key(self) -> Path:
        """The key of `certificate`."""
        return self.directory / "server.key"

    @property
    def service_account_key(self) -> Path:
        """The RSA key that signs and verifies service account tokens."""
        return self.directory / "service-account.key"

    @property
    def tokens(self) -> Path:
        """The API server's static tokens."""
        return self.directory / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for the first API server."""
        return self.directory / "kubeconfig"

    def log(self, name: str) -> Path:
        """Where a component's output goes."""
        return self.directory / f"{name}.log"


def etcd(files: Files, client_port: int, peer_port: int) -> Command:
    """One member, without fsync: nobody needs its data after a power cut."""
    peers = f"http://127.0.0.1:{peer_port}"
    clients = f"http://127.0.0.1:{client_port}"
    return [
        binary("etcd"),
        "--name=default",
        f"--data-dir={files.directory / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def kube_apiserver(files: Files, port: int, etcd_port: int) -> Command:
    """RBAC, one static administrator token, service account tokens signed by our key."""
    return [
        binary("kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        # Only written into an Endpoints object. Named, because the default is looked up from the machine's
        # routes, and a machine without a network has none. (192.0.2.0/24 is reserved for documentation.)
        "--advertise-address=192.0.2.1",
        f"--secure-port={port}",
        f"--tls-cert-file={files.certificate}",
        f"--tls-private-key-file={files.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/24",
    ]


def _serving(files: Files, port: int) -> Command:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={files.certificate}",
        f"--tls-private-key-file={files.key}",
    ]


def kube_controller_manager(files: Files, port: int) -> Command:
    """Without leader election: there is one, and a lease would outlive a killed one."""
    return [
        binary("kube-controller-manager"),
        f"--kubeconfig={files.kubeconfig}",
        "--leader-elect=false",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.ca}",
        *_serving(files, port),
    ]


def kube_scheduler(files: Files, port: int) -> Command:
    """The default profile, without leader election."""
    return [
        binary("kube-scheduler"),
        f"--kubeconfig={files.kubeconfig}",
        "--leader-elect=false",
        *_serving(files, port),
    ]


def kwok(files: Files, port: int) -> Command:
    """Plays the kubelet of every node: leases, pods Running, pods gone."""
    stages = sorted((BUILT / "kwok-stages").rglob("*.yaml"))
    return [
        binary("kwok"),
        f"--kubeconfig={files.kubeconfig}",
        *(f"--config={stage}" for stage in stages),
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{port}",
    ]
