"""What `serve` is made of, over a dump and over an API server that is not there."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dumps import a_cluster_with, a_set, body_of, pods_of_set, write
from e2e.waiting import wait_until
from fake_api_server import Stream, fake_api_server, json_reply, status_reply
from werkzeug.test import Client

from webhook.admission import Admission
from webhook.cluster.api import ApiDoor
from webhook.cluster.memory import MemoryCluster
from webhook.embedded.answers import admitted
from webhook.errors import DumpError, SettingsError
from webhook.leading import build_controller, lease_namespace_of
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wiring import Worker, build_parts, build_reviewer, configuration_of, door_of

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {token: abc}}]
"""
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "t1"}}
V1_LABELS = {
    "app.kubernetes.io/managed-by": "tidb-operator",
    "app.kubernetes.io/name": "tidb-cluster",
    "app.kubernetes.io/instance": "db",
    "app.kubernetes.io/component": "tikv",
}
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db-tikv", "uid": "u-9", "controller": True}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, SECRET]}))
    return path


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


def review_of(name: str, **metadata: Any) -> bytes:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {}}
    request = {"uid": "u-1", "operation": "CREATE", "namespace": "t1", "name": name, "object": pod}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def fine() -> None:
    return None


def worker_on(settings: Settings) -> Worker:
    return Worker(settings, door_of(settings), None)


def test_a_dump_becomes_the_embedded_cluster_and_says_what_it_leaves_out(dump: Path, caplog: pytest.LogCaptureFixture):
    assert isinstance(door_of(Settings(cluster=dump)), MemoryCluster)
    assert "Secret" in caplog.text


def test_a_dump_that_is_not_one_is_refused_before_anything_is_served(tmp_path: Path):
    with pytest.raises(DumpError):
        door_of(Settings(cluster=tmp_path))


def test_a_kubeconfig_becomes_a_door_to_its_api_server(kubeconfig: Path):
    assert isinstance(door_of(Settings(kubeconfig=kubeconfig)), ApiDoor)


def test_without_a_source_kubectls_own_kubeconfig_is_taken(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", f"/no/such:{kubeconfig}")

    assert isinstance(door_of(Settings()), ApiDoor)


def test_without_any_kubeconfig_the_ways_out_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(SettingsError, match=r"\.kube/config; give --kubeconfig FILE, --in-cluster or --cluster"):
        door_of(Settings())


def test_outside_a_pod_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(SettingsError, match="--in-cluster"):
        door_of(Settings(in_cluster=True))


def test_reviews_are_answered_counted_and_shown_in_the_metrics(dump: Path):
    worker = worker_on(Settings(cluster=dump))
    reviews = Client(worker.build_app())
    health = Client(worker.build_health(lambda: False, fine))

    untouched = reviews.post("/mutate", data=review_of("web-0"), content_type="application/json")
    member = reviews.post(
        "/mutate",
        data=review_of("db-tikv-0", labels=V1_LABELS, ownerReferences=[OWNER]),
        content_type="application/json",
    )

    assert json.loads(untouched.data)["response"] == {"uid": "u-1", "allowed": True}
    assert json.loads(member.data)["response"]["allowed"] is True
    figures = health.get("/metrics").text
    assert 'reviews_total{cause="NotAMember",component="other",outcome="untouched"} 1.0' in figures
    assert 'reviews_total{cause="NoLockClaim",component="tikv",outcome="guarded"} 1.0' in figures
    assert 'http_responses_total{code="200"} 2.0' in figures


def test_on_a_dump_what_is_admitted_is_visible_to_the_next_review(tmp_path: Path):
    path = write(tmp_path / "dump.json", *a_cluster_with(a_set()))
    reviews = Client(worker_on(Settings(cluster=path)).build_app())

    nodes = [
        admitted(pod, reviews.post("/mutate", data=body_of(pod), content_type="application/json").json).node
        for pod in pods_of_set(a_set())
    ]

    assert sorted(nodes) == ["n1", "n2", "n3"]


def test_before_an_api_server_nothing_is_made_visible_by_us(kubeconfig: Path):
    settings = Settings(kubeconfig=kubeconfig)

    assert isinstance(build_reviewer(settings, door_of(settings), Metrics()), Admission)


def test_it_is_ready_once_the_cluster_has_answered(dump: Path):
    worker = worker_on(Settings(cluster=dump))
    worker.build_app()

    assert Client(worker.build_health(lambda: False, fine)).get("/readyz").status_code == 200


def test_it_is_not_ready_for_each_thing_that_is_missing(kubeconfig: Path):
    worker = worker_on(Settings(kubeconfig=kubeconfig))
    worker.build_app()

    answer = Client(worker.build_health(lambda: True, lambda: "the certificate expired")).get("/readyz")
    assert worker.inventory is not None
    worker.inventory.stop()

    assert answer.status_code == 503
    draining, certificate, server = answer.text.splitlines()
    assert "draining" in draining
    assert "the certificate expired" in certificate
    assert "the API server has not answered yet" in server


def test_before_an_api_server_the_cluster_is_followed_and_its_age_is_a_metric(tmp_path: Path):
    with fake_api_server() as server:
        # Every list is empty, and every watch is at once over.
        server.answer_with(json_reply({"metadata": {"resourceVersion": "7"}, "items": []}), Stream(()))
        path = tmp_path / "config"
        path.write_text(KUBECONFIG.replace("http://127.0.0.1:9", server.url))
        worker = worker_on(Settings(kubeconfig=path))
        worker.build_app()
        health = Client(worker.build_health(lambda: False, fine))
        assert worker.inventory is not None
        wait_until(lambda: any("watch=true" in asked.path for asked in server.asked), "a watch", 20)
        figures = health.get("/metrics").text
        worker.inventory.stop(20)

    assert 'tidb_ha_webhook_inventory_age_seconds{resource="nodes"}' in figures
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]


