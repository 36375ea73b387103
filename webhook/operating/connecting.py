"""The cluster that a command asks: an API server, or the embedded cluster of a dump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.cluster import contexts
from webhook.cluster.about import ServerAbout
from webhook.cluster.api import ApiDoor
from webhook.cluster.door import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS, STORAGE_CLASSES, Door, Resource
from webhook.cluster.kinds import DUMP_COMMAND
from webhook.cluster.patience import Patience, PatientDoor
from webhook.cluster.reader import Reader
from webhook.deadline import Deadline
from webhook.settings import ClusterSource, Settings
from webhook.wiring import configuration_of, door_of, kubeconfig_of

# What every question needs; a dump without one of them was probably made by another command.
NEEDED: Final = (NODES, PODS, CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, STATEFUL_SETS)


@dataclass(frozen=True, slots=True)
class Connection:
    """An open cluster. `namespace` is the one to take where none is given; `notes` are for the user.

    `about` None: there is no API server.
    """

    door: Door
    settings: Settings
    namespace: str
    deadline: Deadline
    notes: tuple[str, ...] = ()
    about: ServerAbout | None = None

    @property
    def reader(self) -> Reader:
        """Reads within the command's time."""
        return Reader(self.door, self.deadline)

    @property
    def on_dump(self) -> bool:
        """Whether it is a dump, where nothing goes on."""
        return self.settings.source is ClusterSource.DUMP


def connect(settings: Settings, *, context: str | None = None, namespace: str = "", timeout: float) -> Connection:
    """Open the cluster of the settings. Raises SettingsError or DumpError; nothing is asked of an API server yet."""
    deadline = Deadline.after(timeout)
    if settings.source is ClusterSource.DUMP:
        door = door_of(settings)
        notes = tuple(_missing_kinds(Reader(door, deadline)))
        return Connection(door, settings, namespace or contexts.DEFAULT, deadline, notes)
    own = (
        contexts.own_namespace()
        if settings.source is ClusterSource.IN_CLUSTER
        else contexts.namespace_of(kubeconfig_of(settings), context)
    )
    # These commands ask one thing after another.
    configuration = configuration_of(settings, context)
    patience = Patience()
    door = PatientDoor(ApiDoor(configuration, pool_size=4), patience)
    return Connection(door, settings, namespace or own, deadline, about=ServerAbout(configuration, patience))


def _missing_kinds(reader: Reader) -> list[str]:
    missing = [resource.plural for resource in NEEDED if not _any(reader, resource)]
    if not missing:
        return []
    return [
        f"the dump holds no {', no '.join(missing)}: what follows takes it that there are none; "
        f"a whole dump is made by: {DUMP_COMMAND}"
    ]


def _any(reader: Reader, resource: Resource) -> bool:
    return bool(reader.list(resource).items)
