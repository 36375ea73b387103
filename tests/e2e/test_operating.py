"""The commands that ask, on a real control plane: their answers, their exit codes, and what they may not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api
from e2e.conftest import fresh_namespace
from e2e.control_plane import ControlPlane, components
from e2e.fault_proxy import FaultProxy
from e2e.objects import Object
from e2e.place import Create, HandSet, Place, is_ready, node_of
from e2e.processes import free_port
from e2e.replicas import SWITCH, Webhook, wait_until_called
from e2e.rounds import few
from e2e.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]
WITHOUT_VOLUMES = {"containers": [objects.container("pd", cpu="10m", memory="16Mi")]}


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


Ask = Callable[..., Answer]
Tell = Callable[[str], None]


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
def running(place: Place, ask: Ask) -> Place:
    """Three nodes, and a PD set whose three members the webhook has placed: the only group of the cluster."""
    # What other tests have left goes with its namespace, some time after them.
    wait_until(lambda: not groups_of(json.loads(ask("audit", "-o", "json").out)), "other groups to be gone", 120)
    place.create(*objects.local_cluster(THREE, zones=["a", "b", "c"]))
    place.start(component="pd")
    place.wait_running(3, component="pd")
    return place


def groups_of(audited: Object) -> list[Object]:
    """The groups that an audit has judged, and those that it could not judge."""
    return [*audited["groups"], *audited["notJudged"]]


def put(group: HandSet, *nodes: str) -> None:
    """Create the members of a set without volumes on these nodes, past webhook and scheduler."""
    for ordinal, node in enumerate(nodes):
        group.api.create(objects.member_pod(group.set, ordinal, nodeName=node, volumes=[]))


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


def test_a_breach_made_by_hand_is_seen_by_audit_in_all_its_forms(open_place: Place, ask: Ask):
    open_place.create(*map(objects.node, THREE))
    stacked = HandSet(open_place, component="pd", pod_spec=WITHOUT_VOLUMES)
    put(stacked, "n0", "n0", "n1")
    open_place.wait_for(lambda pods: len(pods) == 3 and all(map(is_ready, pods)), component="pd")

    table = ask("audit", "-n", open_place.namespace)
    told = json.loads(ask("audit", "-n", open_place.namespace, "-o", "json").out)
    page = ask("audit", "-n", open_place.namespace, "-o", "html")

    assert (table.code, page.code) == (1, 1)
    assert "breach: Stacked: node n0 holds 2 members (db-pd-0, db-pd-1), at most 1 may be there" in table.out
    assert told["allWell"] is False
    assert {"Stacked", "NoMargin", "NeverPassed"} <= {found["kind"] for found in told["groups"][0]["findings"]}
    assert 'class="place stacked"' in page.out


def test_where_all_is_well_audit_and_can_drain_say_so(running: Place, ask: Ask):
    audited = ask("audit", "-n", running.namespace)
    assert (audited.code, audited.out.splitlines()[-1]) == (0, "1 group: all as they should be")
    assert "survives the loss of 1 node, of 1 zone" in audited.out

    one = ask("can-drain", "n0")
    assert (one.code, one.out.startswith("yes: without n0")) == (0, True)
    two = ask("can-drain", "n0", "--zone", "b")
    assert two.code == 1
    assert f"NO  {running.namespace}/db/pd  loses 2 members" in two.out
    assert "alone, each of them could go" in two.out
    assert ask("can-drain", "n9").code == 2


def test_draining_what_may_be_drained_leaves_what_was_promised(running: Place, ask: Ask):
    names = {node_of(pod): pod["metadata"]["name"] for pod in running.pods(component="pd")}
    told = json.loads(ask("can-drain", "n1", "-o", "json").out)
    assert told["safe"]
    assert told["groups"][0]["members"] == [names["n1"]]

    running.api.patch("Node", "n1", {"spec": {"unschedulable": True}})
    running.api.delete("Pod", names["n1"], running.namespace)

    running.wait_for(
        lambda pods: {p["metadata"]["name"] for p in pods if is_ready(p)} == set(names.values()) - {names["n1"]},
        component="pd",
    )
    after = ask("can-drain", "n0")
    assert after.code == 1
    assert "its quorum may be lost" in after.out


def test_simulate_changes_nothing_and_says_what_would_happen(running: Place, ask: Ask):
    def versions() -> list[tuple[str, str]]:
        pods = running.pods(component="pd")
        return [(pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for pod in pods]

    before = versions()

    answer = ask("simulate", f"scale:{running.namespace}/db-pd=5", "lose-node:n0")

    assert answer.code == 1
    assert "db-pd-4 to n" in answer.out
    assert f"NO: {running.namespace}/db/pd loses" in answer.out or "waits (" in answer.out
    assert versions() == before
    assert ask("simulate", "add-nodes:1").code == 0


@pytest.fixture
def named_place(api: Api, create: Create, webhook: Webhook) -> Iterator[Place]:
    """A namespace whose members go to the webhook by a configuration as the chart names it."""
    with fresh_namespace(api, "doctor") as name:
        configuration = webhook.configuration(name, failure_policy="Fail")
        configuration["webhooks"][0]["name"] = "pods.tidb-ha-webhook.io"
        api.create(configuration)
        try:
            api.patch("Namespace", name, {"metadata": {"labels": {SWITCH: name}}})
            wait_until_called(api, name)
            yield Place(api, name, create)
        finally:
            api.delete("MutatingWebhookConfiguration", name)


def test_doctor_finds_what_is_wrong_and_what_is_not(named_place: Place, open_place: Place, ask: Ask):
    named_place.create(*objects.local_cluster(THREE))
    named_place.start(component="pd")
    named_place.wait_running(3, component="pd")

    # The API server answers 429 for a kind that is new to it: the command waits.
    told: Object = json.loads(ask("doctor", "-o", "json").out)

    assert not [line for line in told["lines"] if "asks to wait" in line["found"]]
    levels = {line["about"]: line["level"] for line in told["lines"]}
    assert levels["API server"] == levels["clock"] == levels["your permissions"] == levels["CA bundle"] == "ok"
    assert levels["selectors"] == levels["records"] == "ok"
    # It looks at the whole cluster: other tests may have left groups that are not well.
    assert not [line for line in told["lines"] if line["level"] == "fail" and named_place.namespace in line["found"]]

    # A group in a namespace that nobody selects.
    left_out = HandSet(open_place, cluster="forgotten", component="pd", pod_spec=WITHOUT_VOLUMES)
    put(left_out, "n0")
    answer = ask("doctor")
    assert answer.code == 1
    assert f"leave out {open_place.namespace}/forgotten/pd" in answer.out
    assert "-> " in answer.out


def limited(plane: ControlPlane, namespace: str, folder: Path) -> Path:
    """The kubeconfig of somebody who may do nothing."""
    assert plane.kubectl("create", "serviceaccount", "nobody", "-n", namespace).returncode == 0
    token = plane.kubectl("create", "token", "nobody", "-n", namespace).stdout.strip()
    return plane.write_kubeconfig(folder / "nobody", plane.url, token)


def test_who_may_not_read_is_told_which_verb_on_which_resource_is_missing(
    control_plane: ControlPlane, running: Place, ask: Ask, tmp_path: Path
):
    nobody = limited(control_plane, running.namespace, tmp_path)

    for arguments, missing in (
        (("why", "db-pd-0", "-n", running.namespace), "the verb get on pods"),
        (("audit",), "the verb list on nodes"),
        (("can-drain", "n0"), "the verb list on nodes"),
        (("simulate", "lose-node:n0"), "the verb list on pods"),
    ):
        answer = ask(*arguments, kubeconfig=nobody)
        assert (answer.code, answer.out) == (3, "")
        assert missing in answer.err
        assert len(answer.err.strip().splitlines()) == 1

    told = ask("doctor", kubeconfig=nobody)
    assert told.code in (1, 3)
    assert "warn  your permissions: you may not list pods" in told.out
    assert "not checked: not allowed to list mutatingwebhookconfigurations" in told.out


def test_a_server_that_is_not_there_and_a_cluster_without_groups_are_sentences(
    control_plane: ControlPlane, namespace: str, ask: Ask, tmp_path: Path
):
    gone = control_plane.write_kubeconfig(tmp_path / "gone", f"https://127.0.0.1:{free_port()}")
    stranger = control_plane.write_kubeconfig(tmp_path / "stranger", control_plane.url, "no-such-token")
    commands = (("why", "x"), ("audit",), ("can-drain", "n0"), ("simulate", "lose-node:n0"), ("doctor",))

    for command in commands:
        unreachable = ask(*command, kubeconfig=gone)
        assert (unreachable.code, unreachable.out) == (3, "")
        assert "no answer from the API server of kubectl's default kubeconfig" in unreachable.err
        unknown = ask(*command, kubeconfig=stranger)
        assert unknown.code == 3
        assert "does not know who we are (401)" in unknown.err
    empty = ask("audit", "-n", namespace)
    assert (empty.code, empty.out.startswith("no group was found")) == (0, True)
    assert ask("audit", "-n", "no-such-namespace").code == 2
    assert ask("why", "x", "-n", namespace).code == 2


def of_those_there(told: str) -> list[str]:
    """The lines, without how many groups have nobody there."""
    return [line for line in told.splitlines() if "have nothing there" not in line]


def test_a_dump_of_the_cluster_gives_the_same_answers(
    control_plane: ControlPlane, running: Place, ask: Ask, tmp_path: Path
):
    dump = tmp_path / "dump.json"
    kinds = "nodes,pods,pvc,pv,sc,sts"
    dump.write_text(control_plane.kubectl("get", kinds, "-A", "-o", "json").stdout)

    for command in (("audit", "-n", running.namespace), ("can-drain", "n0"), ("can-drain", "n0", "n1")):
        live, dumped = ask(*command), ask(*command, "--cluster", str(dump))
        # The dump has no kinds of tidb-operator, of which other tests may have left objects.
        assert (dumped.code, of_those_there(dumped.out)) == (live.code, of_those_there(live.out))
    live = ask("why", "db-pd-1", "-n", running.namespace)
    dumped = ask("why", "db-pd-1", "-n", running.namespace, "--cluster", str(dump))
    assert dumped.out.splitlines()[:5] == live.out.splitlines()[:5]


def test_many_groups_are_audited_by_a_handful_of_calls(
    control_plane: ControlPlane, fault_proxy: FaultProxy, open_place: Place, ask: Ask, tell: Tell, tmp_path: Path
):
    number = few(1000, most=100)
    open_place.create(*map(objects.node, THREE))

    def start(index: int) -> None:
        put(HandSet(open_place, cluster=f"c{index}", component="pd", pod_spec=WITHOUT_VOLUMES), *THREE)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(start, range(number)))
    open_place.api.wait_for(
        "Pod", lambda pods: len(pods) == 3 * number and all(map(is_ready, pods)), open_place.namespace
    )
    through = control_plane.write_kubeconfig(tmp_path / "through", fault_proxy.url)

    began = time.monotonic()
    answer = ask("audit", "-n", open_place.namespace, kubeconfig=through)
    seconds = time.monotonic() - began

    assert answer.out.splitlines()[-1].startswith(f"{number} groups")
    calls = fault_proxy.calls
    tell(f"{number} groups: {len(calls)} calls in {seconds:.1f} s")
    assert len(calls) <= 20
    # By lists alone, whatever the number of groups.
    assert {call.method for call in calls} == {"GET"}
