"""What every object of a dump is checked for: its shape, its name, and the quantities that decisions rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from webhook.cluster.door import Manifest
from webhook.cluster.kinds import resource_of
from webhook.cluster.quantities import parse_quantity
from webhook.core.options import DNS_SUBDOMAIN, DNS_SUBDOMAIN_CHARACTERS
from webhook.core.shapes import inside, items, mapping
from webhook.errors import DumpError

_TEXTS: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_MAPS_OF_TEXTS: Final = ("labels", "annotations")
_NAMESPACE_CHARACTERS: Final = 63
# Characters of a foreign value that are shown.
_SHOWN: Final = 60
_EXAMPLES: Final = "4, 500m or 16Gi"


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a file. `place` says where it was found: file, document, item and name."""

    place: str
    manifest: Manifest


def checked(place: str, manifest: Manifest) -> Found:
    """The object with its place. Raises DumpError, which begins with the place, if it cannot be one of a cluster's."""
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            raise DumpError(f"{place}: {field}: must be a string, is {kind_of(manifest.get(field))}")
    metadata = object_at(place, "metadata", manifest.get("metadata"))
    place = f"{place} ({manifest['kind']} {_short(metadata.get('name'))})"
    if not metadata.get("name"):
        raise DumpError(f"{place}: metadata.name: missing; every object has a name")
    for field in _TEXTS:
        if not isinstance(metadata.get(field, ""), str | None):
            raise DumpError(f"{place}: metadata.{field}: must be a string, is {kind_of(metadata[field])}")
    for field in _MAPS_OF_TEXTS:
        _check_texts(place, f"metadata.{field}", metadata.get(field))
    for field in ("spec", "status"):
        if manifest.get(field) is not None:
            object_at(place, field, manifest[field])
    if resource_of(manifest) is not None:
        _check_name(place, "name", metadata["name"], DNS_SUBDOMAIN_CHARACTERS)
        _check_name(place, "namespace", metadata.get("namespace") or "default", _NAMESPACE_CHARACTERS)
        check_quantities(place, manifest)
    return Found(place, manifest)


def check_quantities(place: str, manifest: Mapping[str, Any]) -> None:
    """Raises DumpError if an amount that a decision looks at cannot be read: it would count as none, or as too much."""
    for field, amounts in _amounts(manifest):
        for name, value in mapping(amounts).items():
            if value is not None and not _is_quantity(value if isinstance(value, str | int | float) else ""):
                raise DumpError(f"{place}: {field}.{name}: {_quoted(value)} cannot be read; write it as in {_EXAMPLES}")


def object_at(place: str, field: str, value: object) -> dict[str, Any]:
    """The value of a field ("": of the document) if it is an object. Raises DumpError."""
    if isinstance(value, dict):
        return value
    where = f"{place}: {field}" if field else place
    raise DumpError(f"{where}: must be an object, is {kind_of(value)}")


def kind_of(value: object) -> str:
    """What a value is, in a word."""
    names = {type(None): "missing or null", str: "a string", bool: "a boolean", list: "a list", dict: "an object"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _check_texts(place: str, field: str, value: object) -> None:
    if value is None:
        return
    for key, text in object_at(place, field, value).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise DumpError(f"{place}: {field}.{key}: must be a string, is {kind_of(text)}; quote it")


def _check_name(place: str, field: str, name: str, most: int) -> None:
    """Raises DumpError for a name that no API server would have accepted."""
    if len(name) > most:
        raise DumpError(f"{place}: metadata.{field}: has {len(name)} characters; {most} are the most that it can have")
    if not DNS_SUBDOMAIN.fullmatch(name):
        raise DumpError(
            f"{place}: metadata.{field}: no cluster has such a name; it is made of lower-case letters, digits, hyphens "
            "and dots, and begins and ends with a letter or digit"
        )


def _amounts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Path and value of each map of quantities that is looked at."""
    spec, kind = mapping(manifest.get("spec")), manifest.get("kind")
    if kind == "Node":
        yield "status.allocatable", inside(manifest, "status", "allocatable")
    elif kind == "Pod":
        yield from _of_pod("spec", spec)
    elif kind == "StatefulSet":
        yield from _of_pod("spec.template.spec", mapping(inside(spec, "template", "spec")))
        for index, claim in enumerate(items(spec.get("volumeClaimTemplates"))):
            yield from _of_resources(f"spec.volumeClaimTemplates[{index}].spec", inside(claim, "spec"))
    elif kind == "PersistentVolumeClaim":
        yield from _of_resources("spec", spec)
    elif kind == "PersistentVolume":
        yield "spec.capacity", spec.get("capacity")


def _of_pod(path: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(items(spec.get(field))):
            yield from _of_resources(f"{path}.{field}[{index}]", container)
    yield from _of_resources(path, spec)
    yield f"{path}.overhead", spec.get("overhead")


def _of_resources(path: str, holder: object) -> Iterator[tuple[str, object]]:
    for field in ("requests", "limits"):
        yield f"{path}.resources.{field}", inside(holder, "resources", field)


@lru_cache(maxsize=4096, typed=True)
def _is_quantity(value: str | float) -> bool:
    return parse_quantity(value) is not None


def _quoted(value: object) -> str:
    return f'"{_short(value)}"' if isinstance(value, str) else _short(value)


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= DNS_SUBDOMAIN_CHARACTERS else f"{shown[:_SHOWN]}.."
