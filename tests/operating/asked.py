"""A cluster that the commands ask: as an open connection, or as a dump for the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from stand import Stand

from webhook.cli import main
from webhook.cluster.door import EVENTS, Door
from webhook.cluster.kinds import BUILT_IN, CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.deadline import Deadline
from webhook.errors import NotFound
from webhook.operating.connecting import Connection
from webhook.settings import Settings, variable

SPACE = "shop"


def connected(door: Door | Stand, seconds: float = 20.0, **settings: Any) -> Connection:
    """The cluster as a command has it open, with so many seconds to ask it."""
    opened = door.cluster if isinstance(door, Stand) else door
    return Connection(opened, Settings(**settings), SPACE, Deadline.after(seconds))


def dump(path: Path, cluster: MemoryCluster) -> Path:
    """A file as `kubectl get … -o json` prints what is on the cluster."""
    found: list[Any] = []
    for resource in (*BUILT_IN, *CUSTOM):
        try:
            found += cluster.list(resource, timeout=1).items
        except NotFound:
            continue
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    return path


def run(*arguments: str | Path, **variables: str) -> Result:
    """Run the command line as the shell would, without any variable of the machine's that we would read."""
    names = {str(each.envvar) for command in main.commands.values() for each in command.params if each.envvar}
    absent = {name: None for name in (*names, *(variable(field.name) for field in fields(Settings)))}
    environment = {**absent, "KUBERNETES_SERVICE_HOST": None, "KUBECONFIG": None, **variables}
    return CliRunner(env=environment).invoke(main, [str(argument) for argument in arguments])


def an_event(name: str, kind: str, message: str, *, reason: str = "NoSafeNode", involved: str, **more: Any) -> Any:
    """An event of the namespace."""
    return {
        "apiVersion": "v1",
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": SPACE},
        "involvedObject": {"kind": kind, "name": involved, "namespace": SPACE},
        "reason": reason,
        "message": message,
        "lastTimestamp": "2027-01-15T08:00:00Z",
        **more,
    }
