"""The life of one group around the protocol: controllers create pods, the scheduler binds them, others interfere."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.cluster.door import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS, Manifest
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.store import GroupStore
from webhook.core.affinity import patch_for
from webhook.core.groups import recognise
from webhook.core.keys import ENTRY_PREFIX, GUARD, LOCK, PVC_DEFER_DELETING
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Group, Placing
from webhook.core.objects import Pod
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide
from webhook.core.selectors import pinned_node
from webhook.deadline import Deadline
from webhook.errors import ApiError
from webhook.locking.memory import AnswerMemory
from webhook.locking.protocol import Answer, GroupCluster, Request
from webhook.locking.round import Round
from webhook.locking.tools import RoundTools

from .faults import TOKEN, NewerFormatDoor, Rates, ReplicaDoor, Trouble
from .oracle import Oracle
from .world import Actor, World

QUIET = Rates()
NAMESPACE = "shop"
BUDGET = 9.0
API_TIMEOUT = 10.0
EXPIRY = 120.0


@dataclass(frozen=True)
class Shape:
    """A group and its nodes. `labelled` False: its claims were made by hand and the label finds none of them."""

    component: str = "pd"
    replicas: int = 3
    nodes: int = 3
    labelled: bool = True


@dataclass
class Substitutes:
    """The parts that a mutation may put in the place of the product's."""

    round_type: type[Round] = Round
    store: Callable[[Any], GroupCluster] = GroupStore
    expiry: float = EXPIRY


@dataclass
class Replica:
    """One webhook process: its own memory, its own door."""

    tools: RoundTools
    door: ReplicaDoor


