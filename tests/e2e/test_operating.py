"""`why` on a real control plane: pods that are placed, guarded, refused, and no members."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import objects
from e2e.control_plane import ControlPlane, components
from e2e.objects import Object
from e2e.place import Place, node_of
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


Ask = Callable[..., Answer]


@pytest.fixture
def ask(control_plane: ControlPlane) -> Ask:
    """A function that runs a command as `kubectl tidb-ha`, as the administrator or by another kubeconfig."""

    def ask(*arguments: str, kubeconfig: Path | None = None) -> Answer:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig or control_plane.kubeconfig),
            "COLUMNS": "200",
        }
        command = [components.binary("kubectl"), "tidb-ha", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    return ask


@pytest.fixture
def running(place: Place) -> Place:
    """Three nodes, and a PD set whose three members the webhook has placed."""
    place.create(*objects.local_cluster(THREE, zones=["a", "b", "c"]))
    place.start(component="pd")
    place.wait_running(3, component="pd")
    return place


def denying(namespace: str, replicas: int) -> Object:
    """A PD set whose members are refused where there is no safe node."""
    made = objects.stateful_set(namespace, cluster="strict", component="pd", replicas=replicas)
    made["spec"]["template"]["metadata"]["annotations"] = {"tidb-ha-webhook.io/when-unplaceable": "Deny"}
    return made


def test_why_explains_pods_that_are_placed_guarded_refused_and_no_members(running: Place, ask: Ask):
    running.api.patch("StatefulSet", "db-pd", {"spec": {"replicas": 4}}, running.namespace)
    running.api.create(denying(running.namespace, 4))
    running.api.create(objects.filler_pod(running.namespace, "n0", cpu="10m", memory="16Mi", name="web"))
    running.wait_for(lambda pods: len(pods) == 4, component="pd")
    running.wait_running(3, "strict", "pd")
    refusal = "involvedObject.name=strict-pd"
    wait_until(
        lambda: any(
            "strict-pd-3" in e["message"] for e in running.api.list("Event", running.namespace, fields=refusal)
        ),
        "the refusal to be an event",
        60,
    )

    def why(name: str) -> list[str]:
        answer = ask("why", name, "-n", running.namespace)
        assert answer.code == 0
        lines = answer.out.splitlines()
        assert len(lines) <= 100
        return lines

    (node,) = {node_of(pod) for pod in running.pods(component="pd") if pod["metadata"]["name"] == "db-pd-0"}
    placed = why("db-pd-0")
    assert f"was pinned to {node}, and is there" in placed[0]
    assert "the same if it were created now" in "\n".join(placed[:5])
    guarded = why("db-pd-3")
    assert "waits apart from its siblings" in guarded[0]
    assert "Add a node" in "\n".join(guarded[:5])
    assert "the scheduler says: " in "\n".join(guarded[:5])
    assert "NoSafeNode on StatefulSet db-pd" in "\n".join(guarded)
    assert "is left alone: not a member, because" in why("web")[0]
    refused = why("strict-pd-3")
    assert "does not exist; StatefulSet strict-pd wants it" in refused[0]
    assert "if it were created now: denied" in "\n".join(refused[:5])
    assert "FailedCreate on StatefulSet strict-pd" in "\n".join(refused)

    wrong = ask("why", "db-pd-O", "-n", running.namespace)
    assert (wrong.code, "did you mean db-pd-" in wrong.err) == (2, True)
