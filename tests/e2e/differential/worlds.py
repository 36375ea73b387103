"""A random small cluster and the pods that it is asked about, all from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from e2e import objects
from e2e.differential import constraints
from e2e.differential.constraints import GPU, NAMESPACES, REQUIRED, TAINTS
from e2e.differential.storage import STORAGE, Shelf, shelf_of
from e2e.objects import HOSTNAME, ZONE, Object
from webhook.core.objects import ALL_ADDRESSES

PROBES = 5
NODES = 5

OVERHEAD, LOW, HIGH, NEVER = "heavy", "low", "high", "high-but-patient"
"""A RuntimeClass with an overhead, and PriorityClasses; the last does not preempt."""

SHAPES = (("tikv", 2), ("tikv", 3), ("tikv", 3), ("pd", 3), ("pd", 5))
"""Component and replicas: no cap, one to a node, and (the last) two."""

_CPU = ("0", "200m", "500m", "1", "2")
_LITTLE_CPU = ("0", "100m", "200m", "500m")


class Suite(StrEnum):
    """What the worlds are about."""

    PLAIN = "plain"
    SPREAD = "spread"
    INTERPOD = "interpod"
    STORAGE = "storage"
    PREEMPTION = "preemption"
    EVERYTHING = "everything"


@dataclass(frozen=True)
class World:
    """`taints` come after the pods, which would be refused or evicted otherwise; `probes` are asked about in turn.

    `owner` is the set whose members the probes are; some of `pods` are members too.
    """

    seed: int
    nodes: list[Object]
    taints: dict[str, list[Object]]
    storage: list[Object]
    pods: list[Object]
    owner: Object
    probes: list[Object]

    @property
    def cap(self) -> int | None:
        """The most members to a node, None for any number."""
        replicas: int = self.owner["spec"]["replicas"]
        return {2: None, 3: 1, 5: 2}[replicas]


@dataclass(frozen=True)
class _Draft:
    random: Random
    suite: Suite
    tag: str
    names: list[str]
    owner: Object
    shelf: Shelf = field(default_factory=Shelf)

    def has(self, *suites: Suite) -> bool:
        return self.suite in (*suites, Suite.EVERYTHING)


def random_world(suite: Suite, seed: int) -> World:
    """The world of a seed: always the same."""
    random = Random(f"{suite} {seed}")
    tag = f"{suite.value[:3]}{seed}"
    names = [f"{tag}-n{number}" for number in range(NODES)]
    component, replicas = random.choice(SHAPES)
    owner = objects.advanced(objects.stateful_set(NAMESPACES[0], cluster=tag, component=component, replicas=replicas))
    has_storage = suite in (Suite.STORAGE, Suite.EVERYTHING)
    shelf = shelf_of(random, tag, names, PROBES) if has_storage else Shelf()
    draft = _Draft(random, suite, tag, names, owner, shelf)
    members = [_member(draft, ordinal) for ordinal in range(random.randint(0, replicas - 1))]
    pods = [*members, *(_neighbour(draft, number) for number in range(random.randint(0, 9)))]
    _give_each_port_once(pods)
    return World(
        seed=seed,
        nodes=[_node(draft, name) for name in names],
        taints=_taints(draft),
        storage=[*shelf.objects, *_attachments(draft)],
        pods=pods,
        owner=owner,
        probes=[_probe(draft, number) for number in range(PROBES)],
    )


def _node(draft: _Draft, name: str) -> Object:
    random = draft.random
    labels = {HOSTNAME: name, "e2e.test/all": "yes"}
    if random.random() < 0.85:
        labels[ZONE] = f"z{random.randint(0, 2)}"
    if random.random() < 0.7:
        labels["disk"] = random.choice(["ssd", "hdd"])
    if random.random() < 0.8:
        labels["cores"] = random.choice(["2", "4", "8", "x"])
    node = objects.node(name, cpu=random.choice(["1", "2", "4"]), memory=random.choice(["2Gi", "8Gi"]), labels=labels)
    resources = {**node["status"]["allocatable"], "pods": random.choice(["2", "3", "110", "110"])}
    resources["ephemeral-storage"] = "10Gi"
    if random.random() < 0.4:
        resources[GPU] = random.choice(["1", "2"])
    node["status"] |= {"capacity": resources, "allocatable": resources}
    node["metadata"]["labels"] = labels
    node["spec"]["unschedulable"] = random.random() < 0.12
    return node


def _taints(draft: _Draft) -> dict[str, list[Object]]:
    random, found = draft.random, {}
    for name in draft.names:
        if random.random() < 0.35:
            chosen = {(taint["key"], taint["effect"]): taint for taint in random.sample(TAINTS, random.randint(1, 2))}
            found[name] = [one for one in chosen.values() if one["effect"] != "NoExecute" or random.random() < 0.5]
    return found


def _placed(draft: _Draft, name: str, labels: dict[str, str], namespace: str) -> Object:
    """A pod that is on a node already."""
    random = draft.random
    spec: Object = {
        **constraints.containers(random, ports=0.3, cpu=_LITTLE_CPU),
        "nodeName": random.choice(draft.names),
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
    }
    if draft.has(Suite.INTERPOD) and random.random() < 0.5:
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [constraints.affinity_term(random)]}}
    if draft.has(Suite.PREEMPTION) or random.random() < 0.3:
        spec["priorityClassName"] = random.choice([LOW, LOW, HIGH])
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _neighbour(draft: _Draft, number: int) -> Object:
    random = draft.random
    namespace = random.choice([NAMESPACES[0], *NAMESPACES])
    pod = _placed(draft, f"{draft.tag}-e{number}", constraints.labels(random), namespace)
    if draft.shelf.claims and namespace == NAMESPACES[0] and random.random() < 0.3:
        pod["spec"]["volumes"] = _volumes(random.choice(draft.shelf.claims)[:1])
    return pod


def _give_each_port_once(pods: Sequence[Object]) -> None:
    """Take host ports away from pods whose node's kubelet would refuse them, as another pod there has the port.

    The scheduler does not count how often a port is taken: with one of two such pods preempted it is free for it.
    """
    taken: dict[tuple[str, int, str], set[str]] = {}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for port in tuple(container["ports"]):
                address = port.get("hostIP", ALL_ADDRESSES)
                there = taken.setdefault((pod["spec"]["nodeName"], port["hostPort"], port["protocol"]), set())
                if there and (address in there or ALL_ADDRESSES in (address, *there)):
                    container["ports"].remove(port)
                else:
                    there.add(address)


def _member(draft: _Draft, ordinal: int) -> Object:
    """A sibling of the probes that is on a node already."""
    member = objects.member_pod(draft.owner, ordinal, uid="unknown")
    labels = {**constraints.labels(draft.random), **member["metadata"]["labels"]}
    placed = _placed(draft, member["metadata"]["name"], labels, NAMESPACES[0])
    placed["metadata"]["ownerReferences"] = member["metadata"]["ownerReferences"]
    return placed


def _probe(draft: _Draft, number: int) -> Object:
    """The last member, as the set's controller might create it."""
    random = draft.random
    pod = objects.member_pod(draft.owner, draft.owner["spec"]["replicas"] - 1, uid="unknown", volumes=[])
    pod["metadata"]["labels"] |= constraints.labels(random)
    spec = pod["spec"]
    spec |= constraints.containers(random, ports=0.5, cpu=_CPU)
    spec |= {"tolerations": constraints.tolerations(random), "terminationGracePeriodSeconds": 0}
    if random.random() < 0.1:
        spec["runtimeClassName"] = OVERHEAD
    if random.random() < 0.3:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: constraints.node_selector(random, draft.names)}}
    if random.random() < 0.15:
        spec["nodeSelector"] = {"disk": "ssd"}
    _want_others(draft, spec)
    if draft.shelf.claims:
        spec["volumes"] = _volumes(draft.shelf.claims[number])
    return pod


