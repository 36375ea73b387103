"""The webhook inside the test: a real API server calls it, and the test can see what its inventory knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import Configuration

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.differential.stage import BY, WORLDS
from e2e.objects import Object
from e2e.replicas import SERVICE, SWITCH
from e2e.waiting import wait_until
from e2e.webhook_servers import served_webhook
from webhook.cluster.api import ApiDoor
from webhook.cluster.door import Door, Manifest
from webhook.cluster.inventory import QUICK, Inventory
from webhook.cluster.shelves import attached
from webhook.cluster.trimming import ATTACHMENT, NODE, POD, VOLUME, Key, Kind, key_of
from webhook.deadline import Deadline
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wiring import build_admission, build_parts

PATIENCE = 30.0
PROPOSED, READ = "proposed", "read"


class InsideWebhook:
    """Two admissions in one process: one that has an inventory, and one that reads everything in each round."""

    def __init__(self, plane: ControlPlane) -> None:
        configuration = Configuration(host=plane.url, ssl_ca_cert=str(plane.files.ca))
        configuration.api_key["BearerToken"] = f"Bearer {plane.token}"
        self.door = ApiDoor(configuration)
        # Quick, so that it is quick to stop as well.
        self.inventory = Inventory(self.door, slow=QUICK)
        settings, metrics = Settings(), Metrics()
        with_inventory = build_parts(settings, self.door, self.inventory)
        self._admissions = {
            f"/{PROPOSED}": build_admission(settings, self.door, metrics, with_inventory),
            f"/{READ}": build_admission(settings, self.door, metrics),
        }

    def settle(self) -> None:
        """Wait until the inventory knows what the cluster is now."""
        wait_until(lambda: knows(self.inventory, self.door), "the inventory to be as the cluster is", PATIENCE)

    def answer(self, target: str, body: bytes) -> Object:
        """The answer of the admission behind a path, within the time that its query gives."""
        asked = urlsplit(target)
        budget = float(parse_qs(asked.query)["timeout"][0].removesuffix("s"))
        return dict(self._admissions[asked.path].review(body, Deadline.after(budget)))


def knows(inventory: Inventory, door: Door) -> bool:
    """Whether the inventory says what the cluster is now."""
    view = inventory.view()
    if view is None:
        return False
    known: dict[Any, object] = {
        NODE: {("", node.name): node for node in view.nodes},
        POD: {(pod.namespace, pod.name): pod for pod in view.placed.pods.everybody()},
        VOLUME: {("", volume.name): volume for pool in view.volumes().values() for volume in pool},
        ATTACHMENT: {name: there for name, there in view.attached().items() if there},
    }
    for each in inventory.followers:
        stored = _stored(door, each.kind)
        wanted = attached(stored.values()) if each.kind is ATTACHMENT else stored
        if wanted != (known[each.kind] if each.kind in known else dict(view.of(each.kind))):
            return False
    return True


def _stored(door: Door, kind: Kind[Any]) -> dict[Key, Any]:
    found: dict[Key, Any] = {}

    def visit(manifest: Manifest) -> None:
        if (value := kind.trim(manifest)) is not None:
            found[key_of(manifest)] = value

    door.scan(kind.resource, visit, timeout=PATIENCE)
    return found


@contextmanager
def webhook_inside(plane: ControlPlane, api: Api, namespace: str) -> Iterator[InsideWebhook]:
    """The webhook, registered for the namespaces of `stage.prepared`; `namespace` is that of its Service."""
    inside = InsideWebhook(plane)
    with served_webhook(plane, (namespace, SERVICE), inside.answer) as port, inside.inventory.following():
        for name in (PROPOSED, READ):
            api.create(_configuration(plane, name, port, namespace))
        try:
            yield inside
        finally:
            for name in (PROPOSED, READ):
                api.delete("MutatingWebhookConfiguration", f"differential-{name}")
    inside.inventory.stop(PATIENCE)
    inside.door.close()


def _configuration(plane: ControlPlane, name: str, port: int, namespace: str) -> Object:
    return objects.webhook_configuration(
        f"differential-{name}",
        service=(namespace, SERVICE),
        port=port,
        ca_bundle=plane.ca.cert_pem.bytes(),
        path=f"/{name}",
        failure_policy="Fail",
        timeout_seconds=30,
        namespaceSelector={"matchLabels": {SWITCH: WORLDS}},
        objectSelector={"matchLabels": {BY: name}},
    )
