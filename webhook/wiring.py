"""What `serve` is made of: which door, which admission, which applications, and which of them in which process.

The master makes what may fail for a reason that the user can mend (dump, kubeconfig) and what all workers
share. Each worker makes the rest after the fork: threads and locks do not survive one.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIApplication

from kubernetes.client import Configuration

from webhook.admission import Admission, Collaborators, Placer, Reviewer
from webhook.app import create_app
from webhook.cluster import credentials, dump
from webhook.cluster.api import ApiDoor
from webhook.cluster.door import STORAGE_CLASSES, Door, Manifest
from webhook.cluster.dump_gaps import Contents, gaps
from webhook.cluster.inventory import Inventory, PromptInventory
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.controller.running import Controller
from webhook.core import messages
from webhook.core.model import Group
from webhook.core.policy import decide_by_options
from webhook.embedded.admission import EmbeddedAdmission
from webhook.errors import SettingsError
from webhook.events import EventRecorder
from webhook.health import Once, create_health_app
from webhook.leading import build_controller, lease_namespace_of
from webhook.locking.memory import AnswerMemory
from webhook.locking.protocol import Answer, Request
from webhook.locking.queue import GroupQueues
from webhook.locking.tools import RoundTools
from webhook.metrics import CONTENT_TYPE, Metrics, shared_directory
from webhook.serving.server import serve
from webhook.settings import ClusterSource, Settings

logger = logging.getLogger(__name__)

# Seconds that a readiness probe waits for the API server; the kubelet waits 2 for the probe.
PROBE_TIMEOUT: Final = 1.0
# Random bytes of an entry's token; no two answers of any replica may ever have the same.
TOKEN_BYTES: Final = 10


def run(settings: Settings) -> int:
    """Serve until the end; the exit code. Raises `WebhookError` for what can be seen before serving."""
    door = door_of(settings)
    with shared_directory(settings.workers) as directory:
        worker = Worker(settings, door, directory)
        return serve(settings, worker.build_app, worker.build_health)


def door_of(settings: Settings) -> Door:
    """The door to the cluster that the settings name. Raises `SettingsError` or `DumpError`."""
    if settings.cluster is not None:
        return MemoryCluster(objects_of(settings.cluster))
    return ApiDoor(configuration_of(settings))


def configuration_of(settings: Settings, context: str | None = None) -> Configuration:
    """Where the API server of the settings is, and who we are there. Raises `SettingsError`.

    `context` is one of the kubeconfig, None the current one.
    """
    if settings.source is ClusterSource.IN_CLUSTER:
        return credentials.in_cluster()
    return credentials.from_kubeconfig(kubeconfig_of(settings), context)


def kubeconfig_of(settings: Settings) -> str:
    """The kubeconfig files of the settings, as KUBECONFIG has them. Raises `SettingsError` if there is none."""
    return str(settings.kubeconfig or _default_kubeconfig())


def objects_of(path: Path) -> tuple[Manifest, ...]:
    """The objects of a dump; what is left out of it, or seems to be missing, is logged. Raises `DumpError`."""
    found = dump.load(path)
    for note in (*found.notes, *gaps(Contents(found.objects))):
        logger.warning("%s", note)
    return found.objects


@dataclass(frozen=True, slots=True)
class Parts:
    """What all decisions of one process share."""

    store: GroupStore
    tools: RoundTools


def build_parts(settings: Settings, door: Door, inventory: Inventory | None = None) -> Parts:
    """The lock protocol over a door; `inventory` proposes nodes, without one they are listed in each round."""
    store = GroupStore(door, inventory)
    tools = RoundTools(
        cluster=store,
        memory=AnswerMemory(keep=10 * settings.expiry),
        # Who has an inventory follows a large cluster, perhaps, and answers an API server that waits.
        decide=partial(decide_by_options, other_schedulers=settings.other_schedulers, thorough=inventory is None),
        expiry=settings.expiry,
        pause=time.sleep,
        chance=random.random,
        tokens=iter(partial(secrets.token_hex, TOKEN_BYTES), ""),
    )
    return Parts(store, tools)


def build_admission(
    settings: Settings,
    door: Door,
    metrics: Metrics,
    parts: Parts | None = None,
    warnings: messages.Warn = messages.warnings,
) -> Admission:
    """The use case over a door; `warnings` words those of its answers."""
    parts = parts or build_parts(settings, door)
    # At most half of the threads wait for one group, so that its trouble leaves threads for the others.
    queues = GroupQueues(parts.tools, most_waiting=settings.threads // 2)
    return Admission(
        Collaborators(
            groups=parts.store,
            placer=CountedPlacer(queues, metrics),
            figures=metrics,
            notify=EventRecorder(door).record,
            requests_of=requests_of,
            warnings=warnings,
        )
    )


def build_reviewer(
    settings: Settings,
    door: Door,
    metrics: Metrics,
    parts: Parts | None = None,
    warnings: messages.Warn = messages.warnings,
) -> Reviewer:
    """What answers reviews. On the embedded cluster it also does what a real one's other parts would."""
    admission = build_admission(settings, door, metrics, parts, warnings)
    return EmbeddedAdmission(admission, door) if isinstance(door, MemoryCluster) else admission


