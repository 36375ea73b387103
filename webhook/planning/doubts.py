"""What a plan cannot know, since the dump does not hold it: a wrong answer must not look like a right one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.cluster import door
from webhook.cluster.door import Manifest
from webhook.cluster.dump_gaps import Contents, gaps, lacks_the_indispensable, namespace_of
from webhook.cluster.kinds import resource_of
from webhook.core import keys
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.review import KIND as REVIEW
from webhook.core.shapes import inside, integer, items, text, texts
from webhook.embedded.sets import SetError, pods_of
from webhook.planning.inputs import DEFAULT_NAMESPACE, STATEFUL_SET, Wanted

# Characters of a foreign key that are shown.
_SHOWN: Final = 90


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence about what is missing. `decisive`: no answer can be relied on."""

    text: str
    decisive: bool = False


def doubts(dump: Sequence[Manifest], merged: Sequence[Manifest], wanted: Sequence[Wanted]) -> tuple[Doubt, ...]:
    """What is to be said of a dump; `merged` are its objects with the wanted StatefulSets in their places."""
    before, after = Contents(dump), Contents(merged)
    decisive = lacks_the_indispensable(before)
    found = [Doubt(text, decisive) for text in gaps(after)]
    found += [Doubt(text) for each in wanted for text in _namespace(before, each)]
    found += [Doubt(text) for each in wanted for text in _unread_options(each)]
    found += [Doubt(text, decisive=True) for text in _unknown_data(before, after, wanted)]
    return tuple(dict.fromkeys(found))


def _namespace(dump: Contents, wanted: Wanted) -> Iterator[str]:
    """Whether the object is perhaps meant for another namespace."""
    if wanted.kind == REVIEW:
        return
    resource = door.STATEFUL_SETS if wanted.kind == STATEFUL_SET else door.PODS
    named = text(inside(wanted.manifest, "metadata", "namespace"))
    here, what = named or DEFAULT_NAMESPACE, f"{wanted.kind} {wanted.name}"
    if dump.find(resource, wanted.name, here):
        return
    elsewhere = sorted(
        namespace_of(found, resource) for found in dump.of(resource) if found["metadata"]["name"] == wanted.name
    )
    if not named:
        there = f"; one of that name is in {', '.join(elsewhere[:3])}: name the namespace" if elsewhere else ""
        yield f"{what} names no namespace, so {DEFAULT_NAMESPACE} is taken{there}"
    elif here not in dump.namespaces():
        meant = f"; {what} is in {', '.join(elsewhere[:3])}" if elsewhere else ""
        yield f"{what} is of namespace {here}, and nothing in the dump is{meant}; is the name right?"


def _unread_options(wanted: Wanted) -> Iterator[str]:
    """Options on a StatefulSet of tidb-operator v1, which are read from its cluster object."""
    labels = texts(inside(wanted.manifest, "spec", "template", "metadata", "labels"))
    if wanted.kind != STATEFUL_SET or labels.get(keys.V1_MANAGED_BY) != keys.TIDB_OPERATOR:
        return
    for key in sorted(texts(inside(wanted.manifest, "metadata", "annotations"))):
        if key.startswith(keys.PREFIX):
            yield (
                f"annotation {key[:_SHOWN]} of StatefulSet {wanted.name} is not read there: options of tidb-operator v1"
                " stand on the TidbCluster or DMCluster"
            )


def _unknown_data(dump: Contents, merged: Contents, wanted: Iterable[Wanted]) -> Iterator[str]:
    """The claims and volumes that members certainly have, and that the dump does not hold."""
    for stateful_set in _sets_of(merged, wanted):
        missing = list(_missing_data(dump, stateful_set))
        if missing:
            more = f" (and {len(missing) - 1} more such)" if len(missing) > 1 else ""
            yield f"{missing[0]}, is not in the dump{more}: where its data is, and so where it must be, is not known"


def _sets_of(merged: Contents, wanted: Iterable[Wanted]) -> Iterator[Manifest]:
    """The StatefulSets whose pods are planned, each once."""
    names = dict.fromkeys(_set_of(each) for each in wanted)
    for found in (*merged.of(door.STATEFUL_SETS), *merged.of(door.ADVANCED_STATEFUL_SETS)):
        if (namespace_of(found, door.STATEFUL_SETS), found["metadata"]["name"]) in names:
            yield found


def _set_of(wanted: Wanted) -> tuple[str, str]:
    """Namespace and name of the StatefulSet that an object is, or is controlled by."""
    if wanted.kind == STATEFUL_SET:
        return wanted.namespace, wanted.name
    manifest, namespace = wanted.manifest, wanted.namespace
    if wanted.kind == REVIEW:
        manifest = inside(manifest, "request", "object") or {}
        namespace = text(inside(wanted.manifest, "request", "namespace")) or DEFAULT_NAMESPACE
    owner = pod_from(manifest).owner
    return namespace, owner.name if owner is not None and owner.kind == STATEFUL_SET else ""


def _missing_data(dump: Contents, stateful_set: Manifest) -> Iterator[str]:
    namespace = namespace_of(stateful_set, door.STATEFUL_SETS)
    for pod in _members_with_data(dump, stateful_set, namespace):
        member = pod["metadata"]["name"]
        for volume in items(inside(pod, "spec", "volumes")):
            name = text(inside(volume, "persistentVolumeClaim", "claimName"))
            claim = dump.find(door.CLAIMS, name, namespace)
            volume_name = text(inside(claim, "spec", "volumeName"))
            if name and claim is None:
                yield f"PersistentVolumeClaim {namespace}/{name}, which {member} has"
            elif volume_name and not dump.find(door.PERSISTENT_VOLUMES, volume_name):
                yield f"PersistentVolume {volume_name}, on which data of {member} is"


def _members_with_data(dump: Contents, stateful_set: Manifest, namespace: str) -> list[Manifest]:
    """The members that are there or have been: their claims outlive them."""
    try:
        wanted = list(pods_of(stateful_set))
    except SetError:
        # Said by the planner.
        return []
    if not wanted or recognise(pod_from(wanted[0], namespace=namespace), stateful_set).group is None:
        return []
    before = dump.find(resource_of(stateful_set) or door.STATEFUL_SETS, stateful_set["metadata"]["name"], namespace)
    had = integer(inside(before, "status", "replicas")) or 0
    there = [dump.find(door.PODS, pod["metadata"]["name"], namespace) for pod in wanted]
    begun = max((index + 1 for index, pod in enumerate(there) if pod is not None), default=0)
    return wanted[: max(had, begun)]
