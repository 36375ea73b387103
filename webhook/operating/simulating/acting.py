"""What each step does to the copy, and what the owners of groups then want."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhook.cluster.door import ADVANCED_STATEFUL_SETS, PODS, STATEFUL_SETS, Manifest, Resource
from webhook.cluster.owners import V2_KINDS
from webhook.core.desired import pod_of_instance
from webhook.core.shapes import inside, integer
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import SettingsError
from webhook.operating.auditing import Report
from webhook.operating.draining import nodes_of
from webhook.operating.names import no_such
from webhook.operating.simulating.instances import all_of, scale_instances
from webhook.operating.simulating.new_nodes import add_nodes
from webhook.operating.simulating.steps import AddNodes, LoseNodes, LoseZone, Scale, Step
from webhook.operating.simulating.volumes import TIMEOUT
from webhook.operating.simulating.world import World

SETS: Final = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS)


def nodes_lost(report: Report, step: Step) -> tuple[str, ...]:
    """The nodes that a step takes away. Raises SettingsError for a name that is not there."""
    if isinstance(step, LoseNodes):
        return nodes_of(report, step.names, ())
    return nodes_of(report, (), (step.zone,)) if isinstance(step, LoseZone) else ()


def act(world: World, step: Step, lost: Collection[str]) -> str:
    """Do to the cluster what the step says, and say what of it the step left open, "" for nothing.

    `lost`: of `nodes_lost`. Raises SettingsError for what is not there.
    """
    if isinstance(step, AddNodes):
        return add_nodes(world, step)
    if isinstance(step, Scale):
        _scale(world, step)
    else:
        world.lose(lost)
    return ""


def wanted(world: World) -> Iterator[Manifest]:
    """The pods that the owners would create now, those that are not there, in order."""
    for resource in SETS:
        for stateful_set in all_of(world.reader, resource):
            try:
                yield from (_as_last_seen(world, pod) for pod in pods_of(stateful_set) if not _is_there(world, pod))
            except SetError:
                # As it is in dumps that were cut: its pods are created as they were last seen.
                yield from _gone_pods_of(world, stateful_set)
    for component, (_, instances) in V2_KINDS.items():
        for instance in all_of(world.reader, instances):
            name = pod_of_instance(instance["metadata"]["name"], component)
            pod = world.last.get((instance["metadata"]["namespace"], name))
            if pod is not None and not _is_there(world, pod):
                yield pod


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


def _scale(world: World, step: Scale) -> None:
    for resource in SETS:
        if world.reader.find(resource, step.name, namespace=step.namespace) is not None:
            _set_replicas(world, resource, step)
            _remove_beyond(world, resource, step)
            return
    for component, (groups, instances) in V2_KINDS.items():
        if world.reader.find(groups, step.name, namespace=step.namespace) is not None:
            _set_replicas(world, groups, step)
            scale_instances(world, step, component, instances)
            return
    names = [
        f"{found['metadata']['namespace']}/{found['metadata']['name']}"
        for resource in (*SETS, *(groups for groups, _ in V2_KINDS.values()))
        for found in all_of(world.reader, resource)
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
