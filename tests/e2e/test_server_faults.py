"""The API server or etcd is struck in the middle of a round: nobody stacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from e2e import objects
from e2e.api import Api, wait_until_usable
from e2e.control_plane import ControlPlane
from e2e.disturbed import STRIKES, shaken
from e2e.evidence import was_cut_off, was_hit
from e2e.faults import Call
from e2e.namespaces import define, registered
from e2e.objects import Object
from e2e.place import Place
from e2e.replicas import SERVICE, Webhook, wait_until_called

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.usefixtures("advanced_sets"),
    # urllib3 leaves a socket to the garbage collector where the server dies in the TLS handshake.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"),
]

Tell = Callable[[str], None]


def freeze_etcd(plane: ControlPlane) -> None:
    """For two seconds every call hangs, and may be applied afterwards."""
    with plane.etcd_frozen():
        Event().wait(2)


@pytest.mark.timeout(120 + 40 * STRIKES)
@pytest.mark.parametrize(
    ("strike", "hit", "pinned"),
    [(ControlPlane.restart_apiserver, was_cut_off, 0.7), (freeze_etcd, was_hit, 0.8)],
    ids=["api-server-killed-and-started-again", "etcd-frozen-for-two-seconds"],
)
def test_a_server_that_is_struck_in_the_middle_of_a_round_makes_nobody_stack(
    control_plane: ControlPlane,
    frail: Webhook,
    frail_place: Place,
    tell: Tell,
    strike: Callable[[ControlPlane], None],
    hit: Callable[[Call], bool],
    pinned: float,
) -> None:
    scenario = shaken(frail_place, frail)
    scenario.hit = hit

    for _ in range(STRIKES):
        with scenario.one() as under_way:
            under_way.in_the_middle()
            strike(control_plane)

    tell(scenario.finish())
    assert scenario.share_pinned() >= pinned


@pytest.mark.timeout(200 + 50 * STRIKES)
def test_two_api_servers_on_one_etcd_of_which_one_is_killed_stack_nobody(tmp_path: Path, tell: Tell) -> None:
    with (
        ControlPlane(tmp_path / "plane", apiservers=2) as plane,
        Api(plane.urls[0], plane.token, plane.files.ca) as first,
        Api(plane.urls[1], plane.token, plane.files.ca) as second,
    ):

        def create(*manifests: Object) -> list[Object]:
            made = [first.create(manifest) for manifest in manifests]
            wait_until_usable(first, made)
            return made

        define(first, objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets"))
        create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}})
        create(objects.external_name_service("system", SERVICE))
        with (
            Webhook(
                plane,
                tmp_path / "webhook",
                replicas=3,
                proxied=True,
                servers=plane.urls,
                chart_rights=True,
                service=("system", SERVICE),
            ) as webhook,
            registered(first, create, webhook, "two-api-servers") as place,
        ):
            wait_until_called(second, place.namespace)
            scenario = shaken(place, webhook)
            scenario.apis, scenario.slow = (first, second), 0.0
            for _ in range(STRIKES):
                with scenario.one():
                    pass
            undisturbed = scenario.finish()
            assert scenario.share_pinned() == 1.0

            scenario.slow, scenario.hit = 0.2, was_cut_off
            for _ in range(STRIKES):
                with scenario.one() as under_way:
                    under_way.in_the_middle()
                    plane.restart_apiserver(1)
            disturbed = scenario.finish()

    tell(f"undisturbed: {undisturbed}; then all: {disturbed}")
    assert scenario.share_pinned() >= 0.7
