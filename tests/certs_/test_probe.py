"""The probe, called as the API server calls it."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jsonpatch
import pytest

from certs import checks
from certs.authority import issue_authority, issue_leaf
from certs.probe import ProbeServer
from certs_.handshakes import client_context

NOW = datetime.now(UTC)
AUTHORITY, OTHER = issue_authority(NOW), issue_authority(NOW)
LEAF = issue_leaf(AUTHORITY, ["localhost"], NOW)
NEXT = issue_leaf(OTHER, ["localhost"], NOW)


@pytest.fixture
def server() -> Iterator[ProbeServer]:
    probe = ProbeServer(0)
    probe.start()
    yield probe
    probe.stop()


def review(**metadata: Any) -> dict[str, Any]:
    return {"request": {"uid": "u", "object": {"metadata": {"name": "p", **metadata}}}}


def post(server: ProbeServer, body: bytes, trusted: bytes, **headers: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPSConnection("localhost", server.port, context=client_context(trusted), timeout=10)
    try:
        connection.request("POST", "/probe", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Connection")
    finally:
        connection.close()


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"theirs": "1"}}])
def test_the_answer_names_the_certificate_of_the_connection(server: ProbeServer, metadata: dict[str, Any]) -> None:
    server.present(LEAF)
    asked = review(**metadata)
    status, body, connection = post(server, json.dumps(asked).encode(), AUTHORITY.certificate)
    response = json.loads(body)["response"]
    patched = jsonpatch.apply_patch(asked["request"]["object"], json.loads(base64.b64decode(response["patch"])))
    assert (status, connection, response["uid"], response["allowed"]) == (200, "close", "u", True)
    fingerprint = checks.fingerprint(LEAF.certificate)
    assert patched["metadata"]["annotations"] == {
        **(metadata.get("annotations") or {}),
        "tidb-ha-webhook.io/probe": fingerprint,
    }


def test_the_next_connection_meets_what_is_presented_next(server: ProbeServer) -> None:
    server.present(LEAF)
    post(server, b"{}", AUTHORITY.certificate)
    server.present(NEXT)
    server.present(NEXT)
    with pytest.raises(ssl.SSLCertVerificationError):
        post(server, b"{}", AUTHORITY.certificate)
    assert post(server, b"{}", OTHER.certificate)[0] == 400


def test_nothing_is_answered_before_there_is_a_certificate(server: ProbeServer) -> None:
    with pytest.raises(OSError, match=r"EOF|reset|closed"):
        post(server, b"{}", AUTHORITY.certificate)


@pytest.mark.parametrize(
    "body", [b"", b"no json", b"[]", b'{"request": {}}', b'{"request": {"uid": "u", "object": 7}}']
)
def test_what_is_no_review_is_refused(server: ProbeServer, body: bytes) -> None:
    server.present(LEAF)
    assert post(server, body, AUTHORITY.certificate)[0] == 400


def test_a_review_that_is_far_too_long_is_refused(server: ProbeServer) -> None:
    server.present(LEAF)
    assert post(server, b"", AUTHORITY.certificate, **{"Content-Length": "99999999"})[0] == 400


def test_a_silent_caller_holds_up_no_other(server: ProbeServer) -> None:
    server.present(LEAF)
    with socket.create_connection(("localhost", server.port)):
        assert post(server, json.dumps(review()).encode(), AUTHORITY.certificate)[0] == 200


def test_callers_of_the_older_ip_family_are_answered_too(server: ProbeServer) -> None:
    socket.create_connection(("127.0.0.1", server.port)).close()
