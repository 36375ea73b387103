"""Called again because another mutator has changed the pod after us."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.objects import ASSIGNED_NODE, Object
from e2e.place import Create, HandSet, Place, per_node, pin_of
from e2e.replicas import SERVICE, Webhook, tally
from e2e.rounds import at_once
from e2e.waiting import wait_until
from e2e.webhook_servers import allowed, served_webhook

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]


@pytest.fixture
def other_mutator(api: Api, control_plane: ControlPlane, service_namespace: str, place: Place) -> Iterator[list[str]]:
    """Adds a container; the nodes that the pods were assigned to when it was called."""
    calls: list[str] = []

    def answer(path: str, body: bytes) -> Object:
        pod = json.loads(body)["request"]["object"]
        calls.append(pod["metadata"].get("annotations", {}).get(ASSIGNED_NODE, ""))
        sidecar = objects.container("sidecar", cpu="10m", memory="16Mi")
        change = {"op": "add", "path": "/spec/containers/-", "value": sidecar}
        return allowed(body, [change] if len(pod["spec"]["containers"]) == 1 else [])

    service = (service_namespace, SERVICE)
    with served_webhook(control_plane, service, answer) as port:
        # By its name it comes after ours.
        api.create(
            objects.webhook_configuration(
                "zz-other",
                service=service,
                port=port,
                ca_bundle=control_plane.ca.cert_pem.bytes(),
                failure_policy="Fail",
                reinvocationPolicy="IfNeeded",
                namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            )
        )
        probe = objects.filler_pod(place.namespace, "nowhere", cpu="1m", memory="1Mi")
        wait_until(lambda: len(api.create(probe, dryRun="All")["spec"]["containers"]) == 2, "the other mutator", 30)
        calls.clear()
        yield calls
        api.delete("MutatingWebhookConfiguration", "zz-other")


def test_called_again_beside_another_mutator_it_stays_with_its_answer(
    create: Create, place: Place, other_mutator: list[str], webhook: Webhook
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))
    before = webhook.decisions()

    def start(cluster: str) -> list[Object]:
        members = HandSet(place, cluster)
        members.start(3)
        pods = members.wait_placed(3)
        assert per_node(pods) == [1, 1, 1]
        assert tally(pods) == {"pinned": 3}
        assert [len(pod["spec"]["containers"]) for pod in pods] == [2, 2, 2]
        return pods

    pods = [pod for started in at_once(start) for pod in started]

    # The other has seen the answer each time; ours was called once more after its change, and had nothing to add.
    assert set(other_mutator) == set(map(pin_of, pods))
    assert (webhook.decisions() - before)["unchanged"] == len(pods)
