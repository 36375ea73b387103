"""Intent to request: paths and parameters of the Kubernetes API, nothing sent.

What comes in may be anything that a pod not validated yet holds, so nothing is put into a path or selector
that could mean something else there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from webhook.cluster.api_errors import Refused
from webhook.cluster.door import ANY_VALUE, Resource

FIELD_MANAGER: Final = "tidb-ha-webhook"
"""Who the API server's managedFields name for our writes."""

# The letters of label keys and values and of object names; none has a meaning in a selector.
_KEY: Final = re.compile(r"[A-Za-z0-9._/-]+", re.ASCII)
_VALUE: Final = re.compile(r"[A-Za-z0-9._:-]*", re.ASCII)


def path_of(resource: Resource, namespace: str, name: str | None = None) -> str:
    """The path of a collection, or of one object of it. Raises Refused (404) for what can be no name."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    scope = f"/namespaces/{_segment(namespace)}" if resource.namespaced and namespace else ""
    collection = f"{root}{scope}/{resource.plural}"
    return collection if name is None else f"{collection}/{_segment(name)}"


def selector_text(pairs: Mapping[str, str] | None) -> str:
    """A label or field selector that asks for equality. Raises Refused (400) for what no selector can ask for."""
    for key, value in (pairs or {}).items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise Refused(400, f"selector {key[:64]}={value[:64]}: cannot be the key and value of a selector")
    return ",".join(f"{key}={value}" for key, value in (pairs or {}).items())


def label_selector_text(labels: Mapping[str, str] | None) -> str:
    """The same for labels, of which some need only be there."""
    equal = {key: value for key, value in (labels or {}).items() if value != ANY_VALUE}
    # The key alone: checked as with a value, and the value taken off.
    there = (selector_text({key: ""}).removesuffix("=") for key in (labels or {}) if key not in equal)
    return ",".join(filter(None, (selector_text(equal), *there)))


def list_query(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None, resource_version: str) -> str:
    """The query of a LIST; empty parameters are left out, which for resourceVersion means a consistent read."""
    parameters = {
        "labelSelector": label_selector_text(labels),
        "fieldSelector": selector_text(fields),
        "resourceVersion": resource_version,
    }
    return urlencode({key: value for key, value in parameters.items() if value})


def watch_query(resource_version: str, seconds: float) -> str:
    """The query of a WATCH. Raises ValueError without a version: the server would begin anywhere."""
    if resource_version in ("", "0"):
        raise ValueError(f"a watch from resourceVersion {resource_version!r} could miss what has happened")
    parameters = {
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": max(1, round(seconds)),
    }
    return urlencode(parameters)


def write_query() -> str:
    """The query of a create or patch."""
    return urlencode({"fieldManager": FIELD_MANAGER})


def _segment(name: str) -> str:
    # "." and ".." would be resolved away on the way: another object, or a collection, would be meant.
    if name in ("", ".", ".."):
        raise Refused(404, f"{name!r} is not the name of an object")
    return quote(name, safe="")
