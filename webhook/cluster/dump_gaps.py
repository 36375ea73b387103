"""What a dump seems to lack: kinds that were not dumped, objects that others name, namespaces that were left out.

A dump without pods or claims is decided on as a cluster that has none, which would be a wrong answer and no error. So
whatever can be seen to be missing is said, in sentences for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from webhook.cluster import door
from webhook.cluster.door import Manifest, Resource
from webhook.cluster.kinds import DUMP_COMMAND, resource_of
from webhook.cluster.owners import V2_KINDS
from webhook.core import keys
from webhook.core.shapes import inside, items, mapping, text

NEEDED: Final = (
    door.NODES,
    door.PODS,
    door.CLAIMS,
    door.PERSISTENT_VOLUMES,
    door.STORAGE_CLASSES,
    door.STATEFUL_SETS,
)
"""What every answer rests on, and any cluster that runs a set with data has."""

INDISPENSABLE: Final = (door.NODES, door.PODS)
"""Without one of these nothing can be said at all."""

CLUSTER_KINDS: Final = {kind.kind: kind for kind in (door.TIDB_CLUSTERS, door.DM_CLUSTERS)}
"""The objects that own v1's StatefulSets and carry their options."""

_DEFAULT_NAMESPACE: Final = "default"
_OVER: Final = ("Succeeded", "Failed")

# A resource, a namespace ("" where there is none) and a name.
Key = tuple[Resource, str, str]


