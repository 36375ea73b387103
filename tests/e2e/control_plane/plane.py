"""The control plane's life: start, readiness, breaking it on purpose, end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import trustme
import urllib3
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.control_plane import components
from e2e.processes import Child, free_port

START_TIMEOUT = 120.0
# Memory is there, processors are few: with small heaps Go collects its garbage all the time.
_ENVIRONMENT = {"GOGC": "400"}


def missing_binaries() -> str:
    """Which binaries are missing and what to do about it; empty when all are there."""
    missing = [name for name in components.BINARIES if not os.access(components.binary(name), os.X_OK)]
    return f"no {', '.join(missing)}: run `make control-plane` first" if missing else ""


class ControlPlane:
    """etcd, one or two API servers, controller manager, scheduler and kwok on free loopback ports.

    A context manager: when it is left every child has ended, and its directory is gone unless `directory`
    was given.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        apiservers: int = 1,
        apiserver_flags: Sequence[str] = (),
        controller_manager_flags: Sequence[str] = (),
        scheduler_flags: Sequence[str] = (),
    ) -> None:
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="control-plane-"))
        self.files = components.Files(self.directory)
        self.ca = trustme.CA()
        self.token = secrets.token_hex(16)
        self._http = urllib3.PoolManager(retries=False, ca_certs=str(self.files.ca), timeout=5.0)
        self._write_files()

        etcd_port = free_port()
        self.etcd = self._child("etcd", components.etcd(self.files, etcd_port, free_port()))
        self._etcd_url = f"http://127.0.0.1:{etcd_port}"
        ports = [free_port() for _ in range(apiservers)]
        self.urls = [f"https://127.0.0.1:{port}" for port in ports]
        self.apiservers = [
            self._child(f"kube-apiserver-{i}", components.kube_apiserver(self.files, port, etcd_port), apiserver_flags)
            for i, port in enumerate(ports)
        ]
        self._controllers_port, self._scheduler_port, self._kwok_port = free_port(), free_port(), free_port()
        self.controller_manager = self._child(
            "kube-controller-manager",
            components.kube_controller_manager(self.files, self._controllers_port),
            controller_manager_flags,
        )
        self.scheduler = self._child(
            "kube-scheduler", components.kube_scheduler(self.files, self._scheduler_port), scheduler_flags
        )
        self.kwok = self._child("kwok", components.kwok(self.files, self._kwok_port))
        self.write_kubeconfig(self.kubeconfig, self.url)

    @property
    def children(self) -> list[Child]:
        """Every component, in the order in which they end: clients first."""
        return [self.kwok, self.scheduler, self.controller_manager, *self.apiservers, self.etcd]

    @property
    def url(self) -> str:
        """The first API server."""
        return self.urls[0]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig for the first API server."""
        return self.files.kubeconfig

    def __enter__(self) -> ControlPlane:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and wait until everything is ready."""
        if problem := missing_binaries():
            raise FileNotFoundError(problem)
        # For a caller that uses neither `with` nor `stop`; if he is killed, the children end by themselves.
        atexit.register(self.stop)
        self.etcd.start()
        self.etcd.wait_ready(lambda: self._ok(f"{self._etcd_url}/health"), START_TIMEOUT)
        for index in range(len(self.apiservers)):
            self.start_apiserver(index)
        self.controller_manager.start()
        self.kwok.start()
        self.start_scheduler()
        self.controller_manager.wait_ready(
            lambda: self._ok(f"https://127.0.0.1:{self._controllers_port}/healthz"), START_TIMEOUT
        )
        self.kwok.wait_ready(lambda: self._ok(f"http://127.0.0.1:{self._kwok_port}/healthz"), START_TIMEOUT)

    def stop(self) -> None:
        """End every child, clients first, and remove the directory if it is ours."""
        atexit.unregister(self.stop)
        # By force: asked politely, an API server waits a minute for its watches; and there is nothing to save.
        for child in self.children:
            child.kill()
        self._http.clear()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill_apiserver(self, index: int = 0) -> None:
        """`kill -9` an API server."""
        self.apiservers[index].kill()

    def start_apiserver(self, index: int = 0) -> None:
        """Start an API server (again, at its old port) and wait until it is ready."""
        self.apiservers[index].start()
        self.apiservers[index].wait_ready(lambda: self._ok(f"{self.urls[index]}/readyz"), START_TIMEOUT)

    def restart_apiserver(self, index: int = 0) -> None:
        """`kill -9` an API server and start it again."""
        self.kill_apiserver(index)
        self.start_apiserver(index)

    @contextlib.contextmanager
    def etcd_frozen(self) -> Iterator[None]:
        """SIGSTOP etcd within the `with` block: every API call hangs, and may be applied afterwards."""
        self.etcd.freeze()
        try:
            yield
        finally:
            self.etcd.thaw()

    def start_scheduler(self) -> None:
        """Start the scheduler and wait until its caches are filled."""
        self.scheduler.start()
        self.scheduler.wait_ready(lambda: self._ok(f"https://127.0.0.1:{self._scheduler_port}/readyz"), START_TIMEOUT)

    def stop_scheduler(self) -> None:
        """End the scheduler: from now on pods keep waiting for a node."""
        self.scheduler.stop()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; the caller looks at the return code."""
        return subprocess.run(
            [components.binary("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def write_kubeconfig(self, path: Path, server: str, token: str | None = None) -> Path:
        """Write a kubeconfig for any server with a certificate by `ca`; without a token the administrator's."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(self.files.ca)}}],
            "users": [{"name": "e2e", "user": {"token": token or self.token}}],
        }
        # JSON is YAML.
        path.write_text(json.dumps(config, indent=2))
        return path

    def _child(self, name: str, command: components.Command, flags: Sequence[str] = ()) -> Child:
        return Child(name, [*command, *flags], self.files.log(name), _ENVIRONMENT)

    def _ok(self, url: str) -> bool:
        # /readyz and its kin answer anybody.
        try:
            return self._http.request("GET", url).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _write_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ca.cert_pem.write_to_path(str(self.files.ca))
        certificate = self.ca.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
        certificate.private_key_pem.write_to_path(str(self.files.key))
        for blob in certificate.cert_chain_pems:
            blob.write_to_path(str(self.files.certificate), append=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.files.service_account_key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        self.files.tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
