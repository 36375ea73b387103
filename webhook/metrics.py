"""The metrics of one process, or of several that share a directory.

One worker process keeps its figures in memory. Several keep them in files of one directory, so that each
can answer for all. prometheus_client names such a file after the process, so that every worker that dies
leaves one behind for good; here it is named after a *slot*, which a new worker takes over, figures and all.
A slot is held by a file lock, which the kernel gives back however the worker ends.

Labels have few values: outcomes and causes are enumerations, components are those of the member list.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

from webhook.audit_metrics import AuditCollector, AuditFigures
from webhook.core.groups import MEMBER_CLASSES
from webhook.core.outcomes import Cause, Outcome
from webhook.errors import SettingsError

PREFIX: Final = "tidb_ha_webhook"
# Every Prometheus, old or new, reads this version of the text format.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Where prometheus_client keeps the files of several processes.
DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
# Seconds: an untouched pod takes under 1 ms, a member tens of ms, and a webhook's time-out is 30 s at most.
DURATIONS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ROUNDS: Final = (1, 2, 3, 4, 6, 8, 12, 16)


class Metrics:
    """The figures, and what each event does to them. Made after the fork, once per process.

    `directory` is the one that the workers share (`shared_directory`), None for a single process.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._registry = CollectorRegistry()
        if directory is None:
            _keep_in_memory()
            ProcessCollector(registry=self._registry)
        else:
            _keep_in_slot(directory)
        self._reviews = self._counter(
            "reviews",
            "Reviews answered, by what the pod got, why it got no pin, and the pod's component.",
            ("outcome", "cause", "component"),
        )
        self._durations = self._histogram(
            "review_duration_seconds", "Time from a review's arrival to its answer.", DURATIONS, ("outcome",)
        )
        self._lock_waits = self._histogram(
            "lock_wait_seconds", "Time that a member waited for its decision and the records of it.", DURATIONS
        )
        self._rounds = self._histogram("rounds", "Attempts of the lock protocol that a member's answer took.", ROUNDS)
        self._conflicts = self._counter("conflicts", "Swaps that lost against another writer of the claim.")
        self._unknown_outcomes = self._counter(
            "unknown_outcomes", "Calls without an answer: nobody knows whether a write of theirs was applied."
        )
        self._responses = self._counter(
            "http_responses",
            "Answers of the webhook address by HTTP status; all but 200 are left to the failurePolicy.",
            ("code",),
        )
        self._waiting = self._gauge("queue_waiting", "Reviews that wait for the decision of their group's round.")
        self._rescues = self._counter(
            "rescues",
            "Waiting pods that the controller freed, by how they were held and what came of it.",
            ("kind", "result"),
        )
        self._stuck = self._gauge("stuck_pods", "Pods that wait and that the controller has nothing better for.")
        self._unfreed = self._gauge(
            "unfreed_pods", "Pods that the controller does not free, since the webhook might not be asked about them."
        )
        self._stopped = self._gauge(
            "rescue_stopped", "1 while nobody is freed, since a freed pod came again without a decision."
        )
        self._leading = self._gauge("controller_leading", "1 where the controller is led.")
        self._swept = self._counter("swept_claims", "Claims from which the controller took records that were over.")
        self._audit = AuditCollector(PREFIX)
        # Of several processes only one would have them, and whichever answers for all does not know which.
        self._registry.register(self._audit)
        self._ages = Gauge(
            f"{PREFIX}_inventory_age_seconds",
            "Time since the API server was last heard of each kind that the inventory follows.",
            ("resource",),
            registry=self._registry,
            multiprocess_mode="livemax",
        )

    def reviewed(self, outcome: Outcome, cause: Cause, component: str, seconds: float) -> None:
        """A review was answered `seconds` after it arrived; `component` is "" for a pod of no group."""
        component = component if component in MEMBER_CLASSES else "other"
        self._reviews.labels(outcome.value, cause.value, component).inc()
        self._durations.labels(outcome.value).observe(seconds)

    def decided(self, lock_wait_seconds: float, attempts: int, conflicts: int, unknown: int) -> None:
        """A member's answer was decided after so long; it took so many attempts, of which so many lost their
        swap, and so many calls whose outcome stayed unknown.
        """
        self._lock_waits.observe(lock_wait_seconds)
        self._rounds.observe(attempts)
        self._conflicts.inc(conflicts)
        self._unknown_outcomes.inc(unknown)

    def rescued(self, kind: str, result: str) -> None:
        """The controller freed a pod, of which it held the `kind`; or that came to nothing."""
        self._rescues.labels(kind, result).inc()

    def stuck(self, number: int) -> None:
        """So many pods wait, and the controller has nothing better for them."""
        self._stuck.set(number)

    def unfreed(self, number: int) -> None:
        """So many pods are not freed, since the webhook might not be asked about them."""
        self._unfreed.set(number)

    def stopped(self, stopped: bool) -> None:
        """Whether nobody is freed, since a freed pod came again without a decision."""
        self._stopped.set(stopped)

    def leads(self, leading: bool) -> None:
        """Whether this process leads the controller."""
        self._leading.set(leading)

    def audited(self, figures: AuditFigures | None) -> None:
        """The controller's last audit found this; None: somebody else audits now."""
        self._audit.figures = figures

    def swept(self, claims: int) -> None:
        """The controller took what was over from so many claims."""
        self._swept.inc(claims)

    def inventory(self, ages: Mapping[str, float]) -> None:
        """For so long (s) nothing has been heard of each kind that the inventory follows."""
        for resource, age in ages.items():
            self._ages.labels(resource).set(age)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count one more waiting review while the block runs."""
        with self._waiting.track_inprogress():
            yield

    def responded(self, code: int) -> None:
        """The webhook address answered with this HTTP status."""
        self._responses.labels(str(code)).inc()

    def exposition(self) -> bytes:
        """All figures in Prometheus' text format; of several processes, those of all of them."""
        if self._directory is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._directory))  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, registry=self._registry, multiprocess_mode="livesum")

    def _histogram(self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, labels, buckets=buckets, registry=self._registry)


