"""JSON merge patch (RFC 7386) on plain dicts, with the rules that the API server has for metadata.

The rules were seen on an API server; tests/contract holds both to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from webhook.cluster.api_errors import Refused
from webhook.cluster.door import Manifest

ANNOTATIONS_LIMIT: Final = 262144
"""The most bytes that the keys and values of an object's annotations may have together."""

_FIXED: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
_MAPS: Final = ("annotations", "labels")
_NO_CHECK: Final = ("", "0")


def merged(target: object, patch: object) -> Any:
    """The target with the patch applied: null deletes, objects merge, all else replaces.

    A new value that shares the parts of the target that did not change, and nothing with the patch.
    """
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    result: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patched(stored: Manifest, patch: Mapping[str, Any]) -> Manifest:
    """The stored object after a merge patch; the very same object if nothing changes. Raises Refused."""
    result: Manifest = merged(stored, patch)
    old = stored["metadata"]
    metadata = result.get("metadata")
    if not isinstance(metadata, dict):
        raise Refused(422, "metadata: must be an object")
    _check_version(metadata.get("resourceVersion"), old["resourceVersion"])
    metadata["resourceVersion"] = old["resourceVersion"]
    _keep_identity(metadata, old)
    for key in _MAPS:
        _check_strings(metadata, key)
    if size_of(metadata.get("annotations", {})) > ANNOTATIONS_LIMIT:
        raise Refused(422, f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_LIMIT} bytes")
    for key in (*_MAPS, "finalizers"):
        if not metadata.get(key, True):
            del metadata[key]
    result["apiVersion"], result["kind"] = stored["apiVersion"], stored["kind"]
    return stored if result == stored else result


def size_of(annotations: Mapping[str, str]) -> int:
    """The bytes of all keys and values, as the API server counts them against its limit."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def _check_version(wanted: object, current: str) -> None:
    if wanted is None or wanted in _NO_CHECK:
        return
    if not isinstance(wanted, str):
        raise Refused(422, "metadata.resourceVersion: must be a string")
    if not wanted.isascii() or not wanted.isdigit():
        raise Refused(500, f"metadata.resourceVersion {wanted[:64]!r}: not a number")
    if wanted != current:
        raise Refused(409, "the object has been modified; please apply your changes to the latest version")


def _keep_identity(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    for key in _FIXED:
        if key in old:
            if metadata.setdefault(key, old[key]) != old[key]:
                raise Refused(422, f"metadata.{key}: Invalid value: field is immutable")
        else:
            # Not the client's to set: the API server leaves out what only it may say.
            metadata.pop(key, None)


def _check_strings(metadata: Mapping[str, Any], key: str) -> None:
    values = metadata.get(key, {})
    if not isinstance(values, Mapping):
        raise Refused(422, f"metadata.{key}: must be an object")
    wrong = next((name for name, value in values.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise Refused(422, f"metadata.{key}.{wrong}: must be a string")
