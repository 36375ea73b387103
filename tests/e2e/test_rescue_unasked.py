"""While the API server would not ask the webhook about it, no waiting pod is freed: it would come without a decision.

No other leader may run meanwhile: this module's has a Lease of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from e2e import objects
from e2e.api import Api
from e2e.chart import SWITCH
from e2e.control_plane import ControlPlane
from e2e.namespaces import fresh_namespace
from e2e.place import Create, Place, per_node
from e2e.replicas import SERVICE, Webhook, wait_until_called
from e2e.rounds import few
from e2e.test_rescue import WITHIN, leader, one_with_a_bad_pin, wait_event
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

CONFIGURATION = "MutatingWebhookConfiguration"
UNFREED = "tidb_ha_webhook_unfreed_pods"


def test_a_pinned_pod_on_a_cordoned_node_is_not_freed_while_the_configuration_is_gone(
    api: Api,
    create: Create,
    control_plane: ControlPlane,
    service_namespace: str,
    tell: Callable[[str], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    create(*objects.local_cluster(["n0", "n1", "n2", "n3"]))
    folder, service = tmp_path_factory.mktemp("unasked"), (service_namespace, SERVICE)
    with fresh_namespace(api, "unasked") as name:
        api.patch("Namespace", name, {"metadata": {"labels": {SWITCH: name}}})
        flags = ["--controller", "--controller-namespace=kube-public", f"--controller-configuration={name}"]
        with Webhook(control_plane, folder, flags=flags, service=service) as webhook:
            place = Place(api, name, create)
            api.create(webhook.configuration(name))
            wait_until_called(api, name)
            gated, _ = one_with_a_bad_pin(api, place, "cordoned")
            api.delete(CONFIGURATION, name)
            (waiting,) = [pod for pod in place.pods() if not pod["spec"].get("nodeName")]

            event = wait_event(place, "PodNotFreed", waiting["metadata"]["name"])

            assert f"MutatingWebhookConfiguration {name} is not there" in event["message"]
            assert event["involvedObject"]["name"] in ("db-tikv", f"tikv-{waiting['metadata']['name']}")
            assert waiting["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in place.pods()}
            wait_until(lambda: leader(webhook).metrics()[UNFREED] == 1, "the pod to be counted", 10)

            # The rest takes a while, and is the other tests' of rescue.
            if few(2, most=1) > 1:
                api.create(webhook.configuration(name))
                began = time.monotonic()
                try:
                    pods = gated.wait_placed(WITHIN)
                finally:
                    api.delete(CONFIGURATION, name)
                tell(f"placed {time.monotonic() - began:.1f} s after the configuration was back")
                assert per_node(pods) == [1, 1, 1]
                assert [len(gated.lives[pod["metadata"]["name"]]) for pod in pods] == [1, 1, 2]
