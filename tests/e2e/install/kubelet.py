"""Plays the kubelet for the pods of one namespace: their containers are processes of this machine.

Pods must not be bound to a node, or kwok takes them: a release is installed with a nodeSelector that no node
has, and the pods' status is written from here. What a container is, is read from the pod as the API server
holds it; only ports are changed, since all pods share this machine's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3

from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.processes import Child, free_port
from e2e.waiting import wait_until

_TOKEN_FOLDER = "/run/secrets/kubernetes.io/serviceaccount"
_INTERVAL = 0.2
_ENTRY = Path(__file__).with_name("container.py")
_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


class RunningPod:
    """The processes of one pod."""

    def __init__(self, pod: Object, directory: Path, plane: ControlPlane, api: Api, tokens: Callable[[str, str], str]):
        self.pod = pod
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
        self.stopped = True
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
        self.stopped = True
        for child in self.children.values():
            child.kill()

    def log(self, container: str) -> str:
        """What a container has written."""
        path = self.directory / f"{container}.log"
        return path.read_text() if path.exists() else ""

    def _make_folders(self) -> None:
        for volume in self.pod["spec"].get("volumes", []):
            if "emptyDir" in volume:
                (self.directory / "volumes" / volume["name"]).mkdir(parents=True, exist_ok=True)
            elif "secret" in volume:
                self.write_secret(volume["name"], volume["secret"]["secretName"])
        folder = self.directory / "serviceaccount"
        folder.mkdir(parents=True)
        (folder / "token").write_text(self._token)
        (folder / "namespace").write_text(self.pod["metadata"]["namespace"])
        shutil.copy(self._plane.files.ca, folder / "ca.crt")

    def write_secret(self, volume: str, secret: str) -> None:
        """Put a Secret's content where its volume is."""
        import base64

        folder = self.directory / "volumes" / volume
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self._api.get("Secret", secret, self.pod["metadata"]["namespace"])["data"].items():
            new = folder / f".{name}"
            new.write_bytes(base64.b64decode(text))
            new.replace(folder / name)

    def _start(self, container: Object) -> None:
        spec = {
            "command": [*container["command"], *(self._with_ports(each) for each in container.get("args", []))],
            "environment": self._environment(container),
            "mounts": {
                _TOKEN_FOLDER: str(self.directory / "serviceaccount"),
                **{
                    mount["mountPath"]: str(self.directory / "volumes" / mount["name"])
                    for mount in container.get("volumeMounts", [])
                    if not mount["mountPath"].startswith("/var/run/secrets/")
                },
            },
        }
        path = self.directory / f"{container['name']}.json"
        path.write_text(json.dumps(spec))
        command = ["unshare", "--mount", "--", sys.executable, "-I", "-S", str(_ENTRY), str(path)]
        child = Child(f"{self.name}/{container['name']}", command, self.directory / f"{container['name']}.log")
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
        child = self.children[container["name"]]
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


class Kubelet:
    """Runs every pod of a namespace until it is stopped."""

    def __init__(self, plane: ControlPlane, namespace: str, directory: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        self._directory = directory
        self._api = Api(plane.url, plane.token, plane.files.ca)
        self._lock = threading.Lock()
        self.pods: dict[str, RunningPod] = {}
        self.ready: dict[str, RunningPod] = {}
        self.finished: dict[str, str] = {}
        self.stopped_after: float = 0
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._loop = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []

    def start(self) -> None:
        """Begin."""
        self._loop.start()

    def stop(self) -> None:
        """End every process."""
        self._ended.set()
        self._loop.join()
        for pod in [*self.pods.values()]:
            pod.kill()
        for thread in self._threads:
            thread.join()
        self._api.close()

    def backends(self, port: int) -> list[int]:
        """Where the ready pods listen for this container port."""
        with self._lock:
            return [pod.ports[port] for pod in self.ready.values() if port in pod.ports]

    def running(self, part: str = "") -> list[RunningPod]:
        """The pods whose names have this part."""
        with self._lock:
            return [pod for pod in self.pods.values() if part in pod.name]

    def wait_ready(self, count: int, timeout: float = 90) -> list[RunningPod]:
        """Wait until so many pods are ready, and no other runs."""

        def found() -> list[RunningPod]:
            with self._lock:
                ready, all_of_them = list(self.ready.values()), len(self.pods)
            return ready if len(ready) == count == all_of_them else []

        if count == 0:
            wait_until(lambda: not self.running(), "no pod to run", timeout)
            return []
        try:
            return wait_until(found, f"{count} ready pods in {self._namespace}", timeout)
        except TimeoutError as error:
            raise TimeoutError("\n".join([str(error), *self.errors, *self.logs()])) from None

    def logs(self) -> list[str]:
        """What the probes say, and the ends of all logs."""
        said = [f"{pod.name}: {problem}" for pod in self.running() for problem in pod.problems()]
        return said + [child.last_lines() for pod in self.running() for child in pod.children.values()]

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 # told by whoever waits for a pod
                self.errors.append(repr(error))

    def _look(self) -> None:
        listed = {pod["metadata"]["uid"]: pod for pod in self._api.list("Pod", self._namespace)}
        for uid in set(self.pods) - set(listed):
            with self._lock:
                gone = self.pods.pop(uid)
                self.ready.pop(uid, None)
            self._in_background(lambda pod=gone: self._end(pod))
        for uid, pod in listed.items():
            if (
                uid not in self.pods
                and pod["status"].get("phase") == "Pending"
                and "command" in pod["spec"]["containers"][0]
            ):
                running = RunningPod(pod, self._directory / uid, self._plane, self._api, self._new_token)
                with self._lock:
                    self.pods[uid] = running
                self._in_background(running.start)
        for uid, running in list(self.pods.items()):
            self._judge(uid, running)

    def _judge(self, uid: str, running: RunningPod) -> None:
        if uid in self.finished:
            return
        if running.finished() and running.pod["spec"].get("restartPolicy") == "Never":
            phase = "Succeeded" if running.succeeded() else "Failed"
            self.finished[uid] = "\n".join(running.log(c["name"]) for c in running.mains)
            self._write_status(running, {"phase": phase})
            return
        ready = running.pod["spec"].get("restartPolicy") != "Never" and running.ready()
        if ready != (uid in self.ready):
            with self._lock:
                if ready:
                    self.ready[uid] = running
                else:
                    self.ready.pop(uid, None)
            word = "True" if ready else "False"
            conditions = [{"type": kind, "status": word} for kind in ("Ready", "ContainersReady", "Initialized")]
            self._write_status(running, {"phase": "Running" if ready else "Pending", "conditions": conditions})

    def _write_status(self, running: RunningPod, status: Object) -> None:
        with contextlib.suppress(ApiError):
            self._api.patch("Pod", running.name, {"status": status}, self._namespace, subresource="status")

    def _end(self, pod: RunningPod) -> None:
        if self.stopped_after:
            time.sleep(self.stopped_after)  # a pod that takes so long to stop is what the test is about
        pod.stop()

    def _new_token(self, namespace: str, account: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer: dict[str, Any] = self._api.request("POST", path, request)
        token: str = answer["status"]["token"]
        return token

    def _in_background(self, call: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                call()
            except Exception as error:  # noqa: BLE001 # told by whoever waits for the pod
                self.errors.append(repr(error))

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()
