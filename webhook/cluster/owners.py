"""What a group's owners want: replicas, delete slots, failure members, and the options on owner objects.

Replicas must be known: an owner that is missing is API trouble, never "a set of one". Options may be absent
with their object or with the whole kind (docs/design.md, section 8); any other failure to read them is API trouble.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webhook.cluster import door
from webhook.cluster.door import Manifest, Resource
from webhook.cluster.kinds import stateful_sets_of
from webhook.cluster.reader import Reader
from webhook.core import options
from webhook.core.carriers import OptionCarriers
from webhook.core.desired import desired_generic, desired_v1, desired_v2
from webhook.core.model import Desired, Family, Group
from webhook.core.objects import Pod
from webhook.core.shapes import inside, items, mapping, text, texts
from webhook.errors import NotFound

V2_KINDS: Final[Mapping[str, tuple[Resource, Resource]]] = {
    "pd": (door.PD_GROUPS, door.PDS),
    "tikv": (door.TIKV_GROUPS, door.TIKVS),
    "dm-master": (door.DM_GROUPS, door.DMS),
}
"""tidb-operator v2's group and instance kinds by component."""

_V1_CLUSTERS: Final = {kind.kind: kind for kind in (door.TIDB_CLUSTERS, door.DM_CLUSTERS)}


@dataclass(frozen=True, slots=True)
class Owners:
    """The objects that own a group, as far as its family has them."""

    stateful_set: Manifest | None = None
    cluster: Manifest | None = None
    group_objects: Sequence[Manifest] = ()
    instances: Sequence[Manifest] = ()


def read_desired(reader: Reader, group: Group, placing: Sequence[Pod], visible: Sequence[Pod]) -> Desired:
    """Read what the group's owners want; the first of the pods that names its StatefulSet says which that is.

    `placing` are the pods to be placed, whose own options are resolved too. Raises NotFound where the
    owners, and so the replicas, cannot be found.
    """
    owners = read_owners(reader, group, (*placing, *visible))
    carriers = _carriers(group, owners)
    return replace(
        _desired(group, owners),
        options=options.of_group(group.component, carriers),
        pod_options={pod.name: options.of_pod(group.component, pod, carriers) for pod in placing},
        option_carriers=carriers,
    )


def read_owners(reader: Reader, group: Group, pods: Iterable[Pod]) -> Owners:
    """Read the owner objects of a group. Raises NotFound where its StatefulSet or v2 kinds are not there."""
    if group.family is Family.OPERATOR_V2:
        return _read_v2(reader, group)
    stateful_set = _read_stateful_set(reader, group, pods)
    if group.family is Family.GENERIC:
        return Owners(stateful_set=stateful_set)
    return Owners(stateful_set=stateful_set, cluster=_read_v1_cluster(reader, group, stateful_set))


def _carriers(group: Group, owners: Owners) -> OptionCarriers:
    carriers = owners.group_objects
    if group.family is Family.GENERIC and owners.stateful_set is not None:
        carriers = (owners.stateful_set,)
    return OptionCarriers(
        group_objects={text(inside(found, "metadata", "name")): _annotations(found) for found in carriers},
        cluster=_annotations(owners.cluster),
        by_label=group.family is Family.OPERATOR_V2,
    )


def _desired(group: Group, owners: Owners) -> Desired:
    if group.family is Family.OPERATOR_V2:
        return desired_v2(owners.group_objects, owners.instances, group, owners.cluster)
    stateful_set = mapping(owners.stateful_set)
    if group.family is Family.GENERIC:
        return desired_generic(stateful_set, group)
    return desired_v1(stateful_set, owners.cluster, group)


def _read_stateful_set(reader: Reader, group: Group, pods: Iterable[Pod]) -> Manifest:
    for pod in pods:
        resource = stateful_set_resource(pod)
        if resource is not None and pod.owner is not None:
            return reader.get(resource, pod.owner.name, namespace=group.namespace)
    raise NotFound("get", "statefulsets", "", status=404, detail=f"no pod of {group} names its StatefulSet")


def stateful_set_resource(pod: Pod) -> Resource | None:
    """The kind of StatefulSet that controls the pod, None if none does."""
    if pod.owner is None or pod.owner.kind != "StatefulSet":
        return None
    return stateful_sets_of(pod.owner.api_group)


def _read_v1_cluster(reader: Reader, group: Group, stateful_set: Manifest) -> Manifest | None:
    for raw in items(inside(stateful_set, "metadata", "ownerReferences")):
        reference = mapping(raw)
        resource = _V1_CLUSTERS.get(text(reference.get("kind")))
        api_group = text(reference.get("apiVersion")).rpartition("/")[0]
        if resource and api_group == resource.group and reference.get("controller") is True:
            return reader.find(resource, text(reference.get("name")), namespace=group.namespace)
    return None


def _read_v2(reader: Reader, group: Group) -> Owners:
    group_kind, instance_kind = V2_KINDS[group.component]
    group_objects = _of_cluster(reader, group_kind, group)
    instances = _of_cluster(reader, instance_kind, group)
    if not group_objects and not instances:
        detail = f"no {group_kind.kind} and no {instance_kind.kind} of {group}"
        raise NotFound("list", group_kind.plural, "", status=404, detail=detail)
    cluster = reader.find(door.V2_CLUSTERS, group.cluster, namespace=group.namespace)
    return Owners(cluster=cluster, group_objects=group_objects, instances=instances)


def _of_cluster(reader: Reader, resource: Resource, group: Group) -> tuple[Manifest, ...]:
    listing = reader.list(resource, namespace=group.namespace)
    return tuple(found for found in listing.items if inside(found, "spec", "cluster", "name") == group.cluster)


def _annotations(manifest: Manifest | None) -> Mapping[str, str]:
    return texts(inside(manifest, "metadata", "annotations"))
