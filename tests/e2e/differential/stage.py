"""Puts a world on the control plane, waits until nothing moves, takes it away again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from e2e import objects
from e2e.api import Api, ApiError
from e2e.differential.constraints import NAMESPACES
from e2e.differential.storage import COUNTED, KEPT, STORAGE
from e2e.differential.worlds import HIGH, LOW, NEVER, OVERHEAD, World
from e2e.kinds import kind_of
from e2e.objects import Object
from e2e.replicas import SWITCH
from e2e.waiting import wait_until

MARKED: Final = "e2e.test/marked"
"""The label of a pod that a pod on a node of its own keeps off every node."""

BY: Final = "e2e.test/by"
"""The label of a pod that says which admission decides on it; without it the pod is not sent to the webhook."""

APART: Final = "apart"
"""That node, which takes no other pod."""

WORLDS: Final = "differential"
"""The label value by which the namespaces' pods may go to the webhook."""

PATIENCE: Final = 60.0

_CLEARED: Final = (
    "Pod",
    "PersistentVolumeClaim",
    "VolumeAttachment",
    "PersistentVolume",
    "CSIStorageCapacity",
    "CSINode",
)


@contextmanager
def prepared(api: Api) -> Iterator[None]:
    """What all worlds share, as long as the context lasts."""
    shared = [*_namespaces(), *_classes(), _apart()]
    for manifest in shared:
        api.create(manifest)
    try:
        for name in NAMESPACES:
            api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
        api.create(_repellent())
        api.wait_for("Pod", lambda pods: all(_is_running(pod) for pod in pods), NAMESPACES[1])
        yield
    finally:
        for name in NAMESPACES:
            api.delete_all("Pod", name, gracePeriodSeconds=0)
        for manifest in reversed(shared):
            api.delete(kind_of(manifest), manifest["metadata"]["name"], missing_ok=True)
        api.wait_for("Node", lambda nodes: all(node["metadata"]["name"] != APART for node in nodes))


@contextmanager
def staged(api: Api, world: World) -> Iterator[str]:
    """The world on the control plane, as long as the context lasts; the uid of the probes' owner is given."""
    created: list[Object] = []

    def create(manifest: Object) -> Object:
        created.append(api.create(manifest))
        return created[-1]

    try:
        for manifest in (*world.nodes, *world.storage):
            create(manifest)
            if KEPT in manifest["metadata"].get("finalizers", ()):
                api.delete(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"]["namespace"])
        owner = create(world.owner)["metadata"]["uid"]
        create(_lock_claim(world))
        for pod in world.pods:
            create(with_owner(pod, owner))
        _settle(api, world)
        yield owner
    finally:
        _clear(api, created)


def with_owner(pod: Object, uid: str) -> Object:
    """The pod with the owner's real uid."""
    references = [{**one, "uid": uid} for one in pod["metadata"].get("ownerReferences", ())]
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": references}}


def _namespaces() -> list[Object]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {SWITCH: WORLDS, "team": team}}}
        for name, team in zip(NAMESPACES, "ab", strict=True)
    ]


def _classes() -> list[Object]:
    priorities: list[tuple[str, int, Object]] = [
        (LOW, -10, {}),
        (HIGH, 100, {}),
        (NEVER, 100, {"preemptionPolicy": "Never"}),
    ]
    found: list[Object] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            **more,
        }
        for name, value, more in priorities
    ]
    found.append(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": OVERHEAD},
            "handler": "any",
            "overhead": {"podFixed": {"cpu": "300m", "memory": "256Mi"}},
        }
    )
    spec = {"storageCapacity": True, "attachRequired": False}
    found.append({"apiVersion": STORAGE, "kind": "CSIDriver", "metadata": {"name": COUNTED}, "spec": spec})
    return found


def _apart() -> Object:
    return objects.node(APART, pods=1, labels={"e2e.test/all": "yes"}, unschedulable=True)


def _repellent() -> Object:
    """It cannot be preempted, and keeps marked pods off everywhere. No reason comes after this one."""
    term = {"topologyKey": "e2e.test/all", "labelSelector": {"matchLabels": {MARKED: "yes"}}, "namespaceSelector": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "repellent", "namespace": NAMESPACES[1]},
        "spec": {
            "nodeName": APART,
            "priorityClassName": HIGH,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "example.invalid/x"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        },
    }


