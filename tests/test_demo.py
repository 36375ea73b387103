"""`demo`: the facts, the two tables, the exit code by counting, and that nothing is left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner, Result
from polling import eventually
from rich.console import Console

from webhook.cli import main
from webhook.cluster.kinds import BUILT_IN, CUSTOM, DUMPED, DUMPED_OF_V1, DUMPED_OF_V2
from webhook.commands.demo import program
from webhook.core.affinity import patch_for
from webhook.core.model import Decision
from webhook.core.outcomes import Cause, Outcome
from webhook.core.review import allow, deny
from webhook.demo.certificate import write_certificate
from webhook.demo.clients import Client, Reply
from webhook.demo.incident import read_incident
from webhook.demo.keep import keep
from webhook.demo.replay import Asker, replay
from webhook.demo.safety import hazards
from webhook.demo.server import DemoError, Endpoint, loopback, running
from webhook.demo.show import run
from webhook.demo.visible import decide_on_what_is_visible
from webhook.demo.world import group_of, pods_by_name
from webhook.errors import SettingsError

INCIDENT = read_incident()
REPORTED = "172.16.30.98"
TIKV = ("example2-tikv-0", "example2-tikv-1", "example2-tikv-2")
GUARD = 60.0


def shown(*arguments: str, **variables: str) -> Result:
    environment = {"COLUMNS": "80", "TIDB_HA_EMPTIEST": None, "TIDB_HA_KEEP": None, **variables}
    return CliRunner(env=environment).invoke(main, ["demo", *arguments])


def rows(output: str, heading: str) -> dict[str, str]:
    """The nodes of one table, by pod."""
    table = output.split(heading)[1].split("HA-SAFE")[0]
    return {line.split()[0]: line.split()[-1] for line in table.splitlines() if line.startswith("example2-")}


FIRST, SECOND = "1. Decided on what was visible", "2. With the webhook"


# --- the whole


def test_the_demo_shows_the_incident_without_and_with_the_webhook():
    result = shown()

    assert result.exit_code == 0, result.output
    without, with_webhook = rows(result.output, FIRST), rows(result.output, SECOND)
    assert [without[pod] for pod in TIKV] == [REPORTED] * 3
    assert len({with_webhook[pod] for pod in TIKV}) == 3
    assert len(set(with_webhook.values()) - set(INCIDENT.nodes)) == 0
    assert f"NOT HA-SAFE: {REPORTED} holds 3 of 3 tikv pods" in result.output
    assert "reconstruction" in result.output
    assert '"member": "example2-tikv-' in result.output
    assert "What to try next" in result.output
    assert "…" not in result.output
    assert result.output.isascii()


def test_both_tables_follow_the_emptiest_node():
    other = "172.16.30.59"

    result = shown("--emptiest", other)

    assert result.exit_code == 0, result.output
    without, with_webhook = rows(result.output, FIRST), rows(result.output, SECOND)
    assert [without[pod] for pod in TIKV] == [other] * 3
    assert other in {with_webhook[pod] for pod in TIKV}
    assert len({with_webhook[pod] for pod in TIKV}) == 3


def test_settings_of_the_users_own_webhook_do_not_reach_the_demos(tmp_path: Path):
    result = shown(TIDB_HA_BIND="0.0.0.0:1", TIDB_HA_IN_CLUSTER="1", TIDB_HA_WORKERS="7", TMPDIR=str(tmp_path))

    assert result.exit_code == 0, result.output


# --- with a stand-in for the server


class StandIn:
    """Pins every pod to one node, or answers with what `answer` makes of it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ask(self, reviews: Sequence[dict[str, Any]]) -> list[Reply]:
        return [Reply(self._answer(review["request"]["object"]), 0.001) for review in reviews]

    @contextmanager
    def serve(self, objects: Iterable[dict[str, Any]]) -> Iterator[Asker]:
        assert list(objects)
        yield self


