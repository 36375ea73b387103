"""A steady stream of creates of members, each a dry run, and what became of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import urllib3

from certs.trial import trial_pod
from e2e.api import Api, ApiError
from e2e.objects import Object

DECISION = "tidb-ha-webhook.io/decision"


def member(namespace: str = "default") -> Object:
    """A member's pod of a set that does not exist: the webhook answers with the guard, and writes nothing."""
    pod = trial_pod()
    return {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}


@dataclass
class Tally:
    """What became of the calls. `undecided`: admitted without the webhook."""

    calls: int = 0
    decided: int = 0
    undecided: int = 0
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.decided} decided, {self.undecided} undecided, {len(self.failures)} failed"


@contextmanager
def steady_load(api: Api, pod: Object, *, per_second: float = 20, threads: int = 8) -> Iterator[Tally]:
    """Create the pod again and again while the block runs."""
    tally, ended = Tally(), threading.Event()
    pause = threads / per_second

    def create() -> None:
        while not ended.is_set():
            begun = time.monotonic()
            failure, decided = "", False
            try:
                found = api.create(pod, dryRun="All")
                decided = DECISION in found["metadata"].get("annotations", {})
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                failure = str(error)
            with tally.lock:
                tally.calls += 1
                tally.decided += decided
                tally.undecided += not decided and not failure
                if failure:
                    tally.failures.append(failure)
            ended.wait(max(0.0, pause - (time.monotonic() - begun)))

    workers = [threading.Thread(target=create, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield tally
    finally:
        ended.set()
        for worker in workers:
            worker.join()
