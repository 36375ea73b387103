"""Around an admission: dry runs, reinvocation, pods that are none of ours, outages, restarts."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.conftest import registered
from e2e.control_plane import ControlPlane
from e2e.objects import ASSIGNED_NODE, DECISION, ENTRY_PREFIX, LOCK, Object
from e2e.place import Create, HandSet, Place, node_of, per_node, pin_of
from e2e.processes import free_port
from e2e.replicas import SERVICE, Webhook, outcome_of, tally
from e2e.rounds import rounds
from e2e.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]
Tell = Callable[[str], None]


def records(claims: list[Object]) -> list[str]:
    """What of ours is on the claims."""
    keys = [key for claim in claims for key in claim["metadata"].get("annotations", {})]
    return [key for key in keys if key == LOCK or key.startswith(ENTRY_PREFIX)]


def marks(pod: Object) -> list[str]:
    """What of ours is on a pod."""
    return [key for key in pod["metadata"].get("annotations", {}) if key.startswith("tidb-ha-webhook.io/")]


class TestDryRun:
    """The same answer, nothing written."""

    @pytest.fixture
    def members(self, create: Create, place: Place) -> HandSet:
        create(*objects.local_cluster(THREE))
        members = HandSet(place)
        members.create_claims(range(3))
        return members

    @pytest.mark.parametrize("way", ["post", "apply", "kubectl"])
    def test_a_dry_run_is_answered_with_a_node_and_writes_nothing(
        self, api: Api, control_plane: ControlPlane, members: HandSet, place: Place, way: str
    ) -> None:
        pod = objects.member_pod(members.set, 0)
        match way:
            case "post":
                admitted = api.create(pod, dryRun="All")
            case "apply":
                admitted = api.apply(pod, manager="e2e", dryRun="All")
            case _:
                done = control_plane.kubectl(
                    "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod)
                )
                assert done.returncode == 0, done.stderr
                admitted = json.loads(done.stdout)

        assert outcome_of(admitted) == "pinned"
        assert pin_of(admitted) in THREE
        assert not records(place.claims())
        assert not members.pods()

    def test_what_a_dry_run_said_is_created_after_all_and_gets_a_token(
        self, api: Api, members: HandSet, place: Place
    ) -> None:
        told = api.create(objects.member_pod(members.set, 0), dryRun="All")
        pod = objects.member_pod(members.set, 0)
        pod["metadata"]["annotations"] = told["metadata"]["annotations"]
        pod["spec"]["affinity"] = told["spec"]["affinity"]

        created = api.create(pod)

        assert pin_of(created) in THREE
        assert json.loads(created["metadata"]["annotations"][DECISION])["token"]
        assert records(place.claims())


class _Other(BaseHTTPRequestHandler):
    """Another mutator: adds a container, so that ours is called once more."""

    protocol_version = "HTTP/1.1"
    calls: list[str]

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pod = review["request"]["object"]
        self.calls.append(pod["metadata"].get("annotations", {}).get(ASSIGNED_NODE, ""))
        patch: list[Any] = []
        if len(pod["spec"]["containers"]) == 1:
            sidecar = objects.container("sidecar", cpu="10m", memory="16Mi")
            patch = [{"op": "add", "path": "/spec/containers/-", "value": sidecar}]
        response: Object = {"uid": review["request"]["uid"], "allowed": True}
        if patch:
            encoded = base64.b64encode(json.dumps(patch).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": encoded}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def other_mutator(api: Api, control_plane: ControlPlane, service_namespace: str, place: Place) -> Iterator[list[str]]:
    """The nodes that the pods were assigned to when the other mutator was called."""
    calls: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), type("Handler", (_Other,), {"calls": calls}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    control_plane.ca.issue_cert(f"{SERVICE}.{service_namespace}.svc").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    # By its name it comes after ours.
    api.create(
        objects.webhook_configuration(
            "zz-other",
            service=(service_namespace, SERVICE),
            port=server.server_port,
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
    server.shutdown()
    thread.join()
    server.server_close()


def test_called_again_beside_another_mutator_it_stays_with_its_answer(
    create: Create, place: Place, other_mutator: list[str], webhook: Webhook
) -> None:
    create(*objects.local_cluster(THREE))
    before = webhook.decisions()
    members = HandSet(place)
    members.start(3)

    pods = members.wait_placed(3)
    assert per_node(pods) == [1, 1, 1]
    assert tally(pods) == {"pinned": 3}
    assert [len(pod["spec"]["containers"]) for pod in pods] == [2, 2, 2]
    assert all(other_mutator)
    assert Counter(other_mutator).keys() == set(map(pin_of, pods))
    # It was called twice for each, and the second time had nothing to add.
    assert (webhook.decisions() - before)["unchanged"] == 3


@pytest.mark.parametrize("conditions", [True, False], ids=["match-conditions", "no-match-conditions"])
def test_pods_that_are_none_of_ours_are_not_touched(
    api: Api, create: Create, webhook: Webhook, request: pytest.FixtureRequest, conditions: bool
) -> None:
    create(*objects.local_cluster(THREE))
    fields: dict[str, Any] = {} if conditions else {"matchConditions": []}
    with registered(api, create, webhook, request.node.name, **fields) as place:
        labels = objects.operator_labels("db", "tikv")
        ordinary = {"app": "web"}
        container = objects.container("main", cpu="10m", memory="16Mi")
        template = {"metadata": {"labels": ordinary}, "spec": {"containers": [container]}}
        for kind, spec in (("Deployment", {"replicas": 3}), ("DaemonSet", {})):
            api.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": kind,
                    "metadata": {"name": kind.lower(), "namespace": place.namespace},
                    "spec": {"selector": {"matchLabels": ordinary}, "template": template, **spec},
                }
            )
        bound = objects.filler_pod(place.namespace, "n0", cpu="10m", memory="16Mi", name="bound")
        bound["metadata"]["labels"] = labels
        mirror = objects.filler_pod(place.namespace, "n1", cpu="10m", memory="16Mi", name="mirror")
        mirror["metadata"] |= {"labels": labels, "annotations": {"kubernetes.io/config.mirror": "0123"}}
        metadata = {"generateName": "loose-", "namespace": place.namespace, "labels": labels}
        loose = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        admitted = [api.create(pod) for pod in (bound, mirror, loose)]

        pods = api.wait_for("Pod", lambda pods: len(pods) == 3 + 3 + 3, place.namespace)

        assert [marks(pod) for pod in (*admitted, *pods)] == [[]] * 12
        assert not any("affinity" in pod["spec"] for pod in pods if "app" not in pod["metadata"].get("labels", {}))


class TestNoSafeNode:
    """Three members on two nodes."""

    def test_the_third_waits_readably_and_is_placed_when_a_node_comes(
        self, api: Api, create: Create, place: Place
    ) -> None:
        create(*objects.local_cluster(["n0", "n1"]))
        place.start()

        pods = place.wait_for(lambda pods: len(pods) == 3 and sum(map(bool, map(node_of, pods))) == 2)
        assert tally(pods) == {"pinned": 2, "guarded NoSafeNode": 1}
        (waiting,) = (pod["metadata"]["name"] for pod in pods if not node_of(pod))
        events = api.wait_for(
            "Event",
            lambda found: any(e["involvedObject"]["name"] == waiting for e in found),
            place.namespace,
            fields="reason=FailedScheduling",
        )
        assert any("pod anti-affinity rules" in event["message"] for event in events)
        ours = api.wait_for("Event", bool, place.namespace, fields="reason=NoSafeNode")
        assert "at most 1" in ours[0]["message"]

        create(*objects.local_cluster(["n2"])[1:])

        assert per_node(place.wait_running(3)) == [1, 1, 1]

    @pytest.mark.parametrize(("choice", "expected"), [("Deny", "nothing"), ("Admit", "admitted NoSafeNode")])
    def test_the_owner_may_choose_to_have_it_refused_or_let_in(
        self, create: Create, place: Place, choice: str, expected: str
    ) -> None:
        create(*objects.local_cluster(["n0", "n1"]))
        members = HandSet(place)
        members.create_claims(range(3))
        members.create_pods([0, 1])
        pod = objects.member_pod(members.set, 2)
        pod["metadata"]["annotations"] = {"tidb-ha-webhook.io/when-unplaceable": choice}

        if choice == "Deny":
            with pytest.raises(ApiError, match="no node that can take it is within the cap") as refused:
                place.api.create(pod)
            assert refused.value.status == 403
        else:
            assert outcome_of(place.api.create(pod)) == expected


class TestOutage:
    """All replicas are away, and come back."""

    @pytest.fixture
    def frail(self, control_plane: ControlPlane, service_namespace: str, tmp_path: Path) -> Iterator[Webhook]:
        with Webhook(control_plane, tmp_path, replicas=1, service=(service_namespace, SERVICE)) as webhook:
            yield webhook

    def test_under_fail_nobody_comes_in_until_it_is_back(
        self, api: Api, create: Create, frail: Webhook, request: pytest.FixtureRequest
    ) -> None:
        create(*objects.local_cluster(THREE))
        with registered(api, create, frail, request.node.name, failure_policy="Fail") as place:
            frail.replicas[0].child.kill()
            place.start()
            api.wait_for("Event", bool, place.namespace, fields="reason=FailedCreate")
            assert not place.pods()

            frail.replicas[0].start()

            pods = place.wait_running(3)
            assert per_node(pods) == [1, 1, 1]
            assert tally(pods) == {"pinned": 3}

    def test_under_ignore_what_slipped_through_is_counted_and_never_made_worse(
        self, api: Api, create: Create, frail: Webhook, request: pytest.FixtureRequest
    ) -> None:
        create(*objects.local_cluster(["n0"], volumes=4))
        with registered(api, create, frail, request.node.name, failure_policy="Ignore") as place:
            frail.replicas[0].child.kill()
            place.start(replicas=2)
            pods = place.wait_running(2)
            assert tally(pods) == {"nothing": 2}
            assert per_node(pods) == [2]
            frail.replicas[0].start()
            create(*objects.local_cluster(["n1", "n2"], volumes=2)[1:])

            api.patch("StatefulSet", "db-tikv", {"spec": {"replicas": 4}}, place.namespace)

            pods = place.wait_running(4)
            assert per_node(pods) == [2, 1, 1]
            assert tally(pods) == {"nothing": 2, "pinned": 2}


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
    create(*objects.local_cluster([f"n{i}" for i in range(10)], volumes=0, pods=1000, cpu="64", memory="256Gi"))
    number = 1000 if rounds(1000) == 1000 else 200
    with (
        Webhook(
            control_plane, tmp_path, replicas=3, flags=["--drain-seconds=3"], service=(service_namespace, SERVICE)
        ) as webhook,
        registered(api, create, webhook, request.node.name) as place,
        rolling(webhook) as restarts,
    ):
        failed: list[str] = []

        def one(members: HandSet, ordinal: int) -> None:
            try:
                members.create_claims([ordinal])
                api.create(objects.member_pod(members.set, ordinal))
            except ApiError as error:
                failed.append(str(error))

        began, created = time.monotonic(), 0
        # No more than the 30 calls that the controller manager may send in one burst are ever under way.
        with ThreadPoolExecutor(30) as executor:
            while created < number or restarts[0] < 3:
                wait_until(lambda: executor._work_queue.qsize() == 0, "earlier creates to begin", 60)
                if created % 3 == 0:
                    members = HandSet(place, cluster=f"db{created}")
                executor.submit(one, members, created % 3)
                created += 1
                time.sleep(max(0.0, began + created / 20 - time.monotonic()))
        seconds = time.monotonic() - began
        given = tally(api.list("Pod", place.namespace))

    tell(f"{created} creates in {seconds:.0f} s, {len(failed)} failed, {restarts[0]} restarts; {dict(given)}")
    assert not failed
    assert given.total() == created


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
