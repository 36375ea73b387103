"""The control plane, the webhook, and a namespace for each arm, for the length of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from e2e import objects
from e2e.api import Api
from e2e.conftest import define, fresh_namespace, registered
from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.place import Place
from e2e.replicas import SERVICE, Webhook
from e2e.waiting import wait_until

from bench.arms import ARMS, Arm
from bench.usage import cpu_seconds

REPLICAS = 2
"""Of the webhook, as the chart has it; and, as there, a controller in a process of its own."""

CONTROLLER_MANAGER_FLAGS = ("--kube-api-qps=100", "--kube-api-burst=200")
"""Its default of 20 calls/s would be all that a burst of sets shows."""

ZONES = ("z0", "z1", "z2")
ADVANCED_SET = "apps.pingcap.com/StatefulSet"
RESCUES = "tidb_ha_webhook_rescues_total{"
QUIET = 0.3
"""Processors used below which control plane and webhook count as idle."""


_runs = count()


@dataclass(frozen=True)
class Ground:
    """Where the arms are measured; each has a namespace of its own."""

    plane: ControlPlane
    api: Api
    webhook: Webhook
    controller: Webhook
    """One more process, which answers no reviews."""
    places: Mapping[Arm, Place]

    @contextmanager
    def nodes(self, number: int, *, volumes: int) -> Iterator[list[str]]:
        """So many nodes of one shape, in three zones, each with so many local volumes, within a `with` block."""
        run = next(_runs)
        # Never a name twice: what the webhook has promised on a node counts there for a while.
        names = [f"{run}-n{index}" for index in range(number)]
        for manifest in objects.local_cluster(names, zones=ZONES, volumes=volumes):
            self.api.create(manifest)
        self.api.wait_for("Node", lambda found: all(not node["spec"].get("taints") for node in found))
        self.wait_volumes()
        yield names
        # Not after a failure, which would be hidden by one to clear up after it.
        for kind in ("Node", "PersistentVolume", "StorageClass"):
            self.api.delete_all(kind)
            self.api.wait_for(kind, lambda found: not found)

    def clear(self, place: Place) -> None:
        """Take all pods of a namespace away with what belongs to them, and wait until nothing is left to do."""
        for kind in ("StatefulSet", ADVANCED_SET, "Pod", "PersistentVolumeClaim"):
            self.api.delete_all(kind, place.namespace, gracePeriodSeconds=0)
        for kind in ("Pod", "PersistentVolumeClaim"):
            self.api.wait_for(kind, lambda found: not found, place.namespace, timeout=120)
        place.renew_volumes()
        self.wait_volumes()
        self.settle()

    def wait_volumes(self) -> None:
        """Wait until every volume can be bound: before, the scheduler passes over it."""
        self.api.wait_for(
            "PersistentVolume", lambda found: {volume["status"].get("phase") for volume in found} <= {"Available"}
        )

    def settle(self) -> None:
        """Wait until control plane and webhook have next to nothing to do, so that nobody measures their past."""
        # Looked at over half a second, since the kernel counts in hundredths.
        wait_until(lambda: self._used(0.5) < QUIET, "the control plane to be idle", 60)

    def _used(self, seconds: float) -> float:
        groups = self.groups
        before = cpu_seconds(groups)
        time.sleep(seconds)
        return (cpu_seconds(groups) - before) / seconds

    @property
    def groups(self) -> set[int]:
        """The process groups of control plane, webhook and controller."""
        return {child.pid for child in self.plane.children} | self.webhook_groups

    @property
    def webhook_groups(self) -> set[int]:
        """Those of webhook and controller."""
        return {replica.child.pid for each in (self.webhook, self.controller) for replica in each.replicas}

    def freed(self) -> int:
        """How many pods the controller has freed so far."""
        samples = self.controller.replicas[0].metrics().items()
        return int(sum(value for name, value in samples if name.startswith(RESCUES) and '"replaced"' in name))


@contextmanager
def new_ground(folder: Path) -> Iterator[Ground]:
    """Start everything; logs and certificates go into this folder."""
    with (
        ControlPlane(folder / "control-plane", controller_manager_flags=CONTROLLER_MANAGER_FLAGS) as plane,
        Api(plane.url, plane.token, plane.files.ca) as api,
    ):
        system = "webhook-system"
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}})
        api.create(objects.external_name_service(system, SERVICE))
        define(api, objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets"))
        with (
            Webhook(plane, folder / "webhook", replicas=REPLICAS, service=(system, SERVICE)) as webhook,
            arms_on(plane, api, webhook, folder) as ground,
        ):
            yield ground


@contextmanager
def arms_on(plane: ControlPlane, api: Api, webhook: Webhook, folder: Path) -> Iterator[Ground]:
    """The arms' namespaces, and a controller, on what is running already."""

    def create(*manifests: Object) -> list[Object]:
        return [api.create(manifest) for manifest in manifests]

    namespace, _ = webhook.service
    flags = ["--controller", f"--controller-namespace={namespace}", "--threads=2"]
    with ExitStack() as stack:
        controller = Webhook(plane, folder / "controller", flags=flags, service=webhook.service)
        stack.enter_context(controller)
        places = {}
        for arm in ARMS:
            if arm.webhook:
                places[arm] = stack.enter_context(registered(api, create, webhook, "bench-webhook"))
            else:
                name = stack.enter_context(fresh_namespace(api, f"bench-{len(places)}"))
                places[arm] = Place(api, name, create)
        yield Ground(plane, api, webhook, controller, places)
