"""The instances of tidb-operator v2 in a simulation: which come, which go, and where EvenlySpread has them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from webhook.cluster.door import CLAIMS, PODS, Manifest, Resource
from webhook.cluster.owners import V2_KINDS
from webhook.cluster.reader import Reader
from webhook.core import keys
from webhook.core.desired import pod_of_instance
from webhook.core.shapes import inside, mapping, text
from webhook.errors import NotFound, SettingsError
from webhook.operating.simulating.spread import Spread, topology_of
from webhook.operating.simulating.steps import Scale
from webhook.operating.simulating.volumes import TIMEOUT
from webhook.operating.simulating.world import World


def all_of(reader: Reader, resource: Resource) -> tuple[Manifest, ...]:
    """All objects of a kind, none where it is not served."""
    try:
        return reader.list(resource).items
    except NotFound:
        return ()


def scale_instances(world: World, step: Scale, component: str, resource: Resource) -> None:
    """tidb-operator v2 makes instances, or takes some away; a new one is like the first, at the place that is due.

    Raises SettingsError where there is no pod that new ones could be like.
    """
    own = [
        found
        for found in all_of(world.reader, resource)
        if found["metadata"]["namespace"] == step.namespace
        and inside(found, "metadata", "labels", keys.V2_GROUP) == step.name
    ]
    spread = Spread.of(_group_object(world, step, component), own)
    for gone in _to_remove(own, step.replicas, spread):
        name = gone["metadata"]["name"]
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
        made, like = spread.placed(own[0], pattern)
        _add_instance(world, made, like, f"sim{number}", component, resource)


def _group_object(world: World, step: Scale, component: str) -> Manifest:
    return world.reader.get(V2_KINDS[component][0], step.name, namespace=step.namespace)


def _to_remove(own: list[Manifest], replicas: int, spread: Spread) -> Iterator[Manifest]:
    """The last ones, from where most are."""
    left = list(own)
    while len(left) > replicas:
        gone = max(left, key=lambda instance: (spread.fullness(topology_of(instance)), left.index(instance)))
        spread.remove(topology_of(gone))
        left.remove(gone)
        yield gone


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
