"""What the calls look like on the wire, and what their answers become."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from fake_api_server import RESET, FakeApiServer, Reply, fake_api_server, json_reply, status_reply
from kubernetes.client import Configuration

from certs.api import ApiCluster
from certs.cluster import ClusterError, Published, Sighting, Target
from certs.removal import Leftovers, remove_all

TARGET = Target("rel", "rel-hook", "hook-certificates", "hook-certs", "hook")
SECRET = "/api/v1/namespaces/rel/secrets"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/rel-hook"
PUBLISHED = Published("7", (("pods", b"old"), ("probe", b"")))
MANAGED = "fieldManager=tidb-ha-webhook-certs"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as fake:
        yield fake


def configured(server: FakeApiServer) -> Configuration:
    configuration = Configuration(host=server.url)
    configuration.api_key["BearerToken"] = "Bearer secret-token"
    return configuration


@pytest.fixture
def cluster(server: FakeApiServer) -> ApiCluster:
    return ApiCluster(configured(server), TARGET)


def manifest(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "5", **fields.pop("metadata", {})}, **fields}


def test_the_secret_is_read_with_our_credentials(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(json_reply(manifest(data={"ca.crt": "eA=="})))
    found = cluster.secret()
    assert found is not None
    assert (found.version, found.data, found.rotate) == ("5", {"ca.crt": "eA=="}, False)
    assert server.asked[0].path == f"{SECRET}/hook-certificates"
    assert server.asked[0].headers["authorization"] == "Bearer secret-token"


def test_a_secret_tells_that_a_rotation_was_asked_for(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(json_reply(manifest(metadata={"annotations": {"tidb-ha-webhook.io/rotate": ""}})))
    found = cluster.secret()
    assert found is not None
    assert found.rotate


def test_what_is_not_there_is_none(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(status_reply(404))
    assert cluster.secret() is None
    assert cluster.configuration() is None


def test_a_configuration_that_is_being_deleted_is_not_there(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(json_reply(manifest(metadata={"deletionTimestamp": "2026-09-15T00:00:00Z"})))
    assert cluster.configuration() is None


def test_a_new_secret_holds_only_what_is_there(server: FakeApiServer, cluster: ApiCluster) -> None:
    cluster.create_secret({"ca.crt": "eA==", "next-ca.crt": None})
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", f"{SECRET}?{MANAGED}")
    assert asked.json()["data"] == {"ca.crt": "eA=="}
    assert asked.json()["metadata"]["name"] == "hook-certificates"


@pytest.mark.parametrize("rotated", [False, True])
def test_the_secret_is_changed_only_at_the_version_that_was_read(
    server: FakeApiServer, cluster: ApiCluster, rotated: bool
) -> None:
    cluster.change_secret("5", {"ca.crt": "eA==", "next-ca.crt": None}, rotated=rotated)
    asked = server.asked[0]
    annotations = {"annotations": {"tidb-ha-webhook.io/rotate": None}} if rotated else {}
    assert asked.method == "PATCH"
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.json() == {
        "metadata": {"resourceVersion": "5", **annotations},
        "data": {"ca.crt": "eA==", "next-ca.crt": None},
    }


@pytest.mark.parametrize("version", ["", "0"])
def test_a_version_that_would_mean_no_check_is_never_sent(
    server: FakeApiServer, cluster: ApiCluster, version: str
) -> None:
    with pytest.raises(ClusterError, match="without a resourceVersion"):
        cluster.change_secret(version, {}, rotated=False)
    assert server.asked == []


def test_the_entries_of_the_configuration_are_read(server: FakeApiServer, cluster: ApiCluster) -> None:
    entries = [
        {"name": "pods", "clientConfig": {"caBundle": base64.b64encode(b"old").decode()}},
        {"name": "probe", "clientConfig": {"service": {}}},
    ]
    server.answer_with(json_reply(manifest(metadata={"resourceVersion": "7"}, webhooks=entries)))
    assert cluster.configuration() == PUBLISHED
    assert server.asked[0].path == CONFIGURATION


def test_nothing_but_the_bundles_is_published_and_under_our_own_name(
    server: FakeApiServer, cluster: ApiCluster
) -> None:
    cluster.publish(PUBLISHED, b"new")
    asked, text = server.asked[0], base64.b64encode(b"new").decode()
    assert asked.path == f"{CONFIGURATION}?{MANAGED}"
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.json() == {
        "metadata": {"resourceVersion": "7"},
        "webhooks": [{"name": name, "clientConfig": {"caBundle": text}} for name in ("pods", "probe")],
    }


def test_an_observed_call_is_a_dry_run(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(json_reply(manifest()))
    cluster.probe("f")
    assert server.asked[0].path == f"/api/v1/namespaces/rel/configmaps?dryRun=All&{MANAGED}"
    assert server.asked[0].json()["metadata"]["labels"] == {"tidb-ha-webhook.io/probe": "hook"}


@pytest.mark.parametrize(
    ("reply", "sighting"),
    [
        (json_reply(manifest(metadata={"annotations": {"tidb-ha-webhook.io/probe": "f"}})), Sighting.MET),
        (json_reply(manifest(metadata={"annotations": {"tidb-ha-webhook.io/probe": "g"}})), Sighting.OTHER),
        (json_reply(manifest()), Sighting.UNANSWERED),
        (status_reply(500, "tls: failed to verify certificate: x509: unknown authority"), Sighting.DISTRUSTED),
        (status_reply(500, "context deadline exceeded"), Sighting.UNANSWERED),
        (RESET, Sighting.UNANSWERED),
    ],
    ids=["met", "another certificate", "not called", "refused", "time-out", "no answer"],
)
def test_an_observed_call_tells_what_it_met(
    server: FakeApiServer, cluster: ApiCluster, reply: Reply | str, sighting: Sighting
) -> None:
    server.answer_with(reply)
    assert cluster.probe("f") is sighting


def test_a_probe_that_we_are_not_allowed_is_an_error_and_no_sighting(
    server: FakeApiServer, cluster: ApiCluster
) -> None:
    server.answer_with(status_reply(403, "cannot create configmaps"))
    with pytest.raises(ClusterError, match="create configmap: 403 cannot create configmaps"):
        cluster.probe("f")


@pytest.mark.parametrize(
    ("reply", "status", "text"),
    [
        (status_reply(409, "modified"), 409, "get secret: 409 modified"),
        (Reply(502, b"<html>"), 502, "get secret: 502"),
        (Reply(200, b"[]"), 200, "the answer is no object"),
        (Reply(200, b"no json"), 200, "the answer is no object"),
        (RESET, None, "no answer ProtocolError"),
    ],
)
def test_failures_are_errors_of_ours(
    server: FakeApiServer, cluster: ApiCluster, reply: Reply | str, status: int | None, text: str
) -> None:
    server.answer_with(reply)
    with pytest.raises(ClusterError, match=text) as caught:
        cluster.secret()
    assert caught.value.status == status
    assert caught.value.lost == (status == 409)


def test_a_rotation_is_asked_for_by_an_annotation(server: FakeApiServer, cluster: ApiCluster) -> None:
    cluster.request_rotation("because")
    assert server.asked[0].json() == {"metadata": {"annotations": {"tidb-ha-webhook.io/rotate": "because"}}}


def test_everything_is_removed_in_the_order_that_blocks_nobody(server: FakeApiServer, cluster: ApiCluster) -> None:
    pauses: list[float] = []
    removed = remove_all(cluster, Leftovers(["rel-hook"]), 10, pauses.append)
    kinds = [asked.path.split("/")[-2] for asked in server.asked]
    assert kinds[:6] == [
        "mutatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
        "mutatingwebhookconfigurations",
        "secrets",
    ]
    assert kinds[6:] == ["leases", "secrets", "leases"]
    assert {asked.method for asked in server.asked} == {"DELETE"}
    assert pauses == [5, 5]
    assert "webhook configuration" in removed


def test_removing_what_is_gone_removes_nothing(server: FakeApiServer, cluster: ApiCluster) -> None:
    server.answer_with(status_reply(404))
    assert remove_all(cluster, Leftovers(["rel-hook"], ["hook-server"], ["hook-tls"]), 0, lambda _: None) == []


@pytest.mark.parametrize("remove", ["remove", "remove_configuration"])
def test_what_may_not_be_removed_is_an_error(server: FakeApiServer, cluster: ApiCluster, remove: str) -> None:
    server.answer_with(status_reply(403, "no"))
    with pytest.raises(ClusterError, match="403 no"):
        getattr(cluster, remove)()
