"""Three replicas are restarted in a roll under load: no create fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.namespaces import registered
from e2e.place import Create, HandSet, Place
from e2e.replicas import SERVICE, Webhook, tally
from e2e.rounds import rounds
from e2e.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

Tell = Callable[[str], None]
A_SECOND = 20
"""Creates, evenly spaced."""
MOST_UNDER_WAY = 30
"""Calls that the controller manager may send in one burst."""
PROVISIONED = "provisioned"
HOLD = {"name": "e2e.test/hold"}
"""Keeps the scheduler out of it."""


@pytest.mark.timeout(300)
def test_a_rolling_restart_of_three_replicas_under_twenty_creates_a_second_fails_no_call(
    api: Api,
    create: Create,
    control_plane: ControlPlane,
    service_namespace: str,
    tmp_path: Path,
    tell: Tell,
    request: pytest.FixtureRequest,
) -> None:
    # A class whose volumes can come to be on every node, so that every pod can be pinned; nobody provisions them here.
    create({**objects.storage_class(PROVISIONED), "provisioner": "example.test/nobody"})
    create(*(objects.node(f"n{i}", pods=1000, cpu="64", memory="256Gi") for i in range(10)))
    number = 1000 if rounds(1000) == 1000 else 200
    service = (service_namespace, SERVICE)
    with (
        Webhook(
            control_plane, tmp_path, replicas=3, flags=["--drain-seconds=3"], chart_rights=True, service=service
        ) as webhook,
        registered(api, create, webhook, request.node.name) as place,
        rolling(webhook) as restarts,
    ):
        load = Load(place)
        load.run(number, lambda: restarts[0] < 3)
        given = tally(api.list("Pod", place.namespace))

    tell(f"{load.summary()}; {restarts[0]} restarts; {dict(given)}")
    assert not load.failed
    assert given == {"pinned": load.created}


class Load:
    """Members of sets of three, whose creates are sent at an even pace."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.created = 0
        self.failed: list[str] = []
        self._seconds = 0.0

    def run(self, number: int, goes_on: Callable[[], bool]) -> None:
        """Send so many creates, and more for as long as it goes on."""
        began = time.monotonic()
        slots = threading.Semaphore(MOST_UNDER_WAY)

        def one(members: HandSet, ordinal: int) -> None:
            try:
                members.create_claims([ordinal])
                self.place.api.create(objects.member_pod(members.set, ordinal, schedulingGates=[HOLD]))
            except ApiError as error:
                self.failed.append(str(error))
            finally:
                slots.release()

        with ThreadPoolExecutor(MOST_UNDER_WAY) as executor:
            while self.created < number or goes_on():
                if self.created % 3 == 0:
                    members = HandSet(self.place, f"db{self.created}", storage_class=PROVISIONED)
                slots.acquire()
                executor.submit(one, members, self.created % 3)
                self.created += 1
                # The pace of the load, not a wait for anything.
                time.sleep(max(0.0, began + self.created / A_SECOND - time.monotonic()))
        self._seconds = time.monotonic() - began

    def summary(self) -> str:
        """How many in which time."""
        return f"{self.created} creates in {self._seconds:.0f} s, {len(self.failed)} failed"


@contextmanager
def rolling(webhook: Webhook) -> Iterator[list[int]]:
    """Restart one replica after the other, politely, each once; how many so far."""
    restarts = [0]

    def roll() -> None:
        for replica in webhook.replicas:
            replica.child.stop(timeout=30)
            replica.start()
            wait_until(lambda: webhook.balancer.in_service() == len(webhook.replicas), "its return to service", 30)
            restarts[0] += 1

    thread = threading.Thread(target=roll)
    thread.start()
    try:
        yield restarts
    finally:
        thread.join()
