"""A guard that no fault accounts for is found."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from e2e.evidence import Evidence, Guarding, is_about, was_beaten, was_cut_off, was_hit
from e2e.faults import Call, DelayAnswer, DropAnswer, Fault, ShiftDate
from webhook.logs import DecisionLine, TextFormatter, log_decision

CLAIM = "/api/v1/namespaces/x/persistentvolumeclaims/tikv-db1-tikv-0?fieldManager=w"
GUARDING = Guarding(0, "db1", "db1-tikv-0", "BudgetUsedUp")


def line(outcome: str, cause: str) -> str:
    """A decision as the webhook logs it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    logger = logging.Logger("test")  # of nobody else
    logger.addHandler(handler)
    log_decision(logger, DecisionLine("1", "x", "db1-tikv-0", "x/db1/tikv", "", outcome, cause), "db1-tikv-0 waits")
    return stream.getvalue()


@pytest.fixture
def webhook(tmp_path: Path) -> Any:
    """What the evidence reads of a webhook: one replica's log and the calls that its proxy saw."""
    log = tmp_path / "log"
    log.write_text(line("guarded", "NoSafeNode"))
    proxy = SimpleNamespace(calls=[], forget=lambda: None)
    replica = SimpleNamespace(child=SimpleNamespace(log=log), proxy=proxy)
    return SimpleNamespace(replicas=[replica], proxies=[proxy])


def test_guards_since_the_beginning_are_read_from_the_log_as_the_webhook_writes_it(webhook: Any) -> None:
    evidence = Evidence(webhook)
    with webhook.replicas[0].child.log.open("a") as log:
        log.write(line("pinned", "") + line("guarded", "BudgetUsedUp"))

    assert evidence.guardings({"db1"}) == [GUARDING]
    assert evidence.guardings({"db10"}) == []


@pytest.mark.parametrize(
    ("call", "needless"),
    [
        (Call("PATCH", CLAIM, b"", (DropAnswer(),), 200), False),
        (Call("PATCH", CLAIM, b"", (), 503), False),
        (Call("PATCH", CLAIM, b"", (), 200), True),
        (Call("PATCH", CLAIM.replace("db1", "db10"), b"", (), 503), True),
    ],
    ids=["a lost answer", "an error", "no fault", "a fault of another set"],
)
def test_a_guard_is_needless_if_no_call_for_its_set_was_hit(webhook: Any, call: Call, needless: bool) -> None:
    webhook.proxies[0].calls.append(call)

    assert bool(Evidence(webhook).needless([GUARDING], was_hit)) is needless


@pytest.mark.parametrize(("cause", "needless"), [("NoSafeNode", False), ("BudgetUsedUp", True)])
def test_only_for_want_of_a_node_a_fault_at_another_replica_accounts_for_a_guard(
    webhook: Any, cause: str, needless: bool
) -> None:
    struck = SimpleNamespace(calls=[Call("PATCH", CLAIM, b"", (), 503)], forget=lambda: None)
    webhook.replicas.append(SimpleNamespace(child=webhook.replicas[0].child, proxy=struck))

    guarding = Guarding(0, "db1", "db1-tikv-0", cause)
    assert bool(Evidence(webhook).needless([guarding], was_hit)) is needless


@pytest.mark.parametrize(
    ("status", "seconds", "faults", "hit"),
    [
        (None, 0.0, (), True),
        (429, 0.0, (), True),
        (500, 0.0, (), True),
        (200, 2.0, (), True),
        (409, 0.0, (), False),
        (200, 0.0, (DelayAnswer(0.2), ShiftDate(25)), False),
        (200, 0.0, (DropAnswer(),), True),
    ],
)
def test_what_counts_as_hit(status: int | None, seconds: float, faults: tuple[Fault, ...], hit: bool) -> None:
    call = Call("PATCH", CLAIM, b"", faults, status, seconds)
    assert was_hit(call) is hit
    assert was_beaten(call) is (hit or status == 409)


@pytest.mark.parametrize(
    ("target", "about"),
    [
        (CLAIM, True),
        ("/api/v1/pods?labelSelector=app.kubernetes.io%2Finstance%3Ddb1%2Ca%3Db", True),
        ("/api/v1/nodes/n0", True),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn0", True),
        ("/api/v1/nodes?watch=true", False),
        ("/apis/apps/v1/namespaces/x/statefulsets/db10-tikv", False),
    ],
)
def test_what_a_call_is_about(target: str, about: bool) -> None:
    assert is_about(Call("GET", target, b""), "db1") is about


def test_calls_that_were_forbidden_are_named(webhook: Any) -> None:
    webhook.proxies[0].calls += [Call("GET", "/api/v1/nodes/n0", b"", (), 403), Call("GET", CLAIM, b"", (), 200)]

    assert Evidence(webhook).refused(was_hit) == ["GET /api/v1/nodes/n0"]
    assert Evidence(webhook).refused(was_cut_off) == []
