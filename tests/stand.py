"""An `Admission` over the embedded cluster as the server has it, on a clock of its own, with calls that a test
may watch, fail, or precede by something else."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jsonpatch
from cluster_objects import REQUIRED, SPACE, a_class

from webhook.admission import Admission, Collaborators
from webhook.cluster.door import CLAIMS, PODS, Manifest, Resource
from webhook.cluster.kinds import CUSTOM
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.core import keys
from webhook.core.outcomes import Cause, Outcome
from webhook.core.policy import decide_by_options
from webhook.deadline import Deadline
from webhook.events import Notice
from webhook.locking.memory import AnswerMemory
from webhook.locking.queue import GroupQueues
from webhook.locking.tools import RoundTools

EXPIRY = 120.0
BUDGET = 9.0
START = 1_800_000_000


# --- reviews


def a_review(pod: Manifest | None, *, uid: str = "review-1", **request: Any) -> bytes:
    """The AdmissionReview of a pod's CREATE; `request` changes what is in it."""
    metadata = (pod or {}).get("metadata", {})
    asked = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": SPACE,
        "operation": "CREATE",
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        **({"name": metadata["name"]} if "name" in metadata else {}),
        **request,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


@dataclass(frozen=True)
class Answered:
    """The answer to a review, and the pod that the API server would go on with."""

    response: Manifest
    pod: Manifest

    @property
    def allowed(self) -> bool:
        return bool(self.response["allowed"])

    @property
    def operations(self) -> list[Manifest]:
        found: list[Manifest] = json.loads(base64.b64decode(self.response.get("patch", "W10=")))
        return found

    @property
    def warnings(self) -> list[str]:
        return list(self.response.get("warnings", []))

    @property
    def audit(self) -> Manifest:
        return dict(self.response.get("auditAnnotations", {}))

    @property
    def outcome(self) -> str:
        return str(self.audit.get("outcome", ""))

    @property
    def cause(self) -> str:
        return str(self.audit.get("cause", ""))

    @property
    def record(self) -> Manifest:
        """The decision record on the pod."""
        return dict(json.loads(self.annotations.get(keys.DECISION, "{}")))

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.pod.get("metadata", {}).get("annotations") or {})

    @property
    def node(self) -> str:
        """The one node that the pod is pinned to by matchFields in every term, "" if it is not."""
        pins = {
            field["values"][0]
            for term in self._node_terms
            for field in term.get("matchFields", [])
            if field["key"] == "metadata.name"
        }
        return pins.pop() if len(pins) == 1 else ""

    @property
    def guarded(self) -> bool:
        """Whether the pod carries the guard: its annotation and a required anti-affinity term."""
        terms = self._affinity.get("podAntiAffinity", {}).get(REQUIRED) or []
        return keys.GUARD in self.annotations and bool(terms)

    @property
    def _affinity(self) -> Manifest:
        return dict(self.pod.get("spec", {}).get("affinity") or {})

    @property
    def _node_terms(self) -> list[Manifest]:
        return list((self._affinity.get("nodeAffinity", {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or [])


def answered(pod: Manifest | None, answer: Manifest) -> Answered:
    """The answer as the API server reads it; `jsonpatch` is the strict judge of the patch."""
    response = answer["response"]
    result = Answered(response, json.loads(json.dumps(pod or {})))
    return Answered(response, jsonpatch.JsonPatch(result.operations).apply(result.pod))


def is_free(answer: Answered) -> bool:
    """Whether the pod has no affinity; what is left empty means the same as none."""
    return not any((answer.pod["spec"].get("affinity") or {}).values())


# --- the cluster


@dataclass
class Clock:
    """Monotonic seconds of this process, and what the API server's clock says; waiting passes time at once."""

    elapsed: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.elapsed

    def server(self) -> float:
        return START + self.elapsed

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.elapsed += seconds


Happening = Callable[[], object]


class WatchedDoor:
    """A door that remembers what it was asked ("patch persistentvolumeclaims NAME"), and lets a test interfere.

    `before[call]` runs before each call whose text begins so; what it raises is the call's error. `after[call]`
    runs when the call has been carried out. `costs` is what each call takes (s).
    """

    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.calls: list[str] = []
        self.costs = 0.001
        self.before: dict[str, Happening] = {}
        self.after: dict[str, Happening] = {}

    def fails(self, call: str, error: Exception, *, times: int | None = None) -> None:
        """Let calls that begin so fail, all or the next `times`."""
        left = itertools.count() if times is None else iter(range(times))

        def fail() -> None:
            if next(left, None) is not None:
                raise error

        self.before[call] = fail

    def happens(self, call: str, happening: Happening, *, after: bool = False) -> None:
        """Let something happen, once, before (or after) the next call that begins so."""
        happenings = self.after if after else self.before
        left = iter([happening])
        happenings[call] = lambda: next(left, lambda: None)()

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if call.startswith(("patch ", "create ", "delete "))]

    def list(self, resource: Resource, **parameters: Any) -> Any:
        return self._call("list", resource, "", partial(self.cluster.list, resource, **parameters))

    def scan(self, resource: Resource, visit: Callable[[Manifest], object], **parameters: Any) -> Any:
        return self._call("list", resource, "", partial(self.cluster.scan, resource, visit, **parameters))

    def get(self, resource: Resource, name: str, **parameters: Any) -> Any:
        return self._call("get", resource, name, partial(self.cluster.get, resource, name, **parameters))

    def merge_patch(self, resource: Resource, name: str, patch: Manifest, **parameters: Any) -> Any:
        call = partial(self.cluster.merge_patch, resource, name, patch, **parameters)
        return self._call("patch", resource, name, call)

    def create(self, resource: Resource, manifest: Manifest, **parameters: Any) -> Any:
        return self._call("create", resource, "", partial(self.cluster.create, resource, manifest, **parameters))

    def delete(self, resource: Resource, name: str, **parameters: Any) -> None:
        self._call("delete", resource, name, partial(self.cluster.delete, resource, name, **parameters))

    def _call(self, verb: str, resource: Resource, name: str, call: Callable[[], Any]) -> Any:
        text = f"{verb} {resource.plural} {name}".rstrip()
        self.calls.append(text)
        self.clock.elapsed += self.costs
        self._run(self.before, text)
        result = call()
        self._run(self.after, text)
        return result

    @staticmethod
    def _run(happenings: Mapping[str, Happening], text: str) -> None:
        for call, happening in tuple(happenings.items()):
            if text.startswith(call):
                happening()


@dataclass
class Figures:
    """What an admission counted."""

    reviews: list[tuple[Outcome, Cause, str]] = field(default_factory=list)
    decisions: list[tuple[int, int, int]] = field(default_factory=list)

    def reviewed(self, outcome: Outcome, cause: Cause, component: str, seconds: float) -> None:
        assert seconds >= 0
        self.reviews.append((outcome, cause, component))

    def decided(self, lock_wait_seconds: float, attempts: int, conflicts: int, unknown: int) -> None:
        assert lock_wait_seconds >= 0
        self.decisions.append((attempts, conflicts, unknown))


class Replica:
    """One webhook process on a cluster: its own door, memory and queue."""

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        *,
        tokens: Iterable[str],
        other_schedulers: tuple[str, ...] = (),
        most_waiting: int = 8,
        expiry: float = EXPIRY,
    ) -> None:
        self.clock = clock
        self.cluster = cluster
        self.door = WatchedDoor(cluster, clock)
        self.store = GroupStore(self.door, pause=clock.pause)
        self.memory = AnswerMemory(clock=clock.monotonic)
        self.tools = RoundTools(
            cluster=self.store,
            memory=self.memory,
            decide=partial(decide_by_options, other_schedulers=other_schedulers),
            expiry=expiry,
            pause=clock.pause,
            chance=lambda: 0.5,
            tokens=iter(tokens),
        )
        self.queues = GroupQueues(self.tools, most_waiting)
        self.figures = Figures()
        self.notices: list[Notice] = []
        self.admission = Admission(
            Collaborators(
                groups=self.store,
                placer=self.queues,
                figures=self.figures,
                notify=self.notices.append,
                requests_of=requests_of,
            )
        )

    def review(self, pod: Manifest, *, budget: float = BUDGET, **request: Any) -> Answered:
        """Ask for a pod's admission; nothing is stored."""
        deadline = Deadline.after(budget, self.clock.monotonic)
        return answered(pod, self.admission.review(a_review(pod, **request), deadline))

    def admit(self, pod: Manifest, **request: Any) -> Answered:
        """Ask, and store the pod as the API server does if it is allowed."""
        result = self.review(pod, **request)
        if result.allowed:
            self.cluster.admit(result.pod, namespace=SPACE)
        return result


class Stand(Replica):
    """A cluster, with the class of its claims, and one webhook process on it; `another` starts one more."""

    def __init__(self, *objects: Manifest, serve: Iterable[Resource] = CUSTOM, **parts: Any) -> None:
        clock = Clock()
        self._tokens = (f"token{number:06d}" for number in itertools.count())
        self._parts = parts
        there = json.loads(json.dumps([a_class(), *objects]))
        cluster = MemoryCluster(there, clock=clock.server, serve=serve)
        super().__init__(cluster, clock, tokens=self._tokens, **parts)

    def another(self, clock: Clock | None = None) -> Replica:
        """One more webhook process, with a memory of its own; with a clock of its own if one is given."""
        return Replica(self.cluster, clock or self.clock, tokens=self._tokens, **self._parts)

    def annotations_of(self, claim: str) -> dict[str, str]:
        found = self.cluster.get(CLAIMS, claim, namespace=SPACE, timeout=1)
        return dict(found["metadata"].get("annotations") or {})

    def records(self) -> dict[str, dict[str, str]]:
        """Our annotations by claim, of the claims that have any."""
        listing = self.cluster.list(CLAIMS, namespace=SPACE, timeout=1)
        found = {item["metadata"]["name"]: item["metadata"].get("annotations") or {} for item in listing.items}
        ours = {
            name: {key: value for key, value in there.items() if key.startswith(keys.PREFIX)}
            for name, there in found.items()
        }
        return {name: there for name, there in ours.items() if there}

    def ledger(self) -> list[Manifest]:
        """The entries of the one ledger there is; [] without one."""
        found = [json.loads(there[keys.LOCK])["entries"] for there in self.records().values() if keys.LOCK in there]
        assert len(found) <= 1
        return list(found[0]) if found else []

    def seconds(self) -> list[tuple[str, str]]:
        """The second records: (claim, token)."""
        prefix = keys.ENTRY_PREFIX
        return sorted(
            (name, key.removeprefix(prefix))
            for name, there in self.records().items()
            for key in there
            if key.startswith(prefix)
        )

    def bind(self, name: str, node: str) -> None:
        """What the scheduler and the kubelet do."""
        patch = {"spec": {"nodeName": node}, "status": {"phase": "Running"}}
        self.cluster.merge_patch(PODS, name, patch, namespace=SPACE, timeout=1)

    def patch(self, resource: Resource, name: str, patch: Manifest) -> None:
        namespace = SPACE if resource.namespaced else ""
        self.cluster.merge_patch(resource, name, patch, namespace=namespace, timeout=1)

    def delete(self, resource: Resource, name: str) -> None:
        self.cluster.delete(resource, name, namespace=SPACE if resource.namespaced else "", timeout=1)
