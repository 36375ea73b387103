"""What each step does to the copy, and what the owners of groups then want."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from copy import deepcopy
from typing import Final

from webhook.cluster.door import ADVANCED_STATEFUL_SETS, CLAIMS, NODES, PODS, STATEFUL_SETS, Manifest, Resource
from webhook.cluster.owners import V2_KINDS
from webhook.cluster.reader import Reader
from webhook.core import keys
from webhook.core.audited import ZONE
from webhook.core.shapes import inside, integer, mapping, text
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import NotFound, SettingsError
from webhook.operating.auditing import Report
from webhook.operating.draining import nodes_of
from webhook.operating.names import no_such
from webhook.operating.simulating.steps import AddNodes, LoseNodes, LoseZone, Scale, Step
from webhook.operating.simulating.volumes import TIMEOUT
from webhook.operating.simulating.world import World

SETS: Final = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS)
_OF_ONE_HOST: Final = re.compile(r"node\.kubernetes\.io/.*")


def nodes_lost(report: Report, step: Step) -> tuple[str, ...]:
    """The nodes that a step takes away. Raises SettingsError for a name that is not there."""
    if isinstance(step, LoseNodes):
        return nodes_of(report, step.names, ())
    return nodes_of(report, (), (step.zone,)) if isinstance(step, LoseZone) else ()


def act(world: World, step: Step, lost: Collection[str]) -> None:
    """Do to the cluster what the step says; `lost`: of `nodes_lost`. Raises SettingsError for what is not there."""
    if isinstance(step, AddNodes):
        _add_nodes(world, step)
    elif isinstance(step, Scale):
        _scale(world, step)
    else:
        world.lose(lost)


def wanted(world: World) -> Iterator[Manifest]:
    """The pods that the owners would create now, those that are not there, in order."""
    for resource in SETS:
        for stateful_set in _all(world.reader, resource):
            try:
                yield from (_as_last_seen(world, pod) for pod in pods_of(stateful_set) if not _is_there(world, pod))
            except SetError:
                # As it is in dumps that were cut: its pods are created as they were last seen.
                yield from _gone_pods_of(world, stateful_set)
    for component, (_, instances) in V2_KINDS.items():
        for instance in _all(world.reader, instances):
            name = pod_of_instance(instance["metadata"]["name"], component)
            pod = world.last.get((instance["metadata"]["namespace"], name))
            if pod is not None and not _is_there(world, pod):
                yield pod


def pod_of_instance(name: str, component: str) -> str:
    """The pod of a v2 instance: `kv-x1y2z3` has `kv-tikv-x1y2z3`."""
    prefix, _, suffix = name.rpartition("-")
    return f"{prefix}-{component}-{suffix}"


def _all(reader: Reader, resource: Resource) -> tuple[Manifest, ...]:
    try:
        return reader.list(resource).items
    except NotFound:
        return ()


def _is_there(world: World, pod: Manifest) -> bool:
    metadata = pod["metadata"]
    return world.reader.find(PODS, metadata["name"], namespace=metadata["namespace"]) is not None


def _as_last_seen(world: World, pod: Manifest) -> Manifest:
    return world.last.get((pod["metadata"]["namespace"], pod["metadata"]["name"]), pod)


def _gone_pods_of(world: World, stateful_set: Manifest) -> Iterator[Manifest]:
    metadata, replicas = stateful_set["metadata"], integer(inside(stateful_set, "spec", "replicas")) or 0
    for ordinal in range(replicas):
        pod = world.last.get((metadata["namespace"], f"{metadata['name']}-{ordinal}"))
        if pod is not None and not _is_there(world, pod):
            yield pod


def _add_nodes(world: World, step: AddNodes) -> None:
    nodes = world.reader.list(NODES).items
    alike = [node for node in nodes if not step.zone or inside(node, "metadata", "labels", ZONE) == step.zone]
    if not nodes:
        raise SettingsError("add-nodes: there is no node that new ones could be like")
    pattern = next((node for node in alike or nodes if not inside(node, "spec", "unschedulable")), (alike or nodes)[0])
    taken = {node["metadata"]["name"] for node in nodes}
    free = (name for number in range(1, len(taken) + step.count + 1) if (name := f"new-{number}") not in taken)
    for name, _ in zip(free, range(step.count), strict=False):
        world.cluster.create(NODES, _node_like(pattern, name, step.zone), timeout=TIMEOUT)


def _node_like(pattern: Manifest, name: str, zone: str) -> Manifest:
    node = deepcopy(pattern)
    labels = {**(node["metadata"].get("labels") or {}), keys.HOSTNAME: name} | ({ZONE: zone} if zone else {})
    taints = inside(node, "spec", "taints") or []
    node["metadata"] = {"name": name, "labels": labels}
    node["spec"] = {"taints": [taint for taint in taints if not _OF_ONE_HOST.fullmatch(text(inside(taint, "key")))]}
    node["status"] = {**(node.get("status") or {}), "conditions": [{"type": "Ready", "status": "True"}]}
    return node


def _scale(world: World, step: Scale) -> None:
    for resource in SETS:
        if world.reader.find(resource, step.name, namespace=step.namespace) is not None:
            _set_replicas(world, resource, step)
            _remove_beyond(world, resource, step)
            return
    for component, (groups, instances) in V2_KINDS.items():
        if world.reader.find(groups, step.name, namespace=step.namespace) is not None:
            _set_replicas(world, groups, step)
            _scale_instances(world, step, component, instances)
            return
    names = [
        f"{found['metadata']['namespace']}/{found['metadata']['name']}"
        for resource in (*SETS, *(groups for groups, _ in V2_KINDS.values()))
        for found in _all(world.reader, resource)
    ]
    raise no_such("StatefulSet or group object", f"{step.namespace}/{step.name}", names)


def _set_replicas(world: World, resource: Resource, step: Scale) -> None:
    patch = {"spec": {"replicas": step.replicas}}
    world.cluster.merge_patch(resource, step.name, patch, namespace=step.namespace, timeout=TIMEOUT)


def _remove_beyond(world: World, resource: Resource, step: Scale) -> None:
    """The set's controller takes away the pods that are not wanted any more."""
    stateful_set = world.reader.get(resource, step.name, namespace=step.namespace)
    try:
        names = {pod["metadata"]["name"] for pod in pods_of(stateful_set)}
    except SetError as error:
        raise SettingsError(f"{step}: {error}") from error
    for pod in world.reader.list(PODS, namespace=step.namespace).items:
        owners = inside(pod, "metadata", "ownerReferences") or []
        is_own = any(inside(owner, "name") == step.name and inside(owner, "kind") == "StatefulSet" for owner in owners)
        if is_own and pod["metadata"]["name"] not in names:
            world.cluster.delete(PODS, pod["metadata"]["name"], namespace=step.namespace, timeout=TIMEOUT)


