"""The controller of one process: what its leader does, and the Lease by which it leads."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from kubernetes.client import Configuration

from webhook.cluster.credentials import SERVICE_ACCOUNT
from webhook.cluster.door import Door
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.controller import loop
from webhook.controller.leases import Election
from webhook.controller.looking import Looker
from webhook.controller.loop import Rescue
from webhook.controller.running import Controller
from webhook.errors import SettingsError
from webhook.events import EventRecorder
from webhook.locking.tools import RoundTools
from webhook.metrics import Metrics
from webhook.settings import ClusterSource, Settings


def build_controller(
    settings: Settings,
    door: Door,
    metrics: Metrics,
    store: GroupStore,
    tools: RoundTools,
    configuration: Callable[[], Configuration],
) -> Controller:
    """The controller, not started. Nobody else can lead on the embedded cluster. Raises `SettingsError`."""
    rescue = Rescue(
        loop.Collaborators(
            door=door,
            groups=store,
            look=Looker(tools, requests_of).look,
            figures=metrics,
            notify=EventRecorder(door).record,
            clock=time.monotonic,
            other_schedulers=settings.other_schedulers,
        )
    )
    if settings.source is ClusterSource.DUMP:
        return Controller(rescue, lambda: True, metrics.leads)
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    election = Election(configuration(), lease_namespace_of(settings), settings.controller_lease, identity)
    return Controller(rescue, election.leads, metrics.leads)


def lease_namespace_of(settings: Settings, directory: Path = SERVICE_ACCOUNT) -> str:
    """The namespace of the controller's Lease, "" where none is needed. Raises `SettingsError` if it is not known."""
    if not settings.controller or settings.source is ClusterSource.DUMP:
        return ""
    try:
        return settings.controller_namespace or (directory / "namespace").read_text().strip()
    except OSError as error:
        raise SettingsError(
            "--controller: this is no pod, so the namespace of its Lease is not known; give --controller-namespace NAME"
        ) from error
