"""The steps of a simulation, as the user writes them: WORD:VALUE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from webhook.errors import SettingsError

MOST_NODES: Final = 1000
MOST_REPLICAS: Final = 1000

FORMS: Final = "scale:[NAMESPACE/]NAME=REPLICAS, lose-node:NODE[,NODE…], lose-zone:ZONE or add-nodes:COUNT[@ZONE]"

_SCALE: Final = re.compile(r"(?:(?P<namespace>[^/=]+)/)?(?P<name>[^/=]+)=(?P<replicas>[0-9]{1,5})", re.ASCII)
_NODES: Final = re.compile(r"(?P<count>[0-9]{1,5})(?:@(?P<zone>.+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scale:
    """A StatefulSet, or a v2 group object, gets another number of replicas."""

    namespace: str
    name: str
    replicas: int

    def __str__(self) -> str:
        return f"scale {self.namespace}/{self.name} to {self.replicas}"


@dataclass(frozen=True, slots=True)
class LoseNodes:
    """Nodes are lost for good, with what runs there."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"lose {'node' if len(self.names) == 1 else 'nodes'} {', '.join(self.names)}"


@dataclass(frozen=True, slots=True)
class LoseZone:
    """All nodes of a zone are lost."""

    zone: str

    def __str__(self) -> str:
        return f"lose zone {self.zone}"


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Nodes come that are like those there are; `zone` "": like the first one's."""

    count: int
    zone: str = ""

    def __str__(self) -> str:
        return f"add {self.count} {'node' if self.count == 1 else 'nodes'}{f' in {self.zone}' if self.zone else ''}"


Step = Scale | LoseNodes | LoseZone | AddNodes


def step_from(text: str, namespace: str) -> Step:
    """Read one step; `namespace` is where none is named. Raises SettingsError, which says what is right."""
    word, _, value = text.partition(":")
    if word == "scale" and (found := _SCALE.fullmatch(value)):
        replicas = int(found["replicas"])
        if replicas <= MOST_REPLICAS:
            return Scale(found["namespace"] or namespace, found["name"], replicas)
        raise SettingsError(f"step {text!r}: at most {MOST_REPLICAS} replicas")
    if word == "lose-node" and (names := tuple(filter(None, value.split(",")))):
        return LoseNodes(names)
    if word == "lose-zone" and value:
        return LoseZone(value)
    if word == "add-nodes" and (found := _NODES.fullmatch(value)):
        count = int(found["count"])
        if 0 < count <= MOST_NODES:
            return AddNodes(count, found["zone"] or "")
        raise SettingsError(f"step {text!r}: from 1 to {MOST_NODES} nodes")
    raise SettingsError(f"step {text!r}: must be {FORMS}")