@dataclass
class Life:
    """A shared cluster and everything that acts on it."""

    world: World
    shape: Shape = Shape()
    substitutes: Substitutes = field(default_factory=Substitutes)
    trouble: Trouble = field(default_factory=Trouble)
    replicas: list[Replica] = field(default_factory=list)
    # How long the API server takes from our answer to the stored pod (s); None: the create never succeeds.
    storing: Callable[[], float | None] = lambda: 0.0
    # How long the scheduler takes from the stored pod to the binding (s); None: it never gets to it.
    binding: Callable[[], float | None] = lambda: None
    answered: int = 0
    hit_by_fault: set[str] = field(default_factory=set)
    unhit_guards: list[str] = field(default_factory=list)
    # By token of an answer: how many of its records may be lost, and how many were.
    tolerated: dict[str, int] = field(default_factory=dict)
    losses: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.cluster = MemoryCluster(_objects(self.shape), clock=self.world.clock)
        self.oracle = Oracle(self.cluster)
        self.tokens = (f"token{number:06d}" for number in itertools.count())
        group = recognise(pod_from(self.pod(0), namespace=NAMESPACE)).group
        assert group is not None
        self.group: Group = group

    def add_replica(
        self, rates: Rates = QUIET, clock_offsets: tuple[float, ...] = (0.0,), *, newer: bool = False
    ) -> Replica:
        """Start one more webhook process."""
        door = (NewerFormatDoor if newer else ReplicaDoor)(
            self.world, self.cluster, self.trouble, rates, clock_offsets, self.write_back, self.oracle.swapped
        )
        tools = RoundTools(
            cluster=self.substitutes.store(door),
            memory=AnswerMemory(clock=self.world.clock),
            decide=decide,
            expiry=self.substitutes.expiry,
            pause=self.world.sleep,
            chance=lambda: self.world.choices.between(0.0, 1.0),
            tokens=self.tokens,
        )
        self.replicas.append(Replica(tools, door))
        return self.replicas[-1]

    def member(self, ordinal: int) -> str:
        return f"db-{self.shape.component}-{ordinal}"

    def claim_name(self, ordinal: int) -> str:
        return f"{self.shape.component}-{self.member(ordinal)}"

    def pod(self, ordinal: int) -> Manifest:
        """The pod as the StatefulSet controller asks to create it."""
        name = self.member(ordinal)
        claim = {"claimName": self.claim_name(ordinal)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": _labels(self.shape),
                "ownerReferences": [_owner(self.shape)],
            },
            "spec": {"containers": [{"name": "main"}], "volumes": [{"name": "data", "persistentVolumeClaim": claim}]},
        }

    def make_claim(self, ordinal: int) -> None:
        """As the StatefulSet controller does before it creates the pod."""
        labels = _labels(self.shape) if self.shape.labelled else {}
        manifest = {
            "metadata": {"name": self.claim_name(ordinal), "labels": labels},
            "spec": {"storageClassName": "local"},
        }
        try:
            self.cluster.create(CLAIMS, manifest, namespace=NAMESPACE, timeout=1)
        except ApiError:
            return

    def create(
        self, ordinals: Sequence[int], replica: Replica, *, budgets: Sequence[float] = (), claims: bool = True
    ) -> Actor:
        """Ask one replica to admit pods together; each is stored and bound afterwards as `storing`, `binding` say."""
        names = ",".join(map(str, ordinals))

        def work() -> list[tuple[str, Answer]]:
            started = self.world.now
            if claims:
                for ordinal in ordinals:
                    self.make_claim(ordinal)
            return self._admit(ordinals, replica, started, budgets or [BUDGET] * len(ordinals))

        return self.world.spawn(f"create {names} #{len(self.world.actors)}", work)

    def _admit(
        self, ordinals: Sequence[int], replica: Replica, started: float, budgets: Sequence[float]
    ) -> list[tuple[str, Answer]]:
        given: list[tuple[str, Answer]] = []
        actor = self.world.current().name
        # With one claim there is no second record: a stated limit.
        claims = len(self._annotations())
        requests = [
            Request(
                Placing(pod_from(self.pod(ordinal), namespace=NAMESPACE)),
                Deadline(started + budget, self.world.clock),
                started,
            )
            for ordinal, budget in zip(ordinals, budgets, strict=True)
        ]

        def deliver(request: Request, answer: Answer) -> None:
            if self.world.now > request.deadline.at:
                # The caller has left with the guard; the API server may even have given up.
                answer = Answer(Decision(Outcome.GUARDED))
            given.append((request.member, answer))
            ordinal = int(request.member.rpartition("-")[2])
            self._take(ordinal, answer, started, claims, hit=actor in replica.door.hit)

        self.substitutes.round_type(self.group, requests, replica.tools, deliver).run()
        return given

    def _as_reviewed(self, ordinal: int) -> Pod:
        return pod_from(self.pod(ordinal), namespace=NAMESPACE)

    def _take(self, ordinal: int, answer: Answer, started: float, claims: int, *, hit: bool) -> None:
        self.answered += 1
        if answer.decision.outcome is Outcome.GUARDED and not hit:
            self.unhit_guards.append(f"{self.member(ordinal)}: {answer.decision.cause} {answer.decision.detail}")
        if answer.token:
            self.tolerated[answer.token] = 1 if claims > 1 else 0
        self.oracle.answered(self.member(ordinal), answer, started, self.world.now)
        delay = self.storing()
        if delay is None or self.world.now + delay > started + 60.0:
            return
        self.world.spawn(f"store {ordinal}", lambda: self._store(ordinal, answer, delay))

    def _store(self, ordinal: int, answer: Answer, delay: float) -> None:
        if delay:
            self.world.sleep(delay)
        admitted = patch_for(self.pod(ordinal), self.group, answer.decision, answer.token or None).patched
        try:
            self.cluster.create(PODS, admitted, namespace=NAMESPACE, timeout=1)
        except ApiError:
            return
        self.oracle.stored(self.member(ordinal), answer.decision.node)
        delay = self.binding()
        if delay is not None:
            self.world.sleep(delay)
            self.bind(ordinal)

    def bind(self, ordinal: int) -> None:
        """What the default scheduler does with a pod, by its pin, by guards in both directions, and by its volume."""
        pods = {pod.name: pod for pod in self._pods()}
        pod = pods.get(self.member(ordinal))
        if pod is None or pod.node_name:
            return
        bound = [other for other in pods.values() if other.node_name and not other.finished]
        held = {other.node_name for other in bound}
        guarded = {other.node_name for other in bound if GUARD in other.annotations}
        forbidden = held if GUARD in pod.annotations else guarded
        wanted = [pinned_node(pod)] if pinned_node(pod) else [f"n{number}" for number in range(self.shape.nodes)]
        possible = [node for node in wanted if node not in forbidden and self._allows(ordinal, node)]
        if not possible:
            return
        node = possible[self.world.choices.index(len(possible))]
        self._patch(PODS, pod.name, {"spec": {"nodeName": node}})
        self._bind_volume(ordinal, node)
        self.oracle.bound(pod.name, node)

    def _allows(self, ordinal: int, node: str) -> bool:
        claim = self._claim(ordinal)
        volume = (claim or {}).get("spec", {}).get("volumeName", "")
        cordoned = self.cluster.get(NODES, node, timeout=1).get("spec", {}).get("unschedulable", False)
        return not cordoned and (not volume or volume.startswith((f"pv-{node}-", "network-")))

    def _bind_volume(self, ordinal: int, node: str) -> None:
        claim = self._claim(ordinal)
        if claim is None or claim["spec"].get("volumeName"):
            return
        name = f"pv-{node}-{claim['metadata']['uid'][-6:]}"
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
        volume = {"metadata": {"name": name}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
        self.cluster.create(PERSISTENT_VOLUMES, volume, timeout=1)
        self._patch(CLAIMS, self.claim_name(ordinal), {"spec": {"volumeName": name}, "status": {"phase": "Bound"}})

    def bind_anywhere(self, ordinal: int) -> None:
        """The claim is Bound to a volume that every node can use."""
        self.make_claim(ordinal)
        name = f"network-{ordinal}"
        self.cluster.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": {}}, timeout=1)
        self._patch(CLAIMS, self.claim_name(ordinal), {"spec": {"volumeName": name}, "status": {"phase": "Bound"}})

    def delete_pod(self, ordinal: int) -> None:
        """The pod is gone at once, as one that never ran is."""
        self._ignore_errors(lambda: self.cluster.delete(PODS, self.member(ordinal), namespace=NAMESPACE, timeout=1))

    def delete_claim(self, ordinal: int) -> None:
        """The claim and the records on it are gone, unless they are an answer's last."""
        name = self.claim_name(ordinal)
        if not self._may_lose(_tokens(self._annotations().get(name, {}))):
            return
        self.trouble.note("claim deleted")
        self._ignore_errors(lambda: self.cluster.delete(CLAIMS, name, namespace=NAMESPACE, timeout=1))

    def defer_deleting(self, ordinal: int, *, undo: bool = False) -> None:
        """tidb-operator marks the claim of a member that it scaled in, or takes the mark away."""
        mark = {PVC_DEFER_DELETING: None if undo else "now"}
        self._patch(CLAIMS, self.claim_name(ordinal), {"metadata": {"annotations": mark}})

    def erase(self, ordinal: int) -> None:
        """All annotations of a claim are put back to none."""
        self.write_back(self.claim_name(ordinal), {})

    def cordon(self, number: int, *, undo: bool = False) -> None:
        self._patch(NODES, f"n{number}", {"spec": {"unschedulable": None if undo else True}})

    def old_pod(self, ordinal: int, node: str) -> None:
        """A pod of an earlier life that is still going, without any record of ours."""
        pod = self.pod(ordinal)
        pod["spec"]["nodeName"] = node
        self.cluster.create(PODS, pod, namespace=NAMESPACE, timeout=1)

    def write_back(self, name: str, old: Mapping[str, str]) -> None:
        """tidb-operator v1 after a conflict: its old copy of all annotations replaces what is there."""
        present = self._annotations().get(name, {})
        if not self._may_lose(_tokens(present) - _tokens(old)):
            return
        if set(_ours(present)) - set(_ours(old)) or _ours(present).get(LOCK) != _ours(old).get(LOCK):
            self.trouble.note("erased record")
        patch = {**dict.fromkeys(present), **old}
        self._patch(CLAIMS, name, {"metadata": {"annotations": patch}})

    def _may_lose(self, tokens: set[str]) -> bool:
        """Whether these records may be lost: one of each answer's is survived, of an unanswered one any."""
        if any(self.losses[token] >= most for token, most in self.tolerated.items() if token in tokens):
            return False
        self.losses.update(tokens & self.tolerated.keys())
        return True

    def _annotations(self) -> dict[str, dict[str, str]]:
        listing = self.cluster.list(CLAIMS, namespace=NAMESPACE, timeout=1)
        return {item["metadata"]["name"]: item["metadata"].get("annotations") or {} for item in listing.items}

    def _claim(self, ordinal: int) -> Manifest | None:
        try:
            return self.cluster.get(CLAIMS, self.claim_name(ordinal), namespace=NAMESPACE, timeout=1)
        except ApiError:
            return None

    def _pods(self) -> Iterable[Any]:
        return [pod_from(item) for item in self.cluster.list(PODS, namespace=NAMESPACE, timeout=1).items]

    def _patch(self, resource: Any, name: str, patch: Manifest) -> None:
        namespace = NAMESPACE if resource.namespaced else ""
        self._ignore_errors(lambda: self.cluster.merge_patch(resource, name, patch, namespace=namespace, timeout=1))

    @staticmethod
    def _ignore_errors(call: Callable[[], Any]) -> None:
        try:
            call()
        except ApiError:
            return


def _ours(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key == LOCK or key.startswith(ENTRY_PREFIX)}


def _tokens(annotations: Mapping[str, str]) -> set[str]:
    """The tokens that have a record in these annotations, whatever its format."""
    return {token for value in _ours(annotations).values() for token in TOKEN.findall(value)}


def _labels(shape: Shape) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/instance": "db",
        "app.kubernetes.io/component": shape.component,
    }


def _owner(shape: Shape) -> Manifest:
    name = f"db-{shape.component}"
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": "owner", "controller": True}


def _objects(shape: Shape) -> list[Manifest]:
    stateful_set = {
        "apiVersion": STATEFUL_SETS.group + "/v1",
        "kind": "StatefulSet",
        "metadata": {"name": f"db-{shape.component}", "namespace": NAMESPACE},
        "spec": {"replicas": shape.replicas, "selector": {"matchLabels": _labels(shape)}},
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        # It makes volumes wherever the pod goes, and has no driver to ask for.
        "provisioner": "kubernetes.io/glusterfs",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}},
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            },
        }
        for number in range(shape.nodes)
    ]
    return [stateful_set, storage_class, *nodes]
