"""A cluster on which a controller takes turns, and a test plays the owner of the pods, the scheduler and the clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster_objects import SPACE
from stand import Answered, Replica, Stand

from webhook.cluster.door import NODES, PODS, Manifest
from webhook.cluster.quantities import requests_of
from webhook.controller.asking import Registration
from webhook.controller.looking import Looker
from webhook.controller.loop import Collaborators, Rescue
from webhook.events import Notice


@dataclass
class Counted:
    """What a controller counted."""

    rescues: list[tuple[str, str]] = field(default_factory=list)
    waiting: int = 0
    held_back: int = 0
    halted: bool = False

    def rescued(self, kind: str, result: str) -> None:
        self.rescues.append((str(kind), result))

    def stuck(self, number: int) -> None:
        self.waiting = number

    def unfreed(self, number: int) -> None:
        self.held_back = number

    def stopped(self, stopped: bool) -> None:
        self.halted = stopped


class Leader:
    """A controller over a replica's door, on the stand's clock."""

    def __init__(self, replica: Replica, *, other_schedulers: tuple[str, ...] = (), configuration: str = "") -> None:
        self.replica = replica
        self.figures = Counted()
        self.notices: list[Notice] = []
        self.rescue = Rescue(
            Collaborators(
                door=replica.door,  # type: ignore[arg-type] # it neither scans nor watches
                groups=replica.store,
                look=Looker(replica.tools, requests_of).look,
                unasked=Registration(replica.door, configuration).why_not,  # type: ignore[arg-type]
                figures=self.figures,
                notify=self.notices.append,
                clock=replica.clock.monotonic,
                other_schedulers=other_schedulers,
            )
        )

    def turns(self, seconds: float, *, period: float = 5.0) -> None:
        """Turns for so long; nobody creates again what is deleted."""
        self.rescue.turn()
        for _ in range(round(seconds / period)):
            self.replica.clock.elapsed += period
            self.rescue.turn()

    @property
    def deleted(self) -> list[str]:
        """The names of the pods that this one asked to delete."""
        calls = (call.split() for call in self.replica.door.calls)
        return [call[2] for call in calls if call[:2] == ["delete", "pods"]]

    @property
    def reasons(self) -> list[str]:
        return [notice.reason for notice in self.notices]


def pods_of(stand: Stand) -> dict[str, Manifest]:
    """The pods by name."""
    return {item["metadata"]["name"]: item for item in stand.cluster.list(PODS, namespace=SPACE, timeout=1).items}


def play_owner(stand: Stand, *pods: Manifest) -> list[Answered]:
    """Create again, through the webhook, those of these pods that are not there."""
    there = pods_of(stand)
    return [stand.admit(pod) for pod in pods if pod["metadata"]["name"] not in there]


def cordon(stand: Stand, *names: str, uncordon: bool = False) -> None:
    """What kubectl does."""
    for name in names:
        stand.patch(NODES, name, {"spec": {"unschedulable": None if uncordon else True}})
