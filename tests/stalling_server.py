"""The real server with the real admission over the embedded cluster, on which the calls for one group do not return.

Run as a program (`python -m stalling_server JSON`) this module is the server; imported it starts one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cluster_objects import a_class, a_node, a_set, claims
from running_server import GUARD, PATIENT, Server

from webhook.cluster.memory import MemoryCluster
from webhook.core import keys
from webhook.logs import configure
from webhook.serving.limits import Limits
from webhook.serving.server import serve
from webhook.settings import LogFormat, Settings
from webhook.wiring import Worker

MEMBERS = 40


class StallingDoor:
    """The embedded cluster; lists of the component tikv's claims wait until they are released."""

    def __init__(self) -> None:
        self._cluster = MemoryCluster(the_cluster())
        self._released = threading.Event()
        self._lock = threading.Lock()
        self.stalled = 0

    def list(self, resource: Any, *, labels: Any = None, **parameters: Any) -> Any:
        if resource.plural == "persistentvolumeclaims" and labels and labels.get(keys.V1_COMPONENT) == "tikv":
            with self._lock:
                self.stalled += 1
            self._released.wait(GUARD)
        return self._cluster.list(resource, labels=labels, **parameters)

    def release(self) -> None:
        self._released.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def the_cluster() -> list[Any]:
    """Three nodes with room for all, and the components tikv and pd of one cluster."""
    return [
        *(a_node(f"n{number}", cpu="64") for number in (1, 2, 3)),
        a_class(),
        a_set("tikv", MEMBERS),
        a_set("pd", 3),
        *claims(MEMBERS, "tikv"),
        *claims(3, "pd"),
    ]


class StallingWorker(Worker):
    """A worker whose health address also tells how many calls stall (`/stalled`), and lets them go (`/release`)."""

    def __init__(self, settings: Settings, door: StallingDoor) -> None:
        super().__init__(settings, door, None)  # type: ignore[arg-type]
        self._stalling = door

    def build_health(self, *checks: Any) -> WSGIApplication:
        usual = super().build_health(*checks)

        def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"] not in ("/stalled", "/release"):
                return usual(environ, start_response)
            if environ["PATH_INFO"] == "/release":
                self._stalling.release()
            body = str(self._stalling.stalled).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]

        return answer


def main() -> int:
    """Serve with the settings in the JSON argument."""
    configure(LogFormat.TEXT)
    settings = Settings(bind="127.0.0.1:0", health_bind="127.0.0.1:0", drain_seconds=0, **json.loads(sys.argv[1]))
    worker = StallingWorker(settings, StallingDoor())
    return serve(settings, worker.build_app, worker.build_health, limits=Limits(**PATIENT))


@contextlib.contextmanager
def stalling(log: Path, **settings: Any) -> Iterator[Server]:
    """A server that is ready, ended afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "stalling_server", json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            process_group=0,
        )
    server = Server(process, log, None)
    try:
        server.wait_ready()
        yield server
    finally:
        server.end()


def waiting(server: Server) -> int:
    """How many reviews wait for the decision of their group's round, by the server's own metric."""
    found = re.search(r"^tidb_ha_webhook_queue_waiting (\S+)$", server.get_health("/metrics")[1], re.MULTILINE)
    return int(float(found[1])) if found else 0


def stalled(server: Server) -> int:
    """How many calls for the stalled group have come to the API server."""
    return int(server.get_health("/stalled")[1])


if __name__ == "__main__":
    sys.exit(main())
