"""Invariant 10 over HTTP: one group's stall takes nothing from pods of no group and from other groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cluster_objects import a_pod
from e2e.waiting import wait_until
from running_server import GUARD, Server
from stalling_server import MEMBERS, stalled, stalling, waiting
from stand import Answered, a_review, answered

from webhook.cluster.door import Manifest

# The longest time-out that the API server accepts: nothing is meant to end by it.
PATH = "/mutate?timeout=30s"
UNTOUCHED = a_pod("web-0", labels={"app": "web"})


def send(server: Server, pod: Manifest, **request: Any) -> Answered:
    """Ask for a pod's admission on a connection of its own."""
    with closing(server.http()) as client:
        client.request("POST", PATH, a_review(pod, **request), {"Content-Type": "application/json"})
        answer = client.getresponse()
        body = answer.read()
    assert answer.status == 200, body
    return answered(pod, json.loads(body))


def others(server: Server) -> list[tuple[str, str, str]]:
    """The answers to pods of another group and of none: outcome, cause, node."""
    pods = [*(a_pod(f"db-pd-{ordinal}") for ordinal in range(3)), UNTOUCHED]
    found = [send(server, pod) for pod in pods]
    return [(answer.outcome, answer.cause, answer.node) for answer in found]


@pytest.fixture(scope="module")
def in_an_idle_run(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    with stalling(tmp_path_factory.mktemp("idle") / "server.log", threads=16) as server:
        return others(server)


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MEMBERS) as pool:
        yield pool


def test_an_idle_run_pins_the_other_group_and_leaves_the_pod_of_none(
    in_an_idle_run: list[tuple[str, str, str]],
) -> None:
    *pinned, untouched = in_an_idle_run
    assert [outcome for outcome, _, _ in pinned] == ["pinned"] * 3
    assert len({node for _, _, node in pinned}) == 3
    assert untouched == ("", "", "")


@pytest.mark.parametrize("threads", [16, 64])
@pytest.mark.parametrize(("dry_run", "stuck"), [(False, waiting), (True, stalled)], ids=["for good", "dry runs"])
def test_one_group_stalled_by_40_requests_takes_nothing_from_the_others(
    threads: int,
    dry_run: bool,
    stuck: Callable[[Server], int],
    in_an_idle_run: list[tuple[str, str, str]],
    callers: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    with stalling(tmp_path / "server.log", threads=threads) as server:
        pods = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(MEMBERS)]
        calls = [callers.submit(send, server, pod, dryRun=dry_run) for pod in pods]
        most = threads // 2
        wait_until(lambda: stuck(server) == min(most, MEMBERS), "the group's line to be full", GUARD)
        refused = wait_until(lambda: at_once(calls, MEMBERS - most), "those beyond its bound to be answered", GUARD)
        assert {(answer.outcome, answer.cause, answer.guarded) for answer in refused} == {("guarded", "Busy", True)}

        assert others(server) == in_an_idle_run
        assert sum(call.done() for call in calls) == MEMBERS - most
        assert server.get_health("/livez")[0] == 200

        server.get_health("/release")
        assert all(answer.node or answer.guarded for answer in (call.result(GUARD) for call in calls))


def at_once(calls: list[Future[Answered]], count: int) -> list[Answered] | None:
    """The answers that have come, as soon as there are so many."""
    done = [call.result() for call in calls if call.done()]
    return done if len(done) >= count else None