def _scale_instances(world: World, step: Scale, component: str, resource: Resource) -> None:
    """tidb-operator v2 makes instances, or takes the last away; a new one is like the first."""
    own = [
        found
        for found in _all(world.reader, resource)
        if found["metadata"]["namespace"] == step.namespace
        and inside(found, "metadata", "labels", keys.V2_GROUP) == step.name
    ]
    for instance in own[step.replicas :]:
        name = instance["metadata"]["name"]
        world.cluster.delete(resource, name, namespace=step.namespace, timeout=TIMEOUT)
        pod = pod_of_instance(name, component)
        if world.reader.find(PODS, pod, namespace=step.namespace) is not None:
            world.cluster.delete(PODS, pod, namespace=step.namespace, timeout=TIMEOUT)
    if len(own) >= step.replicas:
        return
    pattern = world.last.get((step.namespace, pod_of_instance(own[0]["metadata"]["name"], component))) if own else None
    if pattern is None:
        raise SettingsError(f"{step}: it has no pod that new ones could be like")
    for number in range(1, step.replicas - len(own) + 1):
        _add_instance(world, own[0], pattern, f"sim{number}", component, resource)


def _add_instance(
    world: World, instance: Manifest, pod: Manifest, suffix: str, component: str, resource: Resource
) -> None:
    namespace, old = instance["metadata"]["namespace"], instance["metadata"]["name"].rpartition("-")[2]
    new = _renamed(instance, old, suffix)
    made = world.cluster.create(resource, new, namespace=namespace, timeout=TIMEOUT)
    copy = _renamed(pod, old, suffix)
    for owner in copy["metadata"].get("ownerReferences") or []:
        owner["name"], owner["uid"] = made["metadata"]["name"], made["metadata"]["uid"]
    for volume in inside(copy, "spec", "volumes") or []:
        claim = text(inside(volume, "persistentVolumeClaim", "claimName"))
        if claim:
            volume["persistentVolumeClaim"]["claimName"] = claim.removesuffix(old) + suffix
            _add_claim(world, namespace, claim, old, suffix)
    world.last[namespace, pod_of_instance(made["metadata"]["name"], component)] = copy


def _add_claim(world: World, namespace: str, name: str, old: str, suffix: str) -> None:
    """A claim like this one, without a volume; none where there is none of that name."""
    pattern = world.reader.find(CLAIMS, name, namespace=namespace)
    if pattern is None:
        return
    claim = _renamed(pattern, old, suffix)
    claim["metadata"].pop("annotations", None)
    claim["spec"] = {key: value for key, value in mapping(claim.get("spec")).items() if key != "volumeName"}
    claim["status"] = {"phase": "Pending"}
    world.cluster.create(CLAIMS, claim, namespace=namespace, timeout=TIMEOUT)


def _renamed(manifest: Manifest, old: str, new: str) -> Manifest:
    """A copy whose name ends otherwise, and which nobody has stored yet."""
    copy = deepcopy(manifest)
    metadata = {
        key: value for key, value in copy["metadata"].items() if key not in ("uid", "resourceVersion", "finalizers")
    }
    copy["metadata"] = {**metadata, "name": metadata["name"].removesuffix(old) + new}
    return copy
