"""The health address: alive, ready, metrics."""

from __future__ import annotations

import pytest
from werkzeug.test import Client

from webhook.errors import Forbidden, UnknownOutcome
from webhook.health import Check, Once, create_health_app


def client_with(*checks: Check) -> Client:
    return Client(create_health_app(checks, lambda: b"figures 1\n", "text/plain; version=0.0.4"))


def fine() -> None:
    return None


def no_certificate() -> str:
    return "no certificate is loaded"


def must_not_be_asked() -> str:
    raise AssertionError("asked")


def test_a_process_that_answers_is_alive_whatever_is_missing():
    answer = client_with(must_not_be_asked).get("/livez")

    assert (answer.status_code, answer.text) == (200, "ok\n")


@pytest.mark.parametrize("checks", [pytest.param((), id="none"), pytest.param((fine, fine), id="all fine")])
def test_it_is_ready_when_nothing_is_missing(checks: tuple[Check, ...]):
    answer = client_with(*checks).get("/readyz")

    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_it_is_not_ready_for_every_reason_that_there_is():
    answer = client_with(no_certificate, fine, lambda: "draining").get("/readyz")

    assert answer.status_code == 503
    assert answer.text == "not ready: no certificate is loaded\nnot ready: draining\n"


def test_readiness_follows_the_checks():
    missing: list[str] = ["draining"]
    client = client_with(lambda: missing[0] if missing else None)

    before = client.get("/readyz").status_code
    missing.clear()

    assert (before, client.get("/readyz").status_code) == (503, 200)


@pytest.mark.parametrize("reason", ["two\nlines", "tab\tand\r\nmore", "lone \ud800 surrogate"])
def test_a_reason_is_one_line(reason: str):
    answer = client_with(lambda: reason).get("/readyz")

    assert len(answer.text.splitlines()) == 1


def test_metrics_are_answered_with_their_own_type():
    answer = client_with(no_certificate).get("/metrics")

    assert (answer.status_code, answer.text) == (200, "figures 1\n")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz/", "//readyz", "/mutate", "/metrics/x", ""])
def test_any_other_address_is_not_found(path: str):
    answer = client_with().get(path)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_get_is_allowed(method: str):
    answer = client_with().open("/readyz", method=method)

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_head_has_the_headers_of_get_and_no_body():
    answer = client_with(no_certificate).head("/readyz")

    assert (answer.status_code, answer.data) == (503, b"")
    assert answer.headers["Content-Length"] == str(len("not ready: no certificate is loaded\n"))


class Scripted:
    """An attempt that raises what it is given, one at a time, then succeeds; `tries` counts."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tries = 0

    def __call__(self) -> None:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)


def test_an_attempt_is_repeated_until_it_succeeds_once():
    attempt = Scripted(UnknownOutcome("list", "nodes"), Forbidden("list", "nodes", status=403))
    check = Once("the API server", attempt)

    answers = [check() for _ in range(5)]

    assert answers == [
        "the API server: list nodes: no answer",
        "the API server: list nodes: 403",
        None,
        None,
        None,
    ]
    assert attempt.tries == 3
