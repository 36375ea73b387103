"""The tools of the end-to-end tests work, and without the webhook there is something to prevent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Thread

import pytest
import urllib3

from e2e import objects
from e2e.api import Api, ApiError, running
from e2e.control_plane import ControlPlane
from e2e.fault_proxy import FaultProxy
from e2e.faults import Answer, Delay, DropAnswer, Reset, Rule, ShiftDate, Stall

pytestmark = pytest.mark.e2e

Create = Callable[..., list[objects.Object]]


def test_a_set_with_volumes_that_wait_for_their_first_consumer_becomes_running(
    api: Api, create: Create, namespace: str
) -> None:
    create(*objects.local_cluster(["n0", "n1", "n2"]))
    api.create(objects.stateful_set(namespace))

    pods = api.wait_for("Pod", running(3), namespace)

    assert {pod["spec"]["nodeName"] for pod in pods} <= {"n0", "n1", "n2"}
    claims = api.list("PersistentVolumeClaim", namespace)
    assert [claim["status"]["phase"] for claim in claims] == ["Bound"] * 3


@pytest.mark.parametrize("round_number", range(3))
def test_the_default_scheduler_alone_stacks_a_set_on_the_emptiest_of_six_nodes_in_one_zone(
    api: Api, create: Create, namespace: str, round_number: int
) -> None:
    _, *others = names = [f"n{i}" for i in range(6)]
    create(*objects.local_cluster(names, zones=["z0"]))
    # 85 % of 8 CPUs and of 16 GiB.
    create(*(objects.filler_pod(namespace, name, cpu="6800m", memory="13926Mi") for name in others))
    api.wait_for("Pod", running(5), namespace)

    api.create(objects.stateful_set(namespace))

    pods = api.wait_for("Pod", running(3), namespace, labels="app.kubernetes.io/component=tikv")
    assert max(Counter(pod["spec"]["nodeName"] for pod in pods).values()) >= 2


def test_the_api_server_keeps_its_objects_when_it_is_killed_and_started_again(
    control_plane: ControlPlane, api: Api, namespace: str
) -> None:
    api.create(_config_map(namespace))

    control_plane.kill_apiserver()
    with pytest.raises(urllib3.exceptions.HTTPError):
        api.get("ConfigMap", "c", namespace)
    control_plane.start_apiserver()

    assert api.get("ConfigMap", "c", namespace)["data"] == {"value": "old"}


def test_a_component_restarted_from_a_thread_outlives_that_thread(control_plane: ControlPlane) -> None:
    thread = Thread(target=control_plane.restart_apiserver)
    thread.start()
    thread.join()

    assert control_plane.apiservers[0].running
    control_plane.apiservers[0].wait_ready(lambda: True, 1)


def test_a_call_hangs_while_etcd_is_frozen(control_plane: ControlPlane, namespace: str) -> None:
    with Api(control_plane.url, control_plane.token, control_plane.files.ca, timeout=1) as impatient:
        with control_plane.etcd_frozen(), pytest.raises(urllib3.exceptions.ReadTimeoutError):
            impatient.create(_config_map(namespace))
        # Nothing says whether the write of the impatient client was applied; only that calls work again.
        impatient.wait_for("ConfigMap", bool, namespace)


def test_pods_wait_while_the_scheduler_is_stopped(
    control_plane: ControlPlane, api: Api, create: Create, namespace: str
) -> None:
    create(*objects.local_cluster(["n0", "n1", "n2"]))
    control_plane.stop_scheduler()
    try:
        api.create(objects.stateful_set(namespace))
        pods = api.wait_for("Pod", lambda pods: len(pods) == 3, namespace)
        assert not any("nodeName" in pod["spec"] for pod in pods)
    finally:
        control_plane.start_scheduler()

    api.wait_for("Pod", running(3), namespace)


def test_the_kubectl_of_the_control_plane_reaches_it(control_plane: ControlPlane, namespace: str) -> None:
    done = control_plane.kubectl("get", "namespace", namespace, "-o", "name")

    assert done.stdout.strip() == f"namespace/{namespace}", done.stderr


class TestFaultProxy:
    """Every rule, seen from a client and from the API server."""

    @pytest.fixture
    def client(self, control_plane: ControlPlane, fault_proxy: FaultProxy) -> Iterator[Api]:
        with Api(fault_proxy.url, control_plane.token, control_plane.files.ca, timeout=2) as client:
            yield client

    @pytest.fixture(autouse=True)
    def config_map(self, api: Api, namespace: str) -> None:
        api.create(_config_map(namespace))

    def test_without_rules_it_passes_calls_on_and_records_them(
        self, client: Api, fault_proxy: FaultProxy, namespace: str
    ) -> None:
        _write(client, namespace)

        assert client.get("ConfigMap", "c", namespace)["data"] == {"value": "new"}
        assert [(call.method, call.status) for call in fault_proxy.calls] == [("PATCH", 200), ("GET", 200)]

    def test_a_write_can_be_applied_and_its_answer_dropped(
        self, api: Api, client: Api, fault_proxy: FaultProxy, namespace: str
    ) -> None:
        fault_proxy.set_rules(Rule(DropAnswer(), method="PATCH", path="/configmaps/c"))

        with pytest.raises(urllib3.exceptions.ProtocolError):
            _write(client, namespace)

        assert _value(api, namespace) == "new"
        assert [call.status for call in fault_proxy.seen("PATCH")] == [200]

    def test_a_write_can_be_applied_and_its_client_left_waiting(
        self, api: Api, client: Api, fault_proxy: FaultProxy, namespace: str
    ) -> None:
        fault_proxy.set_rules(Rule(DropAnswer(stall=True), method="PATCH"))

        with pytest.raises(urllib3.exceptions.ReadTimeoutError):
            _write(client, namespace)

        assert _value(api, namespace) == "new"

    @pytest.mark.parametrize(
        ("fault", "error"),
        [(Stall(), urllib3.exceptions.ReadTimeoutError), (Reset(), urllib3.exceptions.ProtocolError)],
        ids=["stalled", "reset"],
    )
    def test_a_write_can_be_lost_on_its_way(
        self,
        api: Api,
        client: Api,
        fault_proxy: FaultProxy,
        namespace: str,
        fault: Stall | Reset,
        error: type[Exception],
    ) -> None:
        fault_proxy.set_rules(Rule(fault, method="PATCH"))

        with pytest.raises(error):
            _write(client, namespace)

        assert _value(api, namespace) == "old"

    def test_a_write_can_arrive_after_its_client_gave_up(
        self, api: Api, client: Api, fault_proxy: FaultProxy, namespace: str
    ) -> None:
        fault_proxy.set_rules(Rule(Delay(3), method="PATCH"))

        with pytest.raises(urllib3.exceptions.ReadTimeoutError):
            _write(client, namespace)
        assert _value(api, namespace) == "old"

        fault_proxy.wait_for_answered("PATCH")
        assert _value(api, namespace) == "new"

    @pytest.mark.parametrize("status", [429, 500, 503, 504])
    def test_only_the_second_call_is_answered_in_the_api_servers_stead(
        self, client: Api, fault_proxy: FaultProxy, namespace: str, status: int
    ) -> None:
        fault_proxy.set_rules(Rule(Answer(status, retry_after=1), method="GET", path="/configmaps/", calls=(2,)))

        assert [_status_of_a_get(client, namespace) for _ in range(3)] == [200, status, 200]

    def test_the_clock_of_the_api_server_can_be_shifted(
        self, control_plane: ControlPlane, fault_proxy: FaultProxy
    ) -> None:
        fault_proxy.set_rules(Rule(ShiftDate(-86400), calls=(2,)))

        with urllib3.PoolManager(ca_certs=str(control_plane.files.ca), retries=False) as http:
            days = [http.request("GET", f"{fault_proxy.url}/readyz").headers["Date"][:3] for _ in range(2)]

        week = ["Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"]
        assert week.index(f"{days[1]},") in ((week.index(f"{days[0]},") - 1) % 7, week.index(f"{days[0]},"))
        assert days[0] != days[1]

    def test_a_watch_passes_event_by_event(self, control_plane: ControlPlane, fault_proxy: FaultProxy) -> None:
        headers = {"Authorization": f"Bearer {control_plane.token}"}
        url = f"{fault_proxy.url}/api/v1/namespaces?watch=true&timeoutSeconds=30"
        with urllib3.PoolManager(ca_certs=str(control_plane.files.ca), retries=False) as http:
            answer = http.request("GET", url, headers=headers, preload_content=False)
            first = next(answer.stream(65536))
            answer.close()

        assert b'"ADDED"' in first

    def test_it_survives_a_restart_of_the_api_server(
        self, control_plane: ControlPlane, client: Api, namespace: str
    ) -> None:
        assert _status_of_a_get(client, namespace) == 200

        control_plane.restart_apiserver()

        assert _status_of_a_get(client, namespace) == 200


def _config_map(namespace: str) -> objects.Object:
    metadata = {"name": "c", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "old"}}


def _write(client: Api, namespace: str) -> None:
    client.patch("ConfigMap", "c", {"data": {"value": "new"}}, namespace)


def _value(api: Api, namespace: str) -> str:
    value: str = api.get("ConfigMap", "c", namespace)["data"]["value"]
    return value


def _status_of_a_get(client: Api, namespace: str) -> int:
    try:
        client.get("ConfigMap", "c", namespace)
    except ApiError as error:
        return error.status
    return 200
