"""The objects of the embedded cluster by resource, where they come from, and the selectors of a LIST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.cluster.api_errors import Refused
from webhook.cluster.creation import uid_of
from webhook.cluster.door import ANY_VALUE, PODS, Manifest, Resource
from webhook.cluster.kinds import resource_of
from webhook.cluster.queries import label_selector_text, selector_text
from webhook.errors import DumpError

_FIELDS: Final = ("metadata.name", "metadata.namespace")
_POD_FIELDS: Final = ("spec.nodeName", "spec.schedulerName", "status.phase", "status.nominatedNodeName")


class Table:
    """Objects by namespace and name. Not safe for threads by itself: its owner holds a lock."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Manifest]] = {}
        self._unordered: set[str] = set()

    def find(self, namespace: str, name: str) -> Manifest | None:
        """The object of that name, if there is one."""
        return self._objects.get(namespace, {}).get(name)

    def put(self, namespace: str, name: str, manifest: Manifest) -> None:
        """Add an object, or put it in the place of the one of its name."""
        objects = self._objects.setdefault(namespace, {})
        if name not in objects:
            self._unordered.add(namespace)
        objects[name] = manifest

    def remove(self, namespace: str, name: str) -> None:
        """Take an object away."""
        del self._objects[namespace][name]

    def objects(self, namespace: str) -> tuple[Manifest, ...]:
        """The objects of a namespace, or all with "", ordered by namespace and name."""
        namespaces = [namespace] if namespace else sorted(self._objects)
        return tuple(found for each in namespaces for found in self._in(each))

    def _in(self, namespace: str) -> Iterator[Manifest]:
        # Sorted when something was added, not at every LIST: taking away keeps the order of a dict.
        if namespace in self._unordered:
            self._objects[namespace] = dict(sorted(self._objects[namespace].items()))
            self._unordered.discard(namespace)
        yield from self._objects.get(namespace, {}).values()


TableKey = tuple[str, str]
"""API group and plural: one table holds an object in whatever version it was printed."""


def key_of(resource: Resource) -> TableKey:
    """The key of a resource's table."""
    return resource.group, resource.plural


def load(tables: dict[TableKey, Table], objects: Sequence[Manifest]) -> int:
    """Put the objects of a dump into their tables; the highest version that one has then. Raises DumpError.

    With no objects it is 1: from 0 nobody can watch.
    """
    version = max((number_of(found["metadata"].get("resourceVersion")) for found in objects), default=1)
    for manifest in objects:
        resource = resource_of(manifest)
        if resource is None:
            raise DumpError(f"{manifest.get('apiVersion')} {manifest.get('kind')}: not a kind that is used here")
        version += 1
        _put(tables.setdefault(key_of(resource), Table()), resource, manifest, version)
    return version


def _put(table: Table, resource: Resource, manifest: Manifest, version: int) -> None:
    metadata = dict(manifest["metadata"])
    name = metadata["name"]
    namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
    if table.find(namespace, name) is not None:
        raise DumpError(f"{resource.kind} {namespace}/{name}: given twice")
    if resource.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = metadata.get("uid") or uid_of(version)
    if not number_of(metadata.get("resourceVersion")):
        metadata["resourceVersion"] = str(version)
    table.put(namespace, name, {**manifest, "metadata": metadata})


def number_of(version: object) -> int:
    """A resourceVersion as the number that it is in here, 0 for what is none."""
    return int(version) if isinstance(version, str) and version.isascii() and version.isdigit() else 0


def matches_labels(manifest: Manifest, labels: Mapping[str, str] | None) -> bool:
    """Whether the object has each of these labels with this value, or with any where that is asked for."""
    if not labels:
        return True
    own = manifest["metadata"].get("labels")
    return isinstance(own, dict) and all(
        key in own if value == ANY_VALUE else own.get(key) == value for key, value in labels.items()
    )


def matches_fields(manifest: Manifest, fields: Mapping[str, str] | None) -> bool:
    """Whether the object has each of these fields with this value; an absent field is ""."""
    return not fields or all(_field(manifest, path) == value for path, value in fields.items())


def check_selectors(resource: Resource, labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> None:
    """Raise Refused (400) for a selector that cannot be, or a field that this resource is not selected by."""
    label_selector_text(labels)
    selector_text(fields)
    known = _FIELDS + _POD_FIELDS if resource == PODS else _FIELDS
    for path in fields or ():
        if path not in known:
            raise Refused(400, f"field label not supported: {path}")


def _field(manifest: Manifest, path: str) -> str:
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
