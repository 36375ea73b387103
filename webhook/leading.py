"""The controller of one process: what its leader does, and the Lease by which it leads."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kubernetes.client import Configuration

from leases.election import Election
from webhook.cluster.credentials import SERVICE_ACCOUNT
from webhook.cluster.door import Door
from webhook.cluster.fleet import Fleet, read_fleet
from webhook.cluster.inventory import Inventory
from webhook.cluster.pacing import PacedDoor
from webhook.cluster.quantities import requests_of
from webhook.cluster.reader import Reader
from webhook.cluster.store import GroupStore
from webhook.cluster.usage import UsageReader
from webhook.controller import auditing, loop
from webhook.controller.asking import Registration
from webhook.controller.auditing import Auditing
from webhook.controller.duties import AllDuties
from webhook.controller.looking import Looker
from webhook.controller.loop import Rescue
from webhook.controller.running import Controller
from webhook.core.objects import Pod
from webhook.deadline import Deadline
from webhook.errors import SettingsError
from webhook.events import EventRecorder, Notice
from webhook.locking.sweeping import Sweep
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
    inventory: Inventory | None = None,
) -> Controller:
    """The controller, not started. Nobody else can lead on the embedded cluster. Raises `SettingsError`."""
    notify = EventRecorder(door).record
    rescue = Rescue(
        loop.Collaborators(
            door=door,
            groups=store,
            look=Looker(tools, requests_of).look,
            unasked=Registration(door, settings.controller_configuration).why_not,
            figures=metrics,
            notify=notify,
            clock=time.monotonic,
            other_schedulers=settings.other_schedulers,
        )
    )
    duties = AllDuties(rescue, _auditing(door, metrics, tools, notify, rescue.seen, inventory))
    if settings.source is ClusterSource.DUMP:
        return Controller(duties, lambda: True, metrics.leads)
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    election = Election(
        configuration(),
        lease_namespace_of(settings),
        settings.controller_lease,
        identity,
        leaderless="who leads is not known",
    )
    return Controller(duties, election.leads, metrics.leads)


def _auditing(
    door: Door,
    metrics: Metrics,
    tools: RoundTools,
    notify: Callable[[Notice], None],
    tell: Callable[[Iterable[Pod]], None],
    inventory: Inventory | None,
) -> Auditing:
    paced, usage = PacedDoor(door), UsageReader()

    def read(deadline: Deadline) -> Fleet:
        view = inventory.view() if inventory is not None else None
        return read_fleet(Reader(paced, deadline), view=view, usage=usage)

    sweep = Sweep(GroupStore(paced), tools.memory, tools.expiry)
    return Auditing(auditing.Collaborators(read, sweep.run, metrics, notify, tell, time.monotonic, tools.expiry))


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
