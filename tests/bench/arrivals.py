"""When each pod of a namespace got its node, as a watcher sees it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import urllib3
from e2e.api import path_of
from e2e.objects import Object
from e2e.place import node_of


class Arrivals:
    """Follows the pods of one namespace within a `with` block; times are this process's `time.monotonic()`."""

    def __init__(self, url: str, token: str, ca: Path, namespace: str) -> None:
        self.pods: dict[str, Object] = {}
        self.seen: dict[str, float] = {}
        """By name: when a pod was first seen with a node."""
        self.listed_again = 0
        """How often the server ended the watch, so that times are those of a list."""
        self._url = url + path_of("Pod", namespace)
        self._http = urllib3.PoolManager(ca_certs=str(ca), headers={"Authorization": f"Bearer {token}"}, retries=False)
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._answer: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._follow, name="arrivals", daemon=True)

    def __enter__(self) -> Arrivals:
        self._version = self._list()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._cut()
        self._thread.join()
        self._http.clear()

    def wait_for(self, done: Callable[[dict[str, Object]], bool], timeout: float) -> bool:
        """Wait until it is done by the pods as they are now, by name; whether it was in time (s)."""
        with self._changed:
            return self._changed.wait_for(lambda: done(self.pods), timeout)

    def _follow(self) -> None:
        while True:
            # A connection that is cut at the end may give some bytes more, as they are on the wire.
            with contextlib.suppress(urllib3.exceptions.HTTPError, ValueError):
                for event in self._events():
                    self._take(event["type"], event["object"])
            if self._over.wait(0.1):
                return
            self.listed_again += 1
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                self._version = self._list()

    def _events(self) -> Iterator[Any]:
        fields = {"watch": "1", "resourceVersion": self._version}
        self._answer = self._http.request("GET", self._url, fields=fields, preload_content=False)
        if self._over.is_set():
            self._cut()
        for line in self._answer:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            yield event

    def _cut(self) -> None:
        # It may have come to its end by itself.
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            if self._answer is not None:
                self._answer.shutdown()

    def _list(self) -> str:
        answer = self._http.request("GET", self._url)
        if answer.status != 200:
            raise urllib3.exceptions.HTTPError(f"{self._url}: {answer.status}")
        found = answer.json()
        names = {pod["metadata"]["name"] for pod in found["items"]}
        for name in [name for name in self.pods if name not in names]:
            self._take("DELETED", self.pods[name])
        for pod in found["items"]:
            self._take("ADDED", pod)
        version: str = found["metadata"]["resourceVersion"]
        return version

    def _take(self, kind: str, pod: Object) -> None:
        now, name = time.monotonic(), pod["metadata"]["name"]
        with self._changed:
            if kind == "DELETED":
                self.pods.pop(name, None)
                self.seen.pop(name, None)
            else:
                self.pods[name] = pod
                if node_of(pod):
                    self.seen.setdefault(name, now)
            self._changed.notify_all()
