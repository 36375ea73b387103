"""A copy of a cluster in memory, without what nothing here looks at."""

from __future__ import annotations

from typing import Any, Final

from webhook.cluster import door
from webhook.cluster.door import Manifest, Resource
from webhook.cluster.kinds import BUILT_IN, CUSTOM
from webhook.cluster.reader import Reader
from webhook.core import keys
from webhook.core.shapes import inside
from webhook.errors import Forbidden, NotFound

# Without these what is free is only known less well.
OPTIONAL: Final = frozenset(
    {door.CSI_DRIVERS, door.CSI_NODES, door.CSI_STORAGE_CAPACITIES, door.VOLUME_ATTACHMENTS, door.NAMESPACES}
)


def copy_of(reader: Reader) -> tuple[list[Manifest], list[str]]:
    """The objects of a cluster, and sentences about what could not be read.

    Raises `errors.ApiError` for a kind that nothing can be said without.
    """
    found: list[Manifest] = []
    notes: list[str] = []
    for resource in (*BUILT_IN, *CUSTOM):
        if resource == door.EVENTS:
            continue
        try:
            found += _all(reader, resource)
        except NotFound:
            continue
        except Forbidden as error:
            if resource not in OPTIONAL:
                raise
            notes.append(f"not allowed to {error.verb} {error.resource}: taken to be none")
    return found, notes


def _all(reader: Reader, resource: Resource) -> list[Manifest]:
    found: list[Manifest] = []
    reader.scan(resource, lambda manifest: found.append(_slim(manifest)))
    return found


def _slim(manifest: Manifest) -> Manifest:
    """Without what makes up most of an object (who set which field, the images of nodes), and without entries.

    What is in flight when the copy is made has its pod by the first step.
    """
    metadata: Any = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    if metadata.get("annotations"):
        metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if not _is_entry(key)}
    slim = {**manifest, "metadata": metadata}
    if inside(manifest, "status", "images") is not None:
        slim["status"] = {key: value for key, value in manifest["status"].items() if key != "images"}
    return slim


def _is_entry(key: str) -> bool:
    return key == keys.LOCK or key.startswith(keys.ENTRY_PREFIX)