def _lock_claim(world: World) -> Object:
    """A claim of the group that no volume is large enough for."""
    claim = objects.member_claims(world.owner, 0)[0]
    spec = {**claim["spec"], "storageClassName": "", "resources": {"requests": {"storage": "1000Ti"}}}
    return {**claim, "metadata": {**claim["metadata"], "name": f"lock-{world.owner['metadata']['name']}"}, "spec": spec}


def _settle(api: Api, world: World) -> None:
    names = {node["metadata"]["name"] for node in world.nodes}
    api.wait_for("Node", lambda nodes: all(_is_settled(node) for node in nodes if node["metadata"]["name"] in names))
    for name, taints in world.taints.items():
        if taints:
            node = api.get("Node", name)
            api.patch("Node", name, {"spec": {"taints": [*node["spec"].get("taints", ()), *taints]}})
    api.wait_for("Node", lambda nodes: all(_is_settled(node) for node in nodes if node["metadata"]["name"] in names))
    api.wait_for("PersistentVolume", lambda found: all(map(_has_a_phase, found)))
    api.wait_for("PersistentVolumeClaim", lambda found: all(map(_is_bound_or_waits, found)))
    for name in NAMESPACES:
        api.wait_for("Pod", lambda pods: all(map(_is_running, pods)), name)
    _wait_for_scheduler(api, world)


def _wait_for_scheduler(api: Api, world: World) -> None:
    """Wait until the scheduler knows the nodes as they are, by a pod for a label that a node gets after all else."""
    mark = {"e2e.test/world": world.owner["metadata"]["name"]}
    api.patch("Node", APART, {"metadata": {"labels": mark}})
    name, namespace = "canary", NAMESPACES[1]
    spec = {
        "nodeSelector": mark,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "example.invalid/x"}],
    }
    metadata = {"name": name, "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    try:
        api.wait_for(
            "Pod", lambda pods: any(map(_finds_the_node_full, pods)), namespace, fields=f"metadata.name={name}"
        )
    finally:
        api.delete("Pod", name, namespace, gracePeriodSeconds=0)
        api.wait_for("Pod", lambda found: not found, namespace, fields=f"metadata.name={name}")


def _finds_the_node_full(pod: Object) -> bool:
    return any("Too many pods" in each.get("message", "") for each in pod["status"].get("conditions", ()))


def _is_settled(node: Object) -> bool:
    keys = {taint["key"] for taint in node["spec"].get("taints") or ()}
    cordoned = "node.kubernetes.io/unschedulable" in keys
    return "node.kubernetes.io/not-ready" not in keys and cordoned == bool(node["spec"].get("unschedulable"))


def _is_running(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running"


def _has_a_phase(volume: Object) -> bool:
    return volume.get("status", {}).get("phase") in ("Available", "Bound", "Released", "Failed") or bool(
        volume["spec"].get("claimRef")
    )


def _is_bound_or_waits(claim: Object) -> bool:
    return not claim["spec"].get("volumeName") or claim.get("status", {}).get("phase") == "Bound"


def _clear(api: Api, created: list[Object]) -> None:
    for name in NAMESPACES:
        for pod in api.list("Pod", name):
            if pod["metadata"]["name"] != "repellent":
                api.delete("Pod", pod["metadata"]["name"], name, gracePeriodSeconds=0, missing_ok=True)
    for kind in ("PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment", "CSIStorageCapacity"):
        for found in api.list(kind):
            _end(api, kind, found)
    for manifest in reversed(created):
        metadata = manifest["metadata"]
        api.delete(kind_of(manifest), metadata["name"], metadata.get("namespace"), missing_ok=True)
    wait_until(lambda: all(_is_clear(api, kind) for kind in _CLEARED), "the world to be gone", PATIENCE)
    api.wait_for("Node", lambda nodes: [node["metadata"]["name"] for node in nodes] == [APART])


def _end(api: Api, kind: str, found: Object) -> None:
    """Delete it, and what would hold it."""
    name, namespace = found["metadata"]["name"], found["metadata"].get("namespace")
    api.delete(kind, name, namespace, missing_ok=True)
    if found["metadata"].get("finalizers"):
        try:
            api.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
        except ApiError as error:
            if error.status != 404:
                raise


def _is_clear(api: Api, kind: str) -> bool:
    return not [found for found in api.list(kind) if found["metadata"]["name"] not in ("repellent", APART)]
