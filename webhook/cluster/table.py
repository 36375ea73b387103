"""The objects of one resource of the embedded cluster, and the selectors of a LIST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.cluster.api_errors import Refused
from webhook.cluster.door import PODS, Manifest, Resource
from webhook.cluster.queries import selector_text

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


def matches_labels(manifest: Manifest, labels: Mapping[str, str] | None) -> bool:
    """Whether the object has each of these labels with this value."""
    if not labels:
        return True
    own = manifest["metadata"].get("labels")
    return isinstance(own, dict) and all(own.get(key) == value for key, value in labels.items())


def matches_fields(manifest: Manifest, fields: Mapping[str, str] | None) -> bool:
    """Whether the object has each of these fields with this value; an absent field is ""."""
    return not fields or all(_field(manifest, path) == value for path, value in fields.items())


def check_selectors(resource: Resource, labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> None:
    """Raise Refused (400) for a selector that cannot be, or a field that this resource is not selected by."""
    selector_text(labels)
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
