"""One namespace, and what the scenarios do in it over and over: start sets, wait, look, clear up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import urllib3

from e2e import objects
from e2e.api import Api, ApiError, Objects
from e2e.objects import Object

Create = Callable[..., list[Object]]

_numbers = count()


def labels_of(cluster: str = "db", component: str = "tikv") -> str:
    """The selector of one component of one cluster."""
    return f"app.kubernetes.io/instance={cluster},app.kubernetes.io/component={component}"


def node_of(pod: Object) -> str:
    """The node that a pod is on, "" while it has none."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def pin_of(pod: Object) -> str:
    """The node that a pod is pinned to by its name, "" if it is not."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    pins = {f["values"][0] for term in terms for f in term.get("matchFields", []) if f["operator"] == "In"}
    return pins.pop() if len(pins) == 1 else ""


def per_node(pods: Iterable[Object]) -> list[int]:
    """How many pods are on each node that has any, the most first."""
    return sorted(Counter(filter(None, map(node_of, pods))).values(), reverse=True)


@dataclass
class Place:
    """A namespace. What it creates outside of it (volumes) goes through `create`, and so is gone after the test."""

    api: Api
    namespace: str
    create: Create

    def start(self, **fields: Any) -> Object:
        """Create a StatefulSet; the fields are those of `objects.stateful_set`."""
        return self.api.create(objects.stateful_set(self.namespace, **fields))

    def pods(self, cluster: str = "db", component: str = "tikv") -> Objects:
        """The component's pods."""
        return self.api.list("Pod", self.namespace, labels=labels_of(cluster, component))

    def claims(self, cluster: str = "db", component: str = "tikv") -> Objects:
        """The component's claims."""
        return self.api.list("PersistentVolumeClaim", self.namespace, labels=labels_of(cluster, component))

    def wait_for(
        self,
        predicate: Callable[[Objects], bool],
        cluster: str = "db",
        component: str = "tikv",
        timeout: float = 60,
    ) -> Objects:
        """Wait until the predicate holds for the component's pods, and return them."""
        return self.api.wait_for(
            "Pod", predicate, self.namespace, labels=labels_of(cluster, component), timeout=timeout
        )

    def wait_placed(self, number: int, cluster: str = "db", component: str = "tikv", timeout: float = 60) -> Objects:
        """Wait until the component has exactly so many pods and each has a node."""
        return self.wait_for(lambda pods: len(pods) == number and all(map(node_of, pods)), cluster, component, timeout)

    def wait_running(self, number: int, cluster: str = "db", component: str = "tikv", timeout: float = 60) -> Objects:
        """Wait until the component has exactly so many pods and each is Ready and not on its way out."""
        return self.wait_for(lambda pods: len(pods) == number and all(map(is_ready, pods)), cluster, component, timeout)

    def remove(self, cluster: str = "db", component: str = "tikv", *, renew: bool = True) -> None:
        """Delete a set with its pods and claims, and put new volumes where all theirs were; nothing is waited for.

        Another set must have another name: what remains of this one must not count as its pods.
        """
        self.api.delete("StatefulSet", f"{cluster}-{component}", self.namespace, missing_ok=True)
        for kind in ("Pod", "PersistentVolumeClaim"):
            self.api.delete_all(kind, self.namespace, labels=labels_of(cluster, component), gracePeriodSeconds=0)
        if renew:
            self.renew_volumes()

    def renew_volumes_released(self) -> None:
        """The same for those only whose claims are gone already."""
        self.renew_volumes(lambda volume: volume["status"]["phase"] == "Released")

    def renew_volumes(self, which: Callable[[Object], bool] = bool) -> None:
        """Replace the local volumes that claims of this namespace have used, each by a fresh one on its node."""
        fresh = []
        for volume in self.api.list("PersistentVolume"):
            if volume["spec"].get("claimRef", {}).get("namespace") != self.namespace or gone(volume):
                continue
            if not which(volume):
                continue
            self.api.delete("PersistentVolume", volume["metadata"]["name"], missing_ok=True)
            terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            name = terms[0]["matchExpressions"][0]["values"][0]
            fresh.append(
                objects.local_volume(
                    f"{name}-fresh-{next(_numbers)}", name, storage_class=volume["spec"]["storageClassName"]
                )
            )
        # All in one call, which waits for them.
        self.create(*fresh)


