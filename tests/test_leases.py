"""Who leads: the Lease that is asked for, and what is said when nobody can know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_api_server import RESET, FakeApiServer, Reply, fake_api_server, json_reply, status_reply
from kubernetes.client import Configuration

from leases.election import Election

LEASE = "rel-controller"
PATH = "/apis/coordination.k8s.io/v1/namespaces/system/leases"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as server:
        yield server


@pytest.fixture
def election(server: FakeApiServer) -> Iterator[Election]:
    configuration = Configuration()
    configuration.host = server.url
    election = Election(configuration, "system", LEASE, "me", leaderless="nobody works")
    yield election
    election.close()


def a_lease(holder: str) -> dict[str, Any]:
    time = "2026-09-15T10:00:00.000001Z"
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time}
    return {"metadata": {"name": LEASE, "namespace": "system", "resourceVersion": "3"}, "spec": spec}


def test_a_lease_that_is_not_there_is_taken(
    server: FakeApiServer, election: Election, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer_with(status_reply(404), json_reply(a_lease("me"), 201))
    assert election.leads()
    assert [(asked.method, asked.path) for asked in server.asked] == [("GET", f"{PATH}/{LEASE}"), ("POST", PATH)]
    assert server.asked[1].json()["spec"]["holderIdentity"] == "me"
    assert caplog.messages == []


def test_an_empty_lease_of_the_charts_is_taken(server: FakeApiServer, election: Election) -> None:
    server.answer_with(json_reply(a_lease("me") | {"spec": {}}), json_reply(a_lease("me")))
    assert election.leads()
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("GET", f"{PATH}/{LEASE}"),
        ("PUT", f"{PATH}/{LEASE}"),
    ]


def test_a_lease_of_somebody_else_is_waited_for(server: FakeApiServer, election: Election) -> None:
    server.answer_with(json_reply(a_lease("another")))
    assert not election.leads()
    assert [asked.method for asked in server.asked] == ["GET"]


def test_our_own_lease_is_renewed_at_its_version(server: FakeApiServer, election: Election) -> None:
    server.answer_with(json_reply(a_lease("me")))
    assert election.leads()
    assert (server.asked[1].method, server.asked[1].json()["metadata"]["resourceVersion"]) == ("PUT", "3")


def test_of_two_that_take_a_free_lease_the_slower_one_does_not_lead(
    server: FakeApiServer, election: Election, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer_with(status_reply(404), status_reply(409))
    assert not election.leads()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(status_reply(403), "403", id="forbidden"),
        pytest.param(status_reply(500), "500", id="server error"),
        pytest.param(RESET, "ProtocolError", id="no answer"),
    ],
)
def test_without_an_answer_nobody_leads_and_it_is_said_once(
    server: FakeApiServer, election: Election, caplog: pytest.LogCaptureFixture, reply: Reply | str, words: str
) -> None:
    server.answer_with(reply)
    assert [election.leads() for _ in range(3)] == [False] * 3
    (message,) = caplog.messages
    assert message.startswith(f"Lease system/{LEASE}: {words}")
    assert message.endswith("; nobody works")