def _want_others(draft: _Draft, spec: Object) -> None:
    """What the probe wants of other pods, and its priority."""
    random = draft.random
    affinity = spec.setdefault("affinity", {})
    if draft.suite is Suite.SPREAD or (draft.has() and random.random() < 0.3):
        spec["topologySpreadConstraints"] = constraints.spread_constraints(random)
    if draft.suite is Suite.INTERPOD or (draft.has() and random.random() < 0.3):
        if random.random() < 0.5:
            terms = [constraints.affinity_term(random) for _ in range(random.randint(1, 2))]
            affinity["podAffinity"] = {REQUIRED: terms}
        if random.random() < 0.6:
            affinity["podAntiAffinity"] = {REQUIRED: [constraints.affinity_term(random)]}
    if draft.has(Suite.PREEMPTION):
        spec["priorityClassName"] = random.choice([HIGH, HIGH, LOW, NEVER])
        if random.random() < 0.3:
            affinity["podAntiAffinity"] = {REQUIRED: [constraints.affinity_term(random)]}


def _volumes(claims: Sequence[str]) -> list[Object]:
    return [{"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}} for number, name in enumerate(claims)]


def _attachments(draft: _Draft) -> list[Object]:
    """Volumes that are attached somewhere, whoever uses them."""
    random = draft.random
    volumes = [found["metadata"]["name"] for found in draft.shelf.objects if "csi" in found.get("spec", {})]
    return [
        {
            "apiVersion": STORAGE,
            "kind": "VolumeAttachment",
            "metadata": {"name": f"{name}-attached"},
            "spec": {
                "attacher": "made.example",
                "nodeName": random.choice(draft.names),
                "source": {"persistentVolumeName": name},
            },
        }
        for name in volumes
        if random.random() < 0.3
    ]
