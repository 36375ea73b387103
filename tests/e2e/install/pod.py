"""One pod's processes and volumes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import urllib3

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.volumes import FollowingFolder, folder_files, secret_files
from e2e.objects import Object
from e2e.processes import Child, free_port
from e2e.waiting import wait_until

_TOKEN_FOLDER = "/run/secrets/kubernetes.io/serviceaccount"
_ENTRY = Path(__file__).with_name("container.py")
_PROJECT = Path(__file__).resolve().parents[3]
_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


class RunningPod:
    """The processes of one pod; `lateness`: seconds after which files that change reach the server."""

    def __init__(
        self,
        pod: Object,
        directory: Path,
        plane: ControlPlane,
        api: Api,
        tokens: Callable[[str, str], str],
        lateness: float = 0.0,
    ) -> None:
        self.pod = pod
        self.lateness = lateness
        self.name: str = pod["metadata"]["name"]
        self.directory = directory
        self._plane = plane
        self._api = api
        self._token = tokens(pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"])
        self._http = urllib3.PoolManager(retries=False, timeout=2.0)
        spec = pod["spec"]
        self.sidecars = [c for c in spec.get("initContainers", []) if c.get("restartPolicy") == "Always"]
        self.mains = spec["containers"]
        declared = [port["containerPort"] for c in [*self.sidecars, *self.mains] for port in c.get("ports", [])]
        self.ports = {port: free_port() for port in declared}
        self.children: dict[str, Child] = {}
        self.stopped = False
        self._starting = threading.Lock()
        self._following: list[FollowingFolder] = []

    def start(self) -> None:
        """Start the containers in the kubelet's order: each sidecar until it has started, then the others."""
        self._make_folders()
        for container in self.sidecars:
            self._start(container)
            self._wait_started(container)
        for container in self.mains:
            self._start(container)

    def ready(self) -> bool:
        """Whether every container's readiness probe passes now."""
        return not any(self.problems())

    def problems(self) -> list[str]:
        """What the readiness probes say."""
        probed = [c for c in [*self.sidecars, *self.mains] if "readinessProbe" in c]
        return [self._probed(container, "readinessProbe") for container in probed]

    def finished(self) -> bool:
        """Whether the containers have ended by themselves."""
        ended = [self.children[c["name"]].exit_code for c in self.mains if c["name"] in self.children]
        return len(ended) == len(self.mains) and None not in ended

    def succeeded(self) -> bool:
        """Whether they ended with exit code 0."""
        return all(self.children[container["name"]].exit_code == 0 for container in self.mains)

    def stop(self) -> None:
        """End the containers in the kubelet's order, within the pod's grace."""
        self._start_no_more()
        for folder in self._following:
            folder.stop()
        grace = float(self.pod["spec"].get("terminationGracePeriodSeconds", 30))
        for containers in (self.mains, self.sidecars):
            children = [self.children[c["name"]] for c in containers if c["name"] in self.children]
            for child in children:
                # Once, and to the first process alone, as a kubelet does it.
                if child.running:
                    os.kill(child.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                wait_until(lambda of=children: not any(child.running for child in of), "the containers to end", grace)
            for child in children:
                child.kill()

    def kill(self) -> None:
        """`kill -9` every container."""
        self._start_no_more()
        for folder in self._following:
            folder.stop()
        for child in self.children.values():
            child.kill()

    def _start_no_more(self) -> None:
        """What starts after the others were stopped, nobody would stop."""
        with self._starting:
            self.stopped = True

    def log(self, container: str) -> str:
        """What a container has written."""
        path = self.directory / f"{container}.log"
        return path.read_text() if path.exists() else ""

    def _make_folders(self) -> None:
        namespace = self.pod["metadata"]["namespace"]
        for volume in self.pod["spec"].get("volumes", []):
            folder = self._volume(volume["name"])
            folder.mkdir(parents=True, exist_ok=True)
            if "secret" in volume:
                source = secret_files(self._api, namespace, volume["secret"]["secretName"])
                self._follow(FollowingFolder(folder, source, self.lateness))
        folder = self.directory / "serviceaccount"
        folder.mkdir(parents=True)
        (folder / "token").write_text(self._token)
        (folder / "namespace").write_text(namespace)
        shutil.copy(self._plane.files.ca, folder / "ca.crt")

    def _follow(self, folder: FollowingFolder) -> None:
        self._following.append(folder)
        folder.start()

    def _volume(self, name: str) -> Path:
        return self.directory / "volumes" / name

    def _mounted(self, container: Object, name: str) -> str:
        """The folder of a volume as a container sees it; the server of a late pod sees its files late."""
        folder = self._volume(name)
        if not self.lateness or name != "tls" or container not in self.mains or not self.sidecars:
            return str(folder)
        late = folder.with_name(f"{name}-late")
        self._follow(FollowingFolder(late, folder_files(folder, ("tls.crt", "tls.key")), self.lateness))
        return str(late)

    def _start(self, container: Object) -> None:
        spec = {
            "command": [*container["command"], *(self._with_ports(each) for each in container.get("args", []))],
            "environment": self._environment(container),
            "mounts": {
                _TOKEN_FOLDER: str(self.directory / "serviceaccount"),
                **{
                    mount["mountPath"]: self._mounted(container, mount["name"])
                    for mount in container.get("volumeMounts", [])
                    if not mount["mountPath"].startswith("/var/run/secrets/")
                },
            },
        }
        spec["program"] = [sys.prefix, str(_PROJECT)]
        path = self.directory / f"{container['name']}.json"
        path.write_text(json.dumps(spec))
        command = ["unshare", "--mount", "--", sys.executable, "-I", "-S", str(_ENTRY), str(path)]
        child = Child(f"{self.name}/{container['name']}", command, self.directory / f"{container['name']}.log")
        with self._starting:
            if not self.stopped:
                self.children[container["name"]] = child
                child.start()

    def _environment(self, container: Object) -> dict[str, str]:
        host, port = self._plane.url.removeprefix("https://").split(":")
        given = {"PATH": _PATH, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "HOME": "/tmp"}
        for each in container.get("env", []):
            field = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            given[each["name"]] = self.name if field == "metadata.name" else each.get("value", "")
        return given

    def _with_ports(self, argument: str) -> str:
        for declared, real in self.ports.items():
            if argument.endswith((f"=:{declared}", f"-port={declared}")):
                return argument.removesuffix(str(declared)) + str(real)
        return argument

    def _wait_started(self, container: Object) -> None:
        child = self.children.get(container["name"])
        if child is not None:
            child.wait_ready(lambda: self.stopped or self._passes(container, "startupProbe"), 120)

    def _passes(self, container: Object, kind: str) -> bool:
        return self._probed(container, kind) == ""

    def _probed(self, container: Object, kind: str) -> str:
        """Why a probe fails; empty if it passes."""
        probe = container[kind]["httpGet"]
        named = {port["name"]: port["containerPort"] for port in container["ports"]}
        port = self.ports[named.get(probe["port"], probe["port"])]
        try:
            answer = self._http.request("GET", f"http://127.0.0.1:{port}{probe['path']}")
        except urllib3.exceptions.HTTPError as error:
            return f"{container['name']}: {error}"
        return "" if answer.status == 200 else f"{container['name']}: {answer.status} {answer.data.decode()}"