@contextmanager
def shared_directory(workers: int, parent: Path | None = None) -> Iterator[Path | None]:
    """The directory that several worker processes share, made before they are; None for a single one.

    It is made in `parent`, by default the machine's place for temporary files. It goes when the block ends
    in the process that began it: a forked worker leaves the block too, when it exits. Raises `SettingsError`
    where no directory can be made.
    """
    if workers < 2:
        yield None
        return
    owner = os.getpid()
    try:
        directory = Path(tempfile.mkdtemp(prefix="tidb-ha-webhook-metrics-", dir=parent))
    except OSError as error:
        raise SettingsError(
            f"--workers {workers}: several processes share their metrics in a temporary directory, and none "
            f"can be made ({error.strerror}); mount one at /tmp or name one by TMPDIR"
        ) from error
    try:
        yield directory
    finally:
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)


def _keep_in_memory() -> None:
    """Figures of this process alone, also where the variable of shared files is set by somebody else."""
    values.ValueClass = values.MutexValue


def _keep_in_slot(directory: Path) -> None:
    """Figures in files of a free slot of the directory, which this process holds until it ends.

    Counters go on from where the slot's last holder left them; gauges, which tell of living processes,
    start anew.
    """
    number = next(number for number in count() if _lock(directory / f"{number}.lock"))
    for leftover in directory.glob(f"gauge_live*_{number}.db"):
        leftover.unlink(missing_ok=True)
    os.environ[DIRECTORY_VARIABLE] = str(directory)
    # The library's own way to name the files after something other than the process, as its uWSGI users do.
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]


def _lock(path: Path) -> bool:
    """Lock the file for as long as this process lives; whether that worked, for another may hold it."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    return True  # never closed: closing it would give the lock back