def pin(pod: dict[str, Any], node: str) -> dict[str, Any]:
    decision = Decision(Outcome.PINNED, node=node, domain=node, replicas=3, cap=1)
    return allow("u", patch=patch_for(pod, group_of(pod), decision, None).operations)


def shown_with(answer: Any, width: int = 100) -> tuple[int, str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False)
    return run(serve=StandIn(answer).serve, console=console), stream.getvalue()


def test_stacked_answers_are_exit_code_1():
    code, output = shown_with(lambda pod: pin(pod, REPORTED))

    assert code == 1
    assert output.count(f"NOT HA-SAFE: {REPORTED} holds 3 of 3 tikv pods") == 2
    assert f"NOT HA-SAFE: {REPORTED} holds 3 of 3 pd pods" in output


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: allow("u"), id="let in without a place"),
        pytest.param(lambda _: deny("u", code=403, reason="Forbidden", message="no"), id="refused"),
        pytest.param(lambda pod: pin(pod, "elsewhere"), id="a node that is none"),
    ],
)
def test_answers_that_give_no_place_are_exit_code_1(answer: Any):
    code, output = shown_with(answer)

    assert code == 1
    assert "NOT HA-SAFE: example2-tikv-2 has no node" in output


def test_a_guard_is_no_place():
    def guard(pod: dict[str, Any]) -> dict[str, Any]:
        decision = Decision(Outcome.GUARDED, Cause.BUSY)
        return allow("u", patch=patch_for(pod, group_of(pod), decision, None).operations)

    assert shown_with(guard)[0] == 1


def test_answers_apart_are_exit_code_0_also_on_a_narrow_terminal():
    nodes = {pod: INCIDENT.nodes[index % 3] for index, pod in enumerate(pods_by_name(INCIDENT))}

    code, output = shown_with(lambda pod: pin(pod, nodes[pod["metadata"]["name"]]), width=40)

    assert code == 0
    prose, _, commands = output.partition("What to try next")
    longest_of_record = len('  "topologyKey": "kubernetes.io/hostname",')
    assert max(map(len, prose.splitlines())) <= max(40, longest_of_record)
    assert "  tidb-ha-webhook demo --keep try\n" in commands


def test_pods_that_knew_nothing_of_each_other_are_asked_for_together():
    asked: list[list[str]] = []

    class Listening(StandIn):
        def ask(self, reviews: Sequence[dict[str, Any]]) -> list[Reply]:
            asked.append([review["request"]["name"] for review in reviews])
            return super().ask(reviews)

    replay(INCIDENT, Listening(lambda pod: pin(pod, REPORTED)).serve)

    assert asked == [["example2-pd-0"], ["example2-pd-1"], ["example2-pd-2"], list(TIKV)]


@pytest.mark.parametrize("columns", ["1", "20"])
def test_a_very_narrow_terminal_breaks_no_name(columns: str):
    stream = io.StringIO()
    nodes = {pod: INCIDENT.nodes[index % 3] for index, pod in enumerate(pods_by_name(INCIDENT))}
    script = StandIn(lambda pod: pin(pod, nodes[pod["metadata"]["name"]]))

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stream):
        patch.setenv("COLUMNS", columns)
        run(serve=script.serve)

    shown_rows = rows(stream.getvalue(), SECOND)
    assert shown_rows == nodes


def test_the_kinds_to_dump_are_all_that_decisions_look_at():
    output = shown_with(lambda pod: pin(pod, REPORTED))[1]

    words = {"nodes": "nodes", "ns": "namespaces", "pods": "pods", "pvc": "persistentvolumeclaims"}
    words |= {"pv": "persistentvolumes", "sc": "storageclasses", "sts": "statefulsets"}
    line = next(line for line in output.splitlines() if line.startswith("  kubectl get "))
    dumped = {words.get(kind, kind) for kind in line.split()[2].split(",")}
    assert dumped == {resource.plural for resource in BUILT_IN} - {"events"}
    of_operators = {kind.removesuffix(".core.pingcap.com") for kind in f"{DUMPED_OF_V1},{DUMPED_OF_V2}".split(",")}
    assert of_operators == {resource.plural for resource in CUSTOM} - {"statefulsets"}
    assert f"# where tidb-operator is installed, with its kinds too: ,{DUMPED_OF_V1}" in output
    assert f"# or, of version 2: ,{DUMPED_OF_V2}" in output
    help_text = "".join(CliRunner().invoke(main, ["plan", "--help"]).output.split())
    assert f"$kinds,{DUMPED_OF_V1}-A" in help_text
    assert DUMPED_OF_V2 in help_text
    assert DUMPED in help_text.replace("kinds=$kinds,", ",").replace("kinds=", "")


