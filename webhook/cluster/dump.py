"""Cluster dumps: what `kubectl get … -A -o yaml` (or json) prints of the kinds in `kinds.py`, as objects.

A dump is one file or a directory of files; a file holds one document or several, each an object or a list of
objects. Whatever cannot be used is named by file, document and field; nothing is skipped in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook.cluster.documents import SUFFIXES, documents_in, unopened
from webhook.cluster.door import Manifest
from webhook.cluster.dump_checks import Found, checked, kind_of, object_at
from webhook.cluster.kinds import resource_of
from webhook.errors import DumpError

_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Dump:
    """The objects of a dump in the order found, and sentences about what was left out."""

    objects: tuple[Manifest, ...]
    notes: tuple[str, ...] = ()


def load(path: str | Path) -> Dump:
    """Read a dump. Raises DumpError for anything that cannot be used, and for an object given twice.

    Raises SettingsError for a file that cannot be opened.

    Objects of kinds that no decision looks at are left out, and counted in the notes.
    """
    root = Path(path)
    files, notes = _files_of(root)
    found = [each for file in files for each in _objects_of(file)]
    kept = [each for each in found if resource_of(each.manifest) is not None]
    if not found:
        raise DumpError(f"{root}: holds no object at all; did kubectl find none, or fail?")
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
    manifest = object_at(place, "", document)
    kind = manifest.get("kind")
    if kind is None and isinstance(manifest.get("items"), list):
        raise DumpError(f"{place}: has items and no kind, which kubectl prints after them: was the dump cut off?")
    if not isinstance(kind, str) or not kind.endswith("List") or (kind != "List" and "items" not in manifest):
        yield checked(place, manifest)
        return
    items = manifest.get("items")
    if not isinstance(items, list | None):
        raise DumpError(f"{place}: items: must be a list, is {kind_of(items)}")
    # The API server leaves apiVersion and kind out of the items of a typed list such as a NodeList.
    implied = {} if kind == "List" else {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items or ()):
        yield checked(f"{place}, items[{index}]", {**implied, **object_at(f"{place}, items[{index}]", "", item)})


def _refuse_duplicates(found: list[Found]) -> None:
    seen: dict[tuple[object, ...], str] = {}
    for each in found:
        resource = resource_of(each.manifest)
        metadata = each.manifest["metadata"]
        namespace = (metadata.get("namespace") or _DEFAULT_NAMESPACE) if resource and resource.namespaced else ""
        first = seen.setdefault((resource, namespace, metadata["name"]), each.place)
        if first is not each.place:
            raise DumpError(f"{each.place}: given already in {first}")
