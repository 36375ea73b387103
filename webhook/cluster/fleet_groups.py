"""Which pods of a cluster form which groups, and which groups should have pods and have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.cluster import door
from webhook.cluster.door import Manifest
from webhook.cluster.owners import V2_KINDS, stateful_set_resource
from webhook.cluster.reader import Reader
from webhook.core import keys
from webhook.core.groups import V2_API_GROUP, is_member, needs_owner, ordinal_of, recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Group
from webhook.core.objects import OwnerReference, Pod
from webhook.core.shapes import inside, integer, text, texts

SETS: Final = (door.STATEFUL_SETS, door.ADVANCED_STATEFUL_SETS)


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a group, and as its owner would have it.

    That is with the owner that it had before it was orphaned, and with the class of its template by now.
    """

    pod: Pod
    owned: Pod


def grouped(pods: Iterable[Pod], wishes: Reader) -> dict[Group, list[Member]]:
    """The groups of these pods; `wishes` reads their owners."""
    found: dict[Group, list[Member]] = {}
    for pod in pods:
        owned = pod if pod.owner is not None else replace(pod, owner=_former_owner(pod))
        owner = _owner(owned, wishes) if needs_owner(owned) else None
        owned = _as_of_now(owned, owner)
        group = recognise(owned, owner).group
        if group is not None and is_member(group, pod):
            found.setdefault(group, []).append(Member(pod, owned))
    return found


def expected_groups(wishes: Reader) -> Iterator[tuple[Group, Pod]]:
    """The groups whose owners want pods, each with a pod that names its owner, whether there are any or not."""
    for resource in SETS:
        for stateful_set in wishes.list(resource).items:
            if integer(inside(stateful_set, "spec", "replicas")) != 0:
                yield from _group_of(_first_pod(stateful_set), stateful_set)
    for component, (groups, instances) in V2_KINDS.items():
        for found in (*wishes.list(groups).items, *wishes.list(instances).items):
            yield from _group_of(_v2_pod(found, component), None)


def _group_of(pod: Pod, owner: Mapping[str, Any] | None) -> Iterator[tuple[Group, Pod]]:
    group = recognise(pod, owner).group
    if group is not None:
        yield group, pod


def _owner(pod: Pod, wishes: Reader) -> Manifest | None:
    resource = stateful_set_resource(pod)
    if resource is None or pod.owner is None:
        return None
    return wishes.find(resource, pod.owner.name, namespace=pod.namespace)


def _as_of_now(pod: Pod, owner: Manifest | None) -> Pod:
    """A generic set's pod with the class that its set has by now: all its pods are of one group."""
    labels = texts(inside(owner, "spec", "template", "metadata", "labels"))
    value = labels.get(keys.CLASS_LABEL)
    return pod if value is None else replace(pod, labels={**pod.labels, keys.CLASS_LABEL: value})


def _former_owner(pod: Pod) -> OwnerReference:
    """The controller that a pod had whose labels and name are all that is left of it."""
    if pod.labels.get(keys.V2_MANAGED_BY) == keys.TIDB_OPERATOR:
        return OwnerReference(f"{V2_API_GROUP}/v1alpha1", "", pod.name, "")
    name = pod.name if ordinal_of(pod.name) is None else pod.name.rpartition("-")[0]
    return OwnerReference("apps/v1", "StatefulSet", name, "")


def _first_pod(stateful_set: Manifest) -> Pod:
    """As much of a set's first pod as tells its group."""
    metadata = stateful_set["metadata"]
    owner = {"kind": "StatefulSet", "apiVersion": stateful_set["apiVersion"], "name": metadata["name"]}
    return pod_from(
        {
            "metadata": {
                "name": f"{metadata['name']}-0",
                "namespace": metadata.get("namespace"),
                "labels": texts(inside(stateful_set, "spec", "template", "metadata", "labels")),
                "ownerReferences": [{**owner, "controller": True}],
            }
        }
    )


def _v2_pod(owner: Manifest, component: str) -> Pod:
    """As much of a pod of a v2 object as tells its group."""
    labels = {
        keys.V2_MANAGED_BY: keys.TIDB_OPERATOR,
        keys.V2_CLUSTER: text(inside(owner, "spec", "cluster", "name")),
        keys.V2_COMPONENT: component,
    }
    metadata = owner["metadata"]
    return Pod(
        namespace=text(metadata.get("namespace")),
        name=metadata["name"],
        labels=labels,
        owner=OwnerReference(owner["apiVersion"], owner["kind"], metadata["name"], ""),
    )
