"""Nodes, pods and volumes read directly, trimmed: for feasibility and ranking, never for counting members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

from webhook.cluster import trimming
from webhook.cluster.door import Manifest, Resource
from webhook.cluster.reader import STALE, Reader
from webhook.cluster.shelves import Attached, Pools, attached, pools_of
from webhook.cluster.trimming import Key, Kind, key_of
from webhook.core.shapes import text

Value = TypeVar("Value")

Version = tuple[str, str]
"""An object's uid and resourceVersion: as long as both are the same, so is the object."""

Known = Mapping[Key, tuple[Version, Any]]


class UsageReader:
    """Lists whole kinds, and remembers what it has trimmed for every version of an object.

    Safe to use from many threads: what is remembered is replaced as a whole, never changed.
    """

    def __init__(self) -> None:
        self._known: dict[Resource, Known] = {}

    def read(self, reader: Reader, kind: Kind[Value]) -> Mapping[Key, Value]:
        """Everything of a kind that is kept, in the order of the list."""
        known = self._known.get(kind.resource, {})
        found: dict[Key, tuple[Version, Any]] = {}

        def visit(manifest: Manifest) -> None:
            key, version = key_of(manifest), _version(manifest)
            remembered = known.get(key)
            if remembered is None or remembered[0] != version:
                remembered = version, kind.trim(manifest)
            found[key] = remembered

        reader.scan(kind.resource, visit, resource_version=STALE)
        self._known[kind.resource] = found
        return {key: value for key, (_, value) in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class DirectStock:
    """Kinds as they are listed for one round, each when it is first asked for, and once."""

    at_hand: ClassVar[bool] = False
    usage: UsageReader
    reader: Reader
    _read: dict[Resource, Any] = field(default_factory=dict)

    def of(self, kind: Kind[Value]) -> Mapping[Key, Value]:
        """What is kept of a kind."""
        if kind.resource not in self._read:
            self._read[kind.resource] = self.usage.read(self.reader, kind)
        return cast("Mapping[Key, Value]", self._read[kind.resource])

    def volumes(self) -> Pools:
        """Persistent volumes by class."""
        return pools_of(self.of(trimming.VOLUME).values())

    def attached(self) -> Attached:
        """Attached volumes by node."""
        return attached(self.of(trimming.ATTACHMENT).values())


def _version(manifest: Manifest) -> Version:
    metadata = manifest["metadata"]
    return text(metadata.get("uid")), text(metadata.get("resourceVersion"))