class CountedPlacer:
    """A placer whose waiting callers are a metric."""

    def __init__(self, placer: Placer, metrics: Metrics) -> None:
        self._placer = placer
        self._metrics = metrics
        self.look = placer.look

    def place(self, group: Group, request: Request) -> Answer:
        """See `Placer.place`."""
        with self._metrics.waiting():
            return self._placer.place(group, request)


class Worker:
    """The applications of one worker process, built there: first the reviews', then the health address's."""

    def __init__(self, settings: Settings, door: Door, directory: Path | None) -> None:
        self._settings = settings
        self._door = door
        self._directory = directory
        # Before anything is served: what is not known now will not be known later.
        lease_namespace_of(settings)
        self.controller: Controller | None = None
        self.inventory: Inventory | None = None

    def build_app(self) -> WSGIApplication:
        """The application of the webhook address."""
        self._metrics = Metrics(self._directory)
        if isinstance(self._door, ApiDoor):
            self.inventory = Inventory(self._door)
            self.inventory.start()
        # The embedded cluster is in memory already: nobody has to follow it.
        parts = build_parts(self._settings, self._door, self.inventory or PromptInventory(self._door))
        reviewer = build_reviewer(self._settings, self._door, self._metrics, parts)
        if self._settings.controller:
            configuration = partial(configuration_of, self._settings)
            self.controller = build_controller(
                self._settings, self._door, self._metrics, parts.store, parts.tools, configuration, self.inventory
            )
            self.controller.start()
        return create_app(self._settings, reviewer, responded=self._metrics.responded)

    def build_health(
        self, draining: Callable[[], bool], certificate_problem: Callable[[], str | None]
    ) -> WSGIApplication:
        """The application of the health address."""
        checks = (
            lambda: "draining: it is being shut down" if draining() else None,
            certificate_problem,
            Once("the API server has not answered yet", self._probe),
        )
        return create_health_app(checks, self._exposition, CONTENT_TYPE)

    def _exposition(self) -> bytes:
        if self.inventory is not None:
            self._metrics.inventory(self.inventory.ages())
        return self._metrics.exposition()

    def _probe(self) -> None:
        # A short list that every decision needs anyway, from the API server's cache.
        self._door.list(STORAGE_CLASSES, resource_version="0", timeout=PROBE_TIMEOUT)


def _default_kubeconfig() -> str:
    """The files that kubectl would use, of those that exist. Raises `SettingsError` if there is none."""
    path = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    existing = [each for each in path.split(os.pathsep) if Path(each).is_file()]
    if not existing:
        raise SettingsError(
            f"no cluster: this is no pod and there is no kubeconfig at {path}; "
            "give --kubeconfig FILE, --in-cluster or --cluster FILE"
        )
    return os.pathsep.join(existing)
