"""`python -m certs try`, against a server that answers as it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_api_server import FakeApiServer, Reply, fake_api_server, json_reply, status_reply
from kubernetes.client import Configuration

from certs.__main__ import main
from certs.calls import Caller
from certs.cluster import ClusterError
from certs.trial import NAME, trial_pod, try_out

GONE = status_reply(404)
MADE = json_reply({"metadata": {"uid": "set-uid"}}, 201)
SETS = "/apis/apps/v1/namespaces/elsewhere/statefulsets"
CLAIMS = "/api/v1/namespaces/elsewhere/persistentvolumeclaims"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as fake:
        yield fake


def came_back(annotations: dict[str, str] | None, node: str = "") -> Reply:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"affinity": {"nodeAffinity": required}} if node else {}
    return json_reply({"metadata": {"annotations": annotations}, "spec": spec}, 201)


def decided(**record: Any) -> dict[str, str]:
    return {"tidb-ha-webhook.io/decision": json.dumps(record)}


def tried(server: FakeApiServer, *replies: Reply) -> tuple[str, bool]:
    server.answer_with(GONE, GONE, *replies, json_reply({}))
    return try_out(Caller(Configuration(host=server.url)), "elsewhere", lambda _seconds: None)


def test_a_pod_that_comes_back_pinned_is_well(server: FakeApiServer) -> None:
    told, well = tried(server, MADE, MADE, came_back(decided(outcome="pinned", node="n1"), "n1"))
    assert (told, well) == ("a member's pod came back pinned to node n1", True)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (came_back(decided(outcome="pinned", node="n1")), "came back pinned, without a pin"),
        (came_back(decided(outcome="pinned", node="n1"), "n2"), "came back pinned, without a pin"),
        (
            came_back(decided(outcome="guarded", cause="NoSafeNode", reasons=["3 node(s) were unschedulable"])),
            "came back guarded, without a pin: NoSafeNode; 3 node(s) were unschedulable",
        ),
        (came_back({"tidb-ha-webhook.io/decision": "[]"}), "a decision that cannot be read"),
        (came_back({"tidb-ha-webhook.io/guard": "kubernetes.io/hostname"}), "the floor has kept it apart"),
        (came_back(None), "nobody has looked at it"),
    ],
)
def test_anything_else_is_not(server: FakeApiServer, answer: Reply, text: str) -> None:
    told, well = tried(server, MADE, MADE, answer)
    assert not well
    assert text in told


def test_set_and_claim_are_made_for_it_and_removed_and_the_pod_is_a_dry_run(server: FakeApiServer) -> None:
    tried(server, MADE, MADE, came_back(None))
    calls = [(asked.method, asked.path) for asked in server.asked]
    removals = [("DELETE", f"{SETS}/{NAME}"), ("DELETE", f"{CLAIMS}/{NAME}")]
    pods = "/api/v1/namespaces/elsewhere/pods?dryRun=All"
    assert calls == [*removals, ("POST", SETS), ("POST", CLAIMS), ("POST", pods), *removals]
    made, claim, pod = (asked.json() for asked in server.asked[2:5])
    assert pod == trial_pod("set-uid")
    assert claim["metadata"]["ownerReferences"][0]["uid"] == "set-uid"
    assert claim["metadata"]["labels"] == pod["metadata"]["labels"]
    # No pod of it can be made, and none of it is a member.
    assert made["spec"]["template"]["spec"]["serviceAccountName"].endswith("-not-there")
    assert "app.kubernetes.io/managed-by" not in made["spec"]["template"]["metadata"]["labels"]


def test_what_an_earlier_trial_has_left_is_waited_for(server: FakeApiServer) -> None:
    busy = status_reply(409, "object is being deleted")
    assert tried(server, MADE, busy, busy, MADE, came_back(decided(outcome="pinned", node="n1"), "n1"))[1]


def test_what_stays_is_an_error_and_what_was_made_is_removed(server: FakeApiServer) -> None:
    with pytest.raises(ClusterError, match="create persistentvolumeclaim: 409 object is being deleted"):
        tried(server, MADE, *[status_reply(409, "object is being deleted")] * 20)
    assert [asked.method for asked in server.asked[-2:]] == ["DELETE", "DELETE"]


def test_a_set_that_may_not_be_made_is_an_error(server: FakeApiServer) -> None:
    with pytest.raises(ClusterError, match="create statefulset: 403 you may not"):
        tried(server, status_reply(403, "you may not"))


def test_a_refusal_is_one_line(server: FakeApiServer, tmp_path: Path) -> None:
    server.answer_with(status_reply(403, "you may not"))
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    done = CliRunner().invoke(main, ["try", "--kubeconfig", str(tmp_path / "config")])
    assert (done.exit_code, done.output) == (1, "Error: delete statefulsets: 403 you may not\n")
    server.answer_with(GONE, GONE, MADE, MADE, came_back(None), json_reply({}))
    done = CliRunner().invoke(main, ["try", "--kubeconfig", str(tmp_path / "config")])
    assert (done.exit_code, "nobody has looked" in done.output) == (1, True)
