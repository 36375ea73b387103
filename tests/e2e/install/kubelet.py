"""Plays the kubelet for the pods of one namespace: their containers are processes of this machine.

Pods must not be bound to a node, or kwok takes them: a release is installed with a nodeSelector that no node
has, and the pods' status is written from here. What a container is, is read from the pod as the API server
holds it; only ports are changed, since all pods share this machine's.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.install.pod import RunningPod
from e2e.objects import Object
from e2e.waiting import wait_until

_INTERVAL = 0.2


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
        self.first_is_late_by: float = 0
        self._ended = threading.Event()
        self._hurry = threading.Event()
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
        self._hurry.set()
        for thread in self._threads:
            thread.join()
        self._api.close()

    def all_ended(self) -> bool:
        """Whether no process of any pod runs, also of pods that are gone from the API server."""
        return not self.pods and not self.busy()

    def busy(self) -> bool:
        """Whether a pod is starting, or stopping: one that the API server has no more may answer still."""
        return any(thread.is_alive() for thread in self._threads)

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
            raise TimeoutError("\n".join([str(error), *self.logs()])) from None

    def wait_replaced(self, before: Collection[RunningPod], count: int, timeout: float = 180) -> list[RunningPod]:
        """Wait until none of the pods from before is there, and so many ready ones are."""
        old = {pod.name for pod in before}
        try:
            wait_until(lambda: not old & {pod.name for pod in self.running()}, "the old pods to go", timeout)
        except TimeoutError as error:
            raise TimeoutError("\n".join([str(error), *self.logs()])) from None
        return self.wait_ready(count)

    def logs(self) -> list[str]:
        """What went wrong here, what the probes say, and the ends of all logs."""
        said = self.errors + [f"{pod.name}: {problem}" for pod in self.running() for problem in pod.problems()]
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
                lateness = 0.0 if self.pods else self.first_is_late_by
                running = RunningPod(pod, self._directory / uid, self._plane, self._api, self._new_token, lateness)
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
            self._hurry.wait(self.stopped_after)  # a pod that takes so long to stop is what the test is about
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