def test_the_embedded_cluster_is_in_memory_and_is_not_followed(dump: Path):
    worker = worker_on(Settings(cluster=dump))
    worker.build_app()

    assert worker.inventory is None
    assert "inventory_age_seconds{" not in Client(worker.build_health(lambda: False, fine)).get("/metrics").text


def controllers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "controller"]


def test_the_controller_runs_where_it_is_asked_for(tmp_path: Path):
    path = write(tmp_path / "dump.json", *a_cluster_with(a_set()))
    worker_on(Settings(cluster=path)).build_app()
    assert controllers() == []

    worker = worker_on(Settings(cluster=path, controller=True))
    worker.build_app()
    assert worker.controller is not None
    health = Client(worker.build_health(lambda: False, fine))
    wait_until(lambda: "tidb_ha_webhook_controller_leading 1.0" in health.get("/metrics").text, "it to lead", 20)

    (thread,) = controllers()
    worker.controller.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_before_an_api_server_a_lease_says_who_leads(tmp_path: Path):
    with fake_api_server() as server:
        server.answer_with(status_reply(403))
        path = tmp_path / "config"
        path.write_text(KUBECONFIG.replace("http://127.0.0.1:9", server.url))
        settings = Settings(kubeconfig=path, controller=True, controller_namespace="system")
        door = door_of(settings)
        parts = build_parts(settings, door)
        build_controller(settings, door, Metrics(), parts.store, parts.tools, lambda: configuration_of(settings)).step()

        assert [asked.path for asked in server.asked] == [
            "/apis/coordination.k8s.io/v1/namespaces/system/leases/tidb-ha-webhook-controller"
        ]


def test_the_lease_is_in_the_pods_own_namespace(tmp_path: Path):
    (tmp_path / "namespace").write_text("tidb-admin\n")
    settings = Settings(in_cluster=True, controller=True)

    assert lease_namespace_of(settings, tmp_path) == "tidb-admin"
    assert lease_namespace_of(replace(settings, controller_namespace="other"), tmp_path) == "other"


def test_outside_a_pod_the_leases_namespace_must_be_given(kubeconfig: Path):
    with pytest.raises(SettingsError, match="give --controller-namespace"):
        worker_on(Settings(kubeconfig=kubeconfig, controller=True))