# --- the facts, and the decisions without the webhook


def test_the_facts_are_those_of_the_report():
    assert set(INCIDENT.nodes) == {f"172.16.30.{last}" for last in (216, 58, 98, 117, 59, 118)}
    assert (INCIDENT.namespace, INCIDENT.cluster, INCIDENT.emptiest) == ("example2", "example2", REPORTED)
    assert [(each.pod, each.at, each.siblings) for each in INCIDENT.decisions[-3:]] == [
        ("example2-tikv-0", "10:19:47.270", 0),
        ("example2-tikv-1", "10:19:47.468", 0),
        ("example2-tikv-2", "10:19:47.864", 0),
    ]


@pytest.mark.parametrize("emptiest", INCIDENT.nodes)
def test_whichever_node_is_the_emptiest_draws_all_three(emptiest: str):
    decisions = decide_on_what_is_visible(INCIDENT.with_emptiest(emptiest))

    assert {decisions[pod].node for pod in TIKV} == {emptiest}


def test_as_many_nodes_are_possible_as_the_report_says():
    decisions = decide_on_what_is_visible(INCIDENT)

    possible = [len(INCIDENT.nodes) - len(decisions[each.pod].passed_over) for each in INCIDENT.decisions]
    assert possible == [each.possible for each in INCIDENT.decisions] == [6, 5, 4, 6, 6, 6]


def test_nobody_is_guarded_or_held_back_without_the_webhook():
    assert {(decision.outcome, decision.guard_too) for decision in decide_on_what_is_visible(INCIDENT).values()} == {
        (Outcome.PINNED, False)
    }


def test_only_members_are_of_a_group():
    with pytest.raises(ValueError, match="web is of no group"):
        group_of({"metadata": {"name": "web"}})


# --- judged by counting


@pytest.mark.parametrize(
    ("placement", "texts"),
    [
        pytest.param(("a", "b", "c"), [], id="apart"),
        pytest.param(("a", "a", "b"), ["a holds 2 of 3 tikv pods: losing it loses their majority"], id="two"),
        pytest.param(("a", "b", ""), ["tikv-2 has no node"], id="one waits"),
        pytest.param(("a", "b", "x"), ["tikv-2 has no node"], id="no such node"),
    ],
)
def test_a_placement_is_judged_by_what_is_left_when_a_node_is_lost(placement: tuple[str, ...], texts: list[str]):
    pods = {f"tikv-{number}": node for number, node in enumerate(placement)}

    assert [hazard.text for hazard in hazards(pods, {"tikv": tuple(pods)}, "abc")] == texts


# --- flags


def test_a_node_that_is_none_is_named_with_those_that_are():
    result = shown("--emptiest", "1.2.3.4")

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --emptiest 1.2.3.4: must be one of the incident's nodes: 172.16.30.216, ")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path):
    (tmp_path / "reviews").write_text("in the way")

    with pytest.raises(SettingsError, match=r"--keep .*: cannot be written to \(.*exists\); give another folder"):
        run(folder=tmp_path, serve=StandIn(None).serve)


def test_a_users_own_file_is_never_overwritten_nor_anything_written_beside_it(tmp_path: Path):
    dump = tmp_path / "dump.yaml"
    dump.write_text("the user's own")

    result = shown("--keep", str(tmp_path))

    assert result.exit_code == 2
    assert result.stderr == f"Error: --keep {tmp_path}: {dump} would be overwritten; give another folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["dump.yaml"]
    assert dump.read_text() == "the user's own"


