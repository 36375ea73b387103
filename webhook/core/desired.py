"""What the owners of a group want: how many members, which ones, and which of them have failed.

Everything is read from objects as the API server writes them; options are not (`options.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from webhook.core import keys
from webhook.core.model import Desired, Group
from webhook.core.objects import EMPTY
from webhook.core.shapes import inside, integer, items, mapping, text, texts

# On an advanced StatefulSet: "true" keeps its controller from creating pods.
PAUSED_RECONCILE: Final = "paused-reconcile"
# On a StatefulSet: ordinals that its controller leaves out, as a JSON array (Advanced StatefulSet).
DELETE_SLOTS: Final = "delete-slots"
# The same wish on the TidbCluster or DMCluster, from where tidb-operator copies it.
CLUSTER_DELETE_SLOTS: Final = "{component}.tidb.pingcap.com/delete-slots"
ADVANCED_API_GROUP: Final = "apps.pingcap.com/"

# Where tidb-operator v1 records members that it has given up, by component (its API types, release 1.6).
FAILURE_RECORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pd": ("status", "pd", "failureMembers"),
        "tikv": ("status", "tikv", "failureStores"),
        "dm-master": ("status", "master", "failureMembers"),
    }
)

# Beyond this no names are listed (a slip must not cost gigabytes): every visible pod is desired.
NAMED_MEMBERS: Final = 10_000


def desired_v1(stateful_set: Mapping[str, Any], cluster_object: Mapping[str, Any] | None, group: Group) -> Desired:
    """What a StatefulSet of tidb-operator v1 wants; its replicas include those added by failover.

    `cluster_object` is the TidbCluster or DMCluster, None where there is none.
    """
    key = CLUSTER_DELETE_SLOTS.format(component=group.component)
    slots = slots_in(text(inside(cluster_object, "metadata", "annotations", key)))
    return Desired(
        replicas=_replicas(stateful_set),
        members=_members(stateful_set, text(inside(stateful_set, "metadata", "name")), slots),
        failure_members=_failure_members(cluster_object, group.component),
        paused=_paused_set(stateful_set),
    )


def desired_generic(stateful_set: Mapping[str, Any], group: Group) -> Desired:
    """What a generic StatefulSet wants; the group bears its name."""
    members = _members(stateful_set, group.cluster, None)
    return Desired(replicas=_replicas(stateful_set), members=members, paused=_paused_set(stateful_set))


def desired_v2(
    group_objects: Sequence[Mapping[str, Any]],
    instances: Sequence[Mapping[str, Any]],
    group: Group,
    cluster_object: Mapping[str, Any] | None = None,
) -> Desired:
    """What the v2 objects of the group's component and namespace want; those of other clusters are left out.

    An instance that no group object made counts for itself. Every visible pod is desired; an instance's pod is
    made again whenever it is not there, also while its store is being drained (`spec.offline`) or it waits for its
    successor (defer-delete). Not so that of an instance that is being deleted: its data goes with it.
    `cluster_object` is the Cluster, None where there is none.
    """
    wanted = sum(_replicas(item) for item in group_objects if _cluster_of(item) == group.cluster)
    own = [item for item in instances if _cluster_of(item) == group.cluster]
    alone = [item for item in own if not _group_object_of(item)]
    lasting = (item for item in own if not inside(item, "metadata", "deletionTimestamp"))
    names = (pod_of_instance(text(inside(item, "metadata", "name")), group.component) for item in lasting)
    return Desired(
        replicas=wanted + len(alone),
        instances=tuple(sorted(filter(None, names))),
        paused=_paused_cluster(cluster_object),
    )


def desired_ordinals(replicas: int, start: int, delete_slots: Collection[int]) -> tuple[int, ...]:
    """The ordinals of a set, ascending: `replicas` of them from `start` on, without the slots.

    As Advanced StatefulSet has it: each slot below the end moves the end up by one, others do nothing.
    """
    end = start + replicas
    left_out = set()
    for slot in sorted(set(delete_slots)):
        if start <= slot < end:
            left_out.add(slot)
            end += 1
    return tuple(ordinal for ordinal in range(start, end) if ordinal not in left_out)


def _paused_set(stateful_set: Mapping[str, Any]) -> str:
    """Why a set's controller creates no pods. Kubernetes' own knows no pause, also where the TidbCluster is paused."""
    if inside(stateful_set, "metadata", "deletionTimestamp"):
        # Orphaning or in the foreground: its controller does nothing for it any more.
        return "its StatefulSet is being deleted"
    advanced = text(stateful_set.get("apiVersion")).startswith(ADVANCED_API_GROUP)
    held = texts(inside(stateful_set, "metadata", "annotations")).get(PAUSED_RECONCILE) == "true"
    return f"its StatefulSet is paused by the annotation {PAUSED_RECONCILE}" if advanced and held else ""


def _paused_cluster(cluster_object: Mapping[str, Any] | None) -> str:
    """Why tidb-operator v2 creates no pods of a cluster."""
    if inside(cluster_object, "spec", "paused") is True:
        return "its Cluster is paused (spec.paused)"
    if inside(cluster_object, "spec", "suspendAction", "suspendCompute") is True:
        return "its Cluster is suspended (spec.suspendAction)"
    return ""


def _replicas(owner: Mapping[str, Any]) -> int:
    """Null counts 1, as Kubernetes and tidb-operator have it."""
    wanted = integer(inside(owner, "spec", "replicas"))
    return 1 if wanted is None else max(0, wanted)


def _members(
    stateful_set: Mapping[str, Any], name: str, cluster_slots: frozenset[int] | None
) -> tuple[str, ...] | None:
    """The names of the desired pods by ordinal, None where they cannot be known."""
    replicas = _replicas(stateful_set)
    if not name or replicas > NAMED_MEMBERS:
        return None
    start = max(0, integer(inside(stateful_set, "spec", "ordinals", "start")) or 0)
    readings = _readings(stateful_set, cluster_slots)
    ordinals = {ordinal for slots in readings for ordinal in desired_ordinals(replicas, start, slots)}
    return tuple(f"{name}-{ordinal}" for ordinal in sorted(ordinals))


def _readings(stateful_set: Mapping[str, Any], cluster_slots: frozenset[int] | None) -> tuple[frozenset[int], ...]:
    """The delete slots that may be in force. Where that is not certain, a member of any reading is desired.

    Kubernetes' own controller ignores the slots, though tidb-operator copies them to its sets all the same;
    and slots that only the cluster object has are a wish: the store there is alive until it has been drained.
    Not counting such a member would be unsafe, counting one that has gone is not.
    """
    own = slots_in(texts(inside(stateful_set, "metadata", "annotations")).get(DELETE_SLOTS, ""))
    if own is not None and text(stateful_set.get("apiVersion")).startswith(ADVANCED_API_GROUP):
        return (own,)
    slots = own if own is not None else cluster_slots
    return (frozenset(), slots) if slots else (frozenset(),)


def slots_in(annotation: str) -> frozenset[int] | None:
    """The slots of an annotation, None if it is absent or no array of numbers (then ignored, as upstream)."""
    try:
        raw = json.loads(annotation)
    except (ValueError, RecursionError):
        return None
    slots = [slot for slot in map(integer, items(raw)) if slot is not None]
    return frozenset(slots) if isinstance(raw, list) and len(slots) == len(raw) else None


def _failure_members(cluster_object: Mapping[str, Any] | None, component: str) -> Mapping[str, str]:
    records = inside(cluster_object, *FAILURE_RECORDS.get(component, ("status", "")))
    found = {}
    # By age: a pod that failed twice is on record twice, and its newest claim is the one that matters.
    for record in sorted(_records(records), key=lambda record: text(record.get("createdAt"))):
        found[text(record.get("podName"))] = _claim_uid(record)
    return found or EMPTY


def _records(records: object) -> Iterator[Mapping[str, Any]]:
    for record in mapping(records).values():
        if text(mapping(record).get("podName")):
            yield mapping(record)


def _claim_uid(record: Mapping[str, Any]) -> str:
    """One claim uid of the failed pod; tidb-operator deletes all its claims together, so any one will do."""
    uids = [uid for uid in mapping(record.get("pvcUIDSet")) if text(uid)]
    return text(record.get("pvcUID")) or min(uids, default="")


def _cluster_of(item: Mapping[str, Any]) -> str:
    return text(inside(item, "spec", "cluster", "name"))


def _group_object_of(instance: Mapping[str, Any]) -> str:
    return text(inside(instance, "metadata", "labels", keys.V2_GROUP))


def pod_of_instance(name: str, component: str) -> str:
    """The pod of a v2 instance, grouped or alone: `kv-x1y2z3` has `kv-tikv-x1y2z3`. "" for a name that has none."""
    prefix, hyphen, suffix = name.rpartition("-")
    return f"{prefix}-{component}-{suffix}" if hyphen else ""