def gone(found: Object) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in found["metadata"]


def is_ready(pod: Object) -> bool:
    """Whether a pod is Ready and stays."""
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not gone(pod)


def was_looked_at(pod: Object) -> bool:
    """Whether the scheduler has said where a pod goes, or that it goes nowhere for now."""
    return any(condition["type"] == "PodScheduled" for condition in pod["status"].get("conditions", []))


@dataclass
class Tries:
    """What became of creates that were tried again until they succeeded."""

    refused: list[str] = field(default_factory=list)
    """What the failures said."""
    names: set[str] = field(default_factory=set)
    """Whose creates have failed at first."""
    slowest: float = 0.0

    def create(self, api: Api, pod: Object, timeout: float) -> None:
        """Create a pod as a controller does: again after every failure; one that exists already is there."""
        deadline = time.monotonic() + timeout
        while True:
            began = time.monotonic()
            try:
                api.create(pod)
            except ApiError as error:
                if error.body.get("reason") == "AlreadyExists":
                    return
                if time.monotonic() > deadline:
                    raise
                self.refused.append(str(error))
            except urllib3.exceptions.HTTPError as error:
                if time.monotonic() > deadline:
                    raise
                self.refused.append(repr(error))
            else:
                return
            finally:
                self.slowest = max(self.slowest, time.monotonic() - began)
            self.names.add(pod["metadata"]["name"])
            time.sleep(0.1)


class HandSet:
    """A set whose controller is the test: claims and pods are created when, and as simultaneously as, it says.

    It is an advanced StatefulSet (a kind that no controller here knows) with the claims and pods of one.
    """

    def __init__(self, place: Place, cluster: str = "db", component: str = "tikv", replicas: int = 3, **fields: Any):
        self.place = place
        self.api = place.api
        self.cluster, self.component, self.replicas = cluster, component, replicas
        manifest = objects.stateful_set(
            place.namespace, cluster=cluster, component=component, replicas=replicas, **fields
        )
        self.set = self.api.create(objects.advanced(manifest))

    def create_claims(self, ordinals: Iterable[int]) -> None:
        """The claims of some members."""
        for ordinal in ordinals:
            for claim in objects.member_claims(self.set, ordinal):
                self.api.create(claim)

    def create_pods(
        self, ordinals: Sequence[int], *, timeout: float = 60, apis: Sequence[Api] = (), **spec: Any
    ) -> Tries:
        """The pods of some members, all at the same moment, through several API servers in turn if `apis` are given."""
        through = apis or (self.api,)
        tries, barrier, errors = Tries(), threading.Barrier(len(ordinals)), []

        def one(ordinal: int) -> None:
            barrier.wait()
            try:
                tries.create(through[ordinal % len(through)], objects.member_pod(self.set, ordinal, **spec), timeout)
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                errors.append(error)

        threads = [threading.Thread(target=one, args=(ordinal,)) for ordinal in ordinals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return tries

    def start(self, number: int, **spec: Any) -> Tries:
        """Claims and pods 0 to `number` - 1."""
        self.create_claims(range(number))
        return self.create_pods(range(number), **spec)

    def claim_name(self, ordinal: int) -> str:
        """The name of one member's claim."""
        name: str = objects.member_claims(self.set, ordinal)[0]["metadata"]["name"]
        return name

    def pods(self) -> Objects:
        """The members."""
        return self.place.pods(self.cluster, self.component)

    def wait_placed(self, number: int, timeout: float = 60) -> Objects:
        """Wait until there are so many members and each has a node."""
        return self.place.wait_placed(number, self.cluster, self.component, timeout)

    def wait_pinned_placed(self, number: int) -> Objects:
        """Wait until there are so many members and each that is pinned has a node."""
        return self.place.wait_for(
            lambda pods: len(pods) == number and all(node_of(pod) for pod in pods if pin_of(pod)),
            self.cluster,
            self.component,
        )

    def remove(self, *, renew: bool = True) -> None:
        """Take everything of it away; see `Place.remove`."""
        self.api.delete("apps.pingcap.com/StatefulSet", self.set["metadata"]["name"], self.place.namespace)
        self.place.remove(self.cluster, self.component, renew=renew)