def test_several_files_in_the_way_are_counted(tmp_path: Path):
    for name in ("dump.yaml", "sets.yaml"):
        (tmp_path / name).write_text("mine")

    with pytest.raises(SettingsError, match=r"dump\.yaml and 1 more would be overwritten"):
        keep(INCIDENT, tmp_path)


def test_a_second_run_finds_its_own_files_in_order_and_one_with_another_node_does_not(tmp_path: Path):
    keep(INCIDENT, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}

    keep(INCIDENT, tmp_path)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    with pytest.raises(SettingsError, match="would be overwritten"):
        keep(INCIDENT.with_emptiest("172.16.30.59"), tmp_path)


def test_what_is_kept_can_be_planned_and_is_what_the_webhook_was_asked(tmp_path: Path):
    folder = tmp_path / "try"
    stream = io.StringIO()

    run(folder=folder, serve=StandIn(lambda pod: pin(pod, REPORTED)).serve, console=Console(file=stream, width=200))

    planned = CliRunner().invoke(
        main, ["plan", "--cluster", f"{folder}/dump.yaml", "-f", f"{folder}/sets.yaml", "-o", "json"]
    )
    assert (planned.exit_code, planned.stderr) == (0, ""), planned.output
    assert len({pod["node"] for pod in json.loads(planned.stdout)["pods"] if "tikv" in pod["pod"]}) == 3
    review = json.loads((folder / "reviews" / "example2-tikv-0.json").read_text())
    assert review["request"]["name"] == "example2-tikv-0"
    assert review["request"]["object"]["spec"]["volumes"]
    assert len(list((folder / "reviews").iterdir())) == 6
    assert f"plan --cluster {folder}/dump.yaml -f {folder}/sets.yaml" in stream.getvalue()
    assert "--keep" not in stream.getvalue()
    assert "&id" not in (folder / "dump.yaml").read_text()
    assert len(list(yaml.safe_load_all((folder / "sets.yaml").read_text()))) == 2


def test_help_says_what_the_exit_code_means():
    text = " ".join(shown("--help").output.split())

    assert "Exit code: 0 only if what the webhook answered is HA-safe" in text
    assert "TIDB_HA_KEEP" in text


def test_the_program_is_named_as_the_shell_finds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    executable = tmp_path / "bin" / "tidb-ha-webhook"
    executable.parent.mkdir()
    python = str(executable.with_name("python"))
    monkeypatch.setenv("PATH", str(executable.parent))
    monkeypatch.chdir(tmp_path)
    assert program(python) == "tidb-ha-webhook"

    executable.touch(mode=0o755)
    assert program(python) == "tidb-ha-webhook"

    monkeypatch.setenv("PATH", "/nowhere")
    assert program(python) == "bin/tidb-ha-webhook"


# --- the certificate


def handshake(certificate: Path, key: Path, trust: ssl.SSLContext, name: str) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    ends = [ssl.MemoryBIO() for _ in range(4)]
    client_side = trust.wrap_bio(ends[0], ends[1], server_hostname=name)
    server_side = server.wrap_bio(ends[2], ends[3], server_side=True)
    for _ in range(4):
        for side in (client_side, server_side):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            ends[2].write(ends[1].read())
            ends[0].write(ends[3].read())


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_the_certificate_is_good_for_loopback_by_the_strictest_rules(tmp_path: Path, name: str):
    certificate, key = write_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(certificate))
    trust.verify_flags |= ssl.VERIFY_X509_STRICT

    handshake(certificate, key, trust, name)


def test_the_certificate_is_good_for_nothing_else(tmp_path: Path):
    certificate, key = write_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(certificate))

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificate, key, trust, "example.com")


def test_nobody_else_may_read_the_key(tmp_path: Path):
    _, key = write_certificate(tmp_path)

    assert stat.S_IMODE(key.stat().st_mode) == 0o600


# --- the client


