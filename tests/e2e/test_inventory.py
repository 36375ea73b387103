"""The inventory follows a real API server, through its restart and past a silent network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kubernetes.client import Configuration

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.fault_proxy import FaultProxy
from e2e.faults import Rule, Stall
from e2e.objects import Object
from e2e.waiting import wait_until
from webhook.cluster.api import ApiDoor
from webhook.cluster.inventory import QUICK, Inventory, InventoryView

pytestmark = pytest.mark.e2e
PATIENCE = 60.0


@pytest.fixture
def inventory(control_plane: ControlPlane, fault_proxy: FaultProxy) -> Iterator[Inventory]:
    """An inventory that reaches the API server through the proxy."""
    configuration = Configuration(host=fault_proxy.url, ssl_ca_cert=str(control_plane.files.ca))
    configuration.api_key["BearerToken"] = f"Bearer {control_plane.token}"
    door = ApiDoor(configuration)
    # All at the quick pace: its threads end with their watches.
    with Inventory(door, slow=QUICK).following() as following:
        yield following
    fault_proxy.set_rules()
    following.stop(PATIENCE)
    door.close()


def view_of(inventory: Inventory) -> InventoryView:
    return wait_until(inventory.view, "an inventory that can be relied on", PATIENCE)


def pods_on(inventory: Inventory, node: str) -> list[str]:
    view = inventory.view()
    return [pod.name for pod in view.placed.pods.get(node, ())] if view else []


def knows(inventory: Inventory, node: str, *, unschedulable: bool = False) -> bool:
    view = inventory.view()
    return view is not None and any(found.name == node and found.unschedulable is unschedulable for found in view.nodes)


def test_what_happens_on_the_cluster_is_known_also_after_the_api_server_was_restarted(
    control_plane: ControlPlane,
    api: Api,
    namespace: str,
    create: Callable[..., list[Object]],
    inventory: Inventory,
) -> None:
    view_of(inventory)
    create(objects.node("followed"))
    wait_until(lambda: knows(inventory, "followed"), "the node to be known", PATIENCE)
    api.create(objects.filler_pod(namespace, "followed", cpu="1", memory="1Gi", name="filler"))
    wait_until(lambda: pods_on(inventory, "followed") == ["filler"], "the pod to be known", PATIENCE)

    control_plane.restart_apiserver()
    wait_until(lambda: knows(inventory, "followed"), "it to be relied on again", PATIENCE)
    api.patch("Node", "followed", {"spec": {"unschedulable": True}})
    wait_until(lambda: knows(inventory, "followed", unschedulable=True), "the cordon to be known", PATIENCE)
    api.delete("Pod", "filler", namespace, gracePeriodSeconds=0)
    wait_until(lambda: not pods_on(inventory, "followed"), "the pod to be gone", PATIENCE)


def test_when_the_network_falls_silent_nothing_is_proposed_until_it_speaks_again(
    inventory: Inventory, fault_proxy: FaultProxy
) -> None:
    view_of(inventory)
    # Neither an answer nor an end: what a load balancer does that has forgotten a connection.
    fault_proxy.set_rules(Rule(Stall(), path="watch=true"))
    wait_until(lambda: inventory.view() is None, "the silence to be noticed", PATIENCE)
    assert max(inventory.ages()["nodes"], inventory.ages()["pods"]) > 4.0
    fault_proxy.set_rules()
    view_of(inventory)
