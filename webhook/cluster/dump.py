"""Cluster dumps: what `kubectl get nodes,pods,pvc,pv,sc,sts -A -o yaml` (or json) prints, as objects.

A dump is one file or a directory of files; a file holds one document or several, each an object or a list of
objects. Whatever cannot be used is named by file, document and field; nothing is skipped in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from webhook.cluster.documents import SUFFIXES, documents_in, unopened
from webhook.cluster.door import Manifest
from webhook.cluster.kinds import resource_of
from webhook.errors import DumpError

_TEXTS: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_MAPS_OF_TEXTS: Final = ("labels", "annotations")
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Dump:
    """The objects of a dump in the order found, and sentences about what was left out."""

    objects: tuple[Manifest, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a file. `place` says where it was found: file, document, item and name."""

    place: str
    manifest: Manifest


def load(path: str | Path) -> Dump:
    """Read a dump. Raises DumpError for anything that cannot be used, and for an object given twice.

    Raises SettingsError for a file that cannot be opened.

    Objects of kinds that no decision looks at are left out, and counted in the notes.
    """
    root = Path(path)
    files, notes = _files_of(root)
    found = [each for file in files for each in _objects_of(file)]
    kept = [each for each in found if resource_of(each.manifest) is not None]
    if not kept:
        raise DumpError(f"{root}: holds no object of a kind that is used here (nodes, pods, claims, …)")
    _refuse_duplicates(kept)
    ignored = Counter(each.manifest["kind"] for each in found if resource_of(each.manifest) is None)
    if ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
        notes.append(f"{root}: objects of kinds that are not used: {kinds}")
    return Dump(tuple(each.manifest for each in kept), tuple(notes))


def _files_of(root: Path) -> tuple[list[Path], list[str]]:
    if not root.is_dir():
        return [root], []
    try:
        entries = sorted(entry for entry in root.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise unopened(root, error) from error
    files = [entry for entry in entries if entry.suffix in SUFFIXES and entry.is_file()]
    if not files:
        raise DumpError(f"{root}: holds no file whose name ends in {', '.join(SUFFIXES)}")
    return files, [
        f"{entry}: not read, its name ends in none of {', '.join(SUFFIXES)}" for entry in entries if entry not in files
    ]


def _objects_of(file: Path) -> Iterator[Found]:
    for number, document in enumerate(documents_in(file), start=1):
        if document is not None:
            yield from unpacked(f"{file}, document {number}", document)


def unpacked(place: str, document: object) -> Iterator[Found]:
    """The object of a document, or those of its list. Raises DumpError, which begins with `place`."""
    manifest = _object(place, "", document)
    kind = manifest.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or (kind != "List" and "items" not in manifest):
        yield _checked(place, manifest)
        return
    items = manifest.get("items")
    if not isinstance(items, list | None):
        raise DumpError(f"{place}: items: must be a list, is {_kind_of(items)}")
    # The API server leaves apiVersion and kind out of the items of a typed list such as a NodeList.
    implied = {} if kind == "List" else {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items or ()):
        yield _checked(f"{place}, items[{index}]", {**implied, **_object(f"{place}, items[{index}]", "", item)})


def _checked(place: str, manifest: Manifest) -> Found:
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            raise DumpError(f"{place}: {field}: must be a string, is {_kind_of(manifest.get(field))}")
    metadata = _object(place, "metadata", manifest.get("metadata"))
    place = f"{place} ({manifest['kind']} {metadata.get('name')})"
    if not metadata.get("name"):
        raise DumpError(f"{place}: metadata.name: missing; every object has a name")
    for field in _TEXTS:
        if not isinstance(metadata.get(field, ""), str | None):
            raise DumpError(f"{place}: metadata.{field}: must be a string, is {_kind_of(metadata[field])}")
    for field in _MAPS_OF_TEXTS:
        _check_texts(place, f"metadata.{field}", metadata.get(field))
    for field in ("spec", "status"):
        if manifest.get(field) is not None:
            _object(place, field, manifest[field])
    return Found(place, manifest)


def _check_texts(place: str, field: str, value: object) -> None:
    if value is None:
        return
    for key, text in _object(place, field, value).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise DumpError(f"{place}: {field}.{key}: must be a string, is {_kind_of(text)}; quote it")


def _object(place: str, field: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    where = f"{place}: {field}" if field else place
    raise DumpError(f"{where}: must be an object, is {_kind_of(value)}")


def _kind_of(value: object) -> str:
    names = {type(None): "missing or null", str: "a string", bool: "a boolean", list: "a list", dict: "an object"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _refuse_duplicates(found: list[Found]) -> None:
    seen: dict[tuple[object, ...], str] = {}
    for each in found:
        resource = resource_of(each.manifest)
        metadata = each.manifest["metadata"]
        namespace = (metadata.get("namespace") or _DEFAULT_NAMESPACE) if resource and resource.namespaced else ""
        first = seen.setdefault((resource, namespace, metadata["name"]), each.place)
        if first is not each.place:
            raise DumpError(f"{each.place}: given already in {first}")