@contextmanager
def an_https_server(folder: Path, status: int, body: bytes) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    certificate, key = write_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Endpoint(f"https://127.0.0.1:{server.server_port}", certificate)
        finally:
            server.shutdown()
            thread.join()


def test_an_answer_comes_back_with_its_time(tmp_path: Path):
    with an_https_server(tmp_path, 200, b'{"response": {}}') as endpoint:
        (reply,) = Client(endpoint).ask([{"request": {}}])

    assert reply.answer == {"response": {}}
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(500, b'{"error": "internal"}', "HTTP status 500.*internal"), (200, b"<html>", "JSONDecodeError")],
    ids=["status", "no JSON"],
)
def test_anything_but_an_answer_is_an_error(tmp_path: Path, status: int, body: bytes, words: str):
    with an_https_server(tmp_path, status, body) as endpoint, pytest.raises(DemoError, match=words):
        Client(endpoint).ask([{"request": {}}])


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path):
    certificate, _ = write_certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"

    with pytest.raises(DemoError, match="ConnectionRefused"):
        Client(Endpoint(url, certificate)).ask([{}])


# --- the server's process


def script(text: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(text)]


def test_a_server_that_does_not_start_is_an_error_with_its_last_words():
    command = script("import sys; sys.exit('the address is in use')")

    with pytest.raises(DemoError, match="did not start: the address is in use"), running(command):
        pass


def test_a_server_that_says_nothing_is_given_up():
    with (
        pytest.raises(DemoError, match="did not start: it said nothing"),
        running(script("import time; time.sleep(600)"), patience=0.5),
    ):
        pass


# A process whose "port" is its process id.
ANNOUNCES = 'import os, sys; print(f"reviews at https://localhost:{os.getpid()},", file=sys.stderr, flush=True)'


def test_a_server_that_writes_more_than_a_pipe_holds_is_not_held_up():
    with running([sys.executable, "-c", f"{ANNOUNCES}; sys.stderr.write('x' * 1_000_000)"]) as url:
        # It ends by itself only if all that it writes is read.
        os.waitid(os.P_PID, port_of(url), os.WEXITED | os.WNOWAIT)


def test_a_server_that_ignores_the_request_to_end_is_killed():
    deaf = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {ANNOUNCES}; time.sleep(600)"

    with running([sys.executable, "-c", deaf], grace=0.2) as url:
        pass

    assert not alive(port_of(url))


def test_loopback_is_a_port_that_the_system_chooses():
    assert loopback() in ("127.0.0.1:0", "[::1]:0")


def port_of(url: str) -> int:
    return urlsplit(url).port or 0


def children_of(pid: int) -> list[int]:
    found = []
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat_file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat_file.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SERVING = """
    import sys, threading
    from webhook.demo.server import webhook_on
    from webhook.cli import main
    import click

    @click.command("hold")
    def hold():
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        with webhook_on([node]) as endpoint:
            print(endpoint.url, endpoint.certificate, flush=True)
            threading.Event().wait()

    main.add_command(hold)
    main(["hold"])
"""


def test_the_server_ends_also_where_the_demo_is_killed(tmp_path: Path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(script(SERVING), stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            [server] = children_of(process.pid)
        finally:
            process.kill()

    # It is nobody's child any more, so it can only be looked for.
    eventually(lambda: not alive(server))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["Ctrl-C", "SIGTERM", "terminal closed"],
)
def test_everything_is_stopped_and_taken_away_however_it_ends(number: signal.Signals, code: int):
    with subprocess.Popen(script(SERVING), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url, certificate = process.stdout.readline().split()
            server = children_of(process.pid)
            assert Path(certificate).exists()
            socket.create_connection(("127.0.0.1", port_of(url)), timeout=GUARD).close()
            process.send_signal(number)
            ended = process.wait(GUARD)
        finally:
            process.kill()

    assert ended == code
    assert len(server) == 1
    assert not alive(server[0])
    assert not Path(certificate).parent.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(url)), timeout=GUARD)