class Contents:
    """The objects of a dump, by kind and by name."""

    def __init__(self, objects: Iterable[Manifest]) -> None:
        self._by_kind: dict[Resource, list[Manifest]] = {}
        self._by_key: dict[Key, Manifest] = {}
        for found in objects:
            resource = resource_of(found)
            if resource is not None:
                self._by_kind.setdefault(resource, []).append(found)
                self._by_key[resource, namespace_of(found, resource), found["metadata"]["name"]] = found

    def of(self, resource: Resource) -> list[Manifest]:
        """The objects of a kind."""
        return self._by_kind.get(resource, [])

    def find(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:
        """The object of that name, if it is there."""
        return self._by_key.get((resource, namespace if resource.namespaced else "", name))

    def namespaces(self) -> frozenset[str]:
        """Those that are there, or that something is in."""
        named = {found["metadata"]["name"] for found in self.of(door.NAMESPACES)}
        return frozenset(named | {namespace for _, namespace, _ in self._by_key if namespace})


def namespace_of(manifest: Mapping[str, Any], resource: Resource) -> str:
    """The namespace that an object is in, "" where its kind has none."""
    return (text(inside(manifest, "metadata", "namespace")) or _DEFAULT_NAMESPACE) if resource.namespaced else ""


def gaps(contents: Contents) -> tuple[str, ...]:
    """Sentences about what is missing, the most important first; none for a dump that seems to be whole."""
    return (*_missing_kinds(contents), *_one_namespace(contents), *_missing_owners(contents), *_storage(contents))


def lacks_the_indispensable(contents: Contents) -> bool:
    """Whether a kind is missing without which nothing can be said."""
    return not all(contents.of(resource) for resource in INDISPENSABLE)


def _missing_kinds(contents: Contents) -> Iterator[str]:
    absent = [resource for resource in NEEDED if not contents.of(resource)]
    if not lacks_the_indispensable(contents):
        named = dict(_named(contents))
        yield from _missing_objects(contents, named)
        absent = [resource for resource in absent if resource in named]
    if absent:
        kinds = ", no ".join(resource.kind for resource in absent)
        yield f"the dump holds no {kinds}; is it complete? A whole one is made by: {DUMP_COMMAND}"


def _missing_objects(contents: Contents, named: Mapping[Resource, list[str]]) -> Iterator[str]:
    """Of kinds that are there, objects that others name."""
    for resource, sentences in named.items():
        if contents.of(resource):
            more = f" (and {len(sentences) - 1} more such)" if len(sentences) > 1 else ""
            yield f"{sentences[0]}, is not in the dump{more}; is it complete?"


def _named(contents: Contents) -> Iterator[tuple[Resource, list[str]]]:
    """The kinds of which something is named and not there, each with the beginnings of sentences about it."""
    found = {
        door.CLAIMS: [
            f"PersistentVolumeClaim {where}/{name}, which Pod {pod} names"
            for where, pod, name in _claims_of_pods(contents)
            if not contents.find(door.CLAIMS, name, where)
        ],
        door.PERSISTENT_VOLUMES: [
            f"PersistentVolume {volume}, which PersistentVolumeClaim {claim} is bound to"
            for claim, volume in _volumes_of_claims(contents)
            if not contents.find(door.PERSISTENT_VOLUMES, volume)
        ],
        door.STATEFUL_SETS: [
            f"StatefulSet {where}/{name}, which controls Pod {pod}"
            for where, pod, name in _sets_of_pods(contents)
            if not contents.find(door.STATEFUL_SETS, name, where)
        ],
        # A class may be gone while its volumes are used: only that there is none at all is odd.
        door.STORAGE_CLASSES: ["a class"] if contents.of(door.CLAIMS) and not contents.of(door.STORAGE_CLASSES) else [],
    }
    yield from ((resource, sentences) for resource, sentences in found.items() if sentences)


def _claims_of_pods(contents: Contents) -> Iterator[tuple[str, str, str]]:
    for pod in contents.of(door.PODS):
        if text(inside(pod, "status", "phase")) not in _OVER:
            for volume in items(inside(pod, "spec", "volumes")):
                if name := text(inside(volume, "persistentVolumeClaim", "claimName")):
                    yield namespace_of(pod, door.PODS), pod["metadata"]["name"], name


def _volumes_of_claims(contents: Contents) -> Iterator[tuple[str, str]]:
    for claim in contents.of(door.CLAIMS):
        if name := text(inside(claim, "spec", "volumeName")):
            yield f"{namespace_of(claim, door.CLAIMS)}/{claim['metadata']['name']}", name


def _sets_of_pods(contents: Contents) -> Iterator[tuple[str, str, str]]:
    for pod in contents.of(door.PODS):
        for owner in items(inside(pod, "metadata", "ownerReferences")):
            if (inside(owner, "kind"), inside(owner, "apiVersion")) == ("StatefulSet", "apps/v1"):
                yield namespace_of(pod, door.PODS), pod["metadata"]["name"], text(inside(owner, "name"))


def _one_namespace(contents: Contents) -> Iterator[str]:
    spaces = {namespace_of(pod, door.PODS) for pod in contents.of(door.PODS)}
    if len(spaces) == 1 and contents.of(door.NODES):
        yield (
            f"all Pods of the dump are of namespace {spaces.pop()}: was kubectl run without -A? Others' pods take room "
            "on the nodes"
        )


def _missing_owners(contents: Contents) -> Iterator[str]:
    """What carries the options, and v2's replicas, of groups that are there."""
    missing: dict[str, Resource] = {}
    for stateful_set in contents.of(door.STATEFUL_SETS):
        where = namespace_of(stateful_set, door.STATEFUL_SETS)
        for owner in map(mapping, items(inside(stateful_set, "metadata", "ownerReferences"))):
            resource, name = CLUSTER_KINDS.get(text(owner.get("kind"))), text(owner.get("name"))
            if resource and not contents.find(resource, name, where):
                missing.setdefault(f"{resource.kind} {where}/{name}", resource)
    if missing:
        more = f" (and {len(missing) - 1} more such)" if len(missing) > 1 else ""
        kinds = _kinds(dict.fromkeys(missing.values()))
        yield f"{next(iter(missing))} is not in the dump{more}, so no option that stands there is known; add {kinds}"
    for component, kinds_of in V2_KINDS.items():
        if not any(map(contents.of, kinds_of)) and any(_is_of_v2(pod, component) for pod in contents.of(door.PODS)):
            names = " and no ".join(kind.kind for kind in kinds_of)
            yield f"the dump holds no {names}, though pods of such; add {_kinds(kinds_of)}"


def _is_of_v2(pod: Manifest, component: str) -> bool:
    labels = mapping(inside(pod, "metadata", "labels"))
    return labels.get(keys.V2_MANAGED_BY) == keys.TIDB_OPERATOR and labels.get(keys.V2_COMPONENT) == component


def _kinds(resources: Iterable[Resource]) -> str:
    """Kinds as kubectl is asked for them."""
    return f"{','.join(f'{each.plural}.{each.group}' for each in resources)} to the kinds that are dumped"


def _storage(contents: Contents) -> Iterator[str]:
    """What CSI drivers that are in use publish in objects of their own."""
    drivers = {text(inside(found, "spec", "csi", "driver")) for found in contents.of(door.PERSISTENT_VOLUMES)}
    published = {found["metadata"]["name"]: found for found in contents.of(door.CSI_DRIVERS)}
    drivers |= published.keys() & {text(found.get("provisioner")) for found in contents.of(door.STORAGE_CLASSES)}
    used = sorted(filter(None, drivers))
    if used and not contents.of(door.CSI_NODES):
        yield (
            f"volumes of {', '.join(used[:3])} are used and the dump holds no CSINode, so how many of them a node takes"
            f" is not known; a whole one is made by: {DUMP_COMMAND}"
        )
    publishers = [name for name in used if inside(published.get(name), "spec", "storageCapacity") is True]
    if publishers and not contents.of(door.CSI_STORAGE_CAPACITIES):
        yield (
            f"{', '.join(publishers[:3])} publishes what is free and the dump holds no CSIStorageCapacity, so no node "
            f"seems to have any; a whole one is made by: {DUMP_COMMAND}"
        )
