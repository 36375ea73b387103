"""A pod that is not there: who would create it, or what was meant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from webhook.cluster.door import (
    ADVANCED_STATEFUL_SETS,
    NAMESPACES,
    PODS,
    STATEFUL_SETS,
    Manifest,
    Resource,
)
from webhook.cluster.owners import V2_KINDS
from webhook.cluster.reader import STALE, Reader
from webhook.core.groups import ordinal_of
from webhook.core.shapes import inside, integer, text
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import Forbidden, SettingsError
from webhook.operating.names import no_such

SETS: Final[tuple[Resource, ...]] = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS)


@dataclass(frozen=True, slots=True)
class Expected:
    """A pod that is not there though somebody should know of it.

    `why` is the sentence's end; `owner` the owner's name; `manifest` the pod as its owner would create it, None
    where that cannot be known or it would not.
    """

    why: str
    owner: str
    manifest: Manifest | None = None


def expected(reader: Reader, namespace: str, name: str) -> Expected | None:
    """What is known of a pod that does not exist, by its name; None if nobody would create it."""
    return _of_a_set(reader, namespace, name) or _of_an_instance(reader, namespace, name)


def _of_a_set(reader: Reader, namespace: str, name: str) -> Expected | None:
    if ordinal_of(name) is None:
        return None
    owner = name.rpartition("-")[0]
    for resource in SETS:
        found = reader.find(resource, owner, namespace=namespace)
        if found is not None:
            return _by_its_set(found, owner, name)
    return None


def _by_its_set(stateful_set: Manifest, owner: str, name: str) -> Expected:
    try:
        pods = {pod["metadata"]["name"]: pod for pod in pods_of(stateful_set)}
    except SetError as error:
        return Expected(f"StatefulSet {owner} cannot create it: {error}", owner)
    if name in pods:
        return Expected(
            f"StatefulSet {owner} wants it ({len(pods)} replicas): its create was refused, or has not come yet",
            owner,
            pods[name],
        )
    replicas = integer(inside(stateful_set, "spec", "replicas"))
    return Expected(f"StatefulSet {owner} does not want it: its replicas are {replicas}", owner)


def _of_an_instance(reader: Reader, namespace: str, name: str) -> Expected | None:
    """tidb-operator v2: the instance kv-x1y2z3 has the pod kv-tikv-x1y2z3."""
    for component, (_, resource) in V2_KINDS.items():
        prefix, infix, suffix = name.rpartition(f"-{component}-")
        if not infix:
            continue
        owner = f"{prefix}-{suffix}"
        if reader.find(resource, owner, namespace=namespace) is not None:
            why = f"{resource.kind} {owner} has it: its create was refused, or has not come yet"
            return Expected(why, owner)
    return None


def unknown_pod(reader: Reader, namespace: str, name: str) -> SettingsError:
    """The error for a pod that nobody knows, with what may have been meant."""
    everywhere = _names_by_namespace(reader)
    if everywhere is None:
        there = reader.list(PODS, namespace=namespace, resource_version=STALE).items
        return no_such("pod", name, _names(there), f"in namespace {namespace}")
    others = sorted(other for other, names in everywhere.items() if name in names)
    if others:
        return SettingsError(f"there is no pod {name!r} in namespace {namespace}; it is in {others[0]}: -n {others[0]}")
    if problem := missing_namespace(reader, namespace, everywhere):
        return problem
    return no_such("pod", name, everywhere.get(namespace, ()), f"in namespace {namespace}")


def missing_namespace(reader: Reader, namespace: str, occupied: Iterable[str] = ()) -> SettingsError | None:
    """The error for a namespace that is not there, None if it is, or may be. `occupied`: some that are."""
    known = set(occupied)
    try:
        listed = _names(reader.list(NAMESPACES, resource_version=STALE).items)
        # A dump need not hold them.
        known |= listed or {_namespace(found) for found in reader.list(STATEFUL_SETS, resource_version=STALE).items}
    except Forbidden:
        return None
    return None if namespace in known or not known else no_such("namespace", namespace, known)


def _names_by_namespace(reader: Reader) -> dict[str, set[str]] | None:
    """The names of all pods; None where they may not be listed."""
    found: dict[str, set[str]] = {}

    def visit(pod: Manifest) -> None:
        found.setdefault(_namespace(pod), set()).add(pod["metadata"]["name"])

    try:
        reader.scan(PODS, visit, resource_version=STALE)
    except Forbidden:
        return None
    return found


def _namespace(manifest: Manifest) -> str:
    return text(inside(manifest, "metadata", "namespace"))


def _names(manifests: tuple[Manifest, ...]) -> set[str]:
    return {manifest["metadata"]["name"] for manifest in manifests}
