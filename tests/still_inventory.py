"""An inventory that follows when a test says so, not by threads."""

from __future__ import annotations

from collections.abc import Callable

from webhook.cluster.inventory import Inventory
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.watching import Pace


def inventory_of(cluster: MemoryCluster, clock: Callable[[], float] = lambda: 0.0) -> Inventory:
    """An inventory that knows the cluster as it is now."""
    pace = Pace(watch=0.001, late=4.5)
    inventory = Inventory(cluster, quick=pace, slow=pace, clock=clock, chance=lambda: 0.0)
    follow(inventory)
    return inventory


def follow(inventory: Inventory) -> None:
    """Let it hear what has happened since."""
    for follower in inventory.followers:
        follower.follow_once()
