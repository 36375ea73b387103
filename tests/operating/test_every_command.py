"""Every command that asks, in every situation that it may meet: a sentence, and the right exit code."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from click.testing import Result
from cluster_objects import SPACE, a_claim, a_node, a_pod, a_v1_world, labels_v1
from fake_api_server import RESET, STALL, Reply, fake_api_server
from operating.asked import dump, run
from operating.served import Refusal, kubeconfig, served
from operating.ward import Ward
from stand import Stand

from webhook.cluster.door import NAMESPACES, PODS, Manifest
from webhook.cluster.kinds import BUILT_IN, CUSTOM
from webhook.core import keys

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "why": ("why", "db-pd-0"),
    "audit": ("audit",),
    "audit of a namespace": ("audit", "-n", SPACE),
    "can-drain": ("can-drain", "n1"),
    "can-drain of a zone": ("can-drain", "--zone", "z1"),
    "simulate": ("simulate", "lose-node:n1", "add-nodes:1"),
    "doctor": ("doctor",),
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def a_running_world(component: str = "pd") -> list[Manifest]:
    """Three members that the webhook has placed, each on a node in a zone of its own; a fourth node is free."""
    stand = Stand(*(each for each in a_v1_world(3, component) if each["kind"] != "Node"), *zones())
    stand.cluster.create(NAMESPACES, {"metadata": {"name": SPACE, "labels": {}}}, timeout=1)
    for ordinal in range(3):
        name = f"db-{component}-{ordinal}"
        stand.bind(name, stand.admit(a_pod(name)).node)
        stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    return everything(stand)


def zones() -> list[Manifest]:
    return [a_node(f"n{number}", zone=f"z{number}") for number in range(1, 5)]


def everything(stand: Stand) -> list[Manifest]:
    return [found for kind in (*BUILT_IN, *CUSTOM) for found in stand.cluster.list(kind, timeout=1).items]


@pytest.fixture(scope="module")
def world() -> list[Manifest]:
    return a_running_world()


Ask = Callable[..., Result]


@contextmanager
def asking(
    tmp_path: Path, objects: list[Manifest], refuse: Callable[[str], Refusal | None] = lambda path: None
) -> Iterator[Ask]:
    """A function that runs commands against a live cluster that has these objects."""
    ward = Ward([found for found in objects if found["kind"] != "StorageClass"])
    with served(ward, refuse) as url:
        config = kubeconfig(tmp_path / "config", url)
        yield lambda *arguments: run(*arguments, "--kubeconfig", config, "--timeout", "5", COLUMNS="200")


def not_a_traceback(result: Result) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception


def one_sentence(result: Result, code: int) -> str:
    """Nothing was answered, and that is one line."""
    not_a_traceback(result)
    assert (result.exit_code, result.stdout) == (code, "")
    lines = [line for line in result.stderr.splitlines() if not line.startswith(("Usage:", "Try '", "Note: "))]
    (line,) = filter(None, lines)
    assert line.startswith("Error: ")
    return line


# --- where there is something to say


LIVE = {
    "why": (0, "shop/db-pd-0 of shop/db/pd was pinned to n"),
    "audit": (0, "1 group: all as they should be"),
    "audit of a namespace": (0, "1 group: all as they should be"),
    "can-drain": (0, "yes: without n1"),
    "can-drain of a zone": (0, "yes: without n1"),
    "simulate": (0, "no quorum and no data is lost in any step, and nobody waits at the end"),
    "doctor": (1, "no MutatingWebhookConfiguration has a webhook of ours for pods: nobody is placed"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_live_cluster_is_answered_about(tmp_path: Path, world: list[Manifest], name: str) -> None:
    with asking(tmp_path, world) as ask:
        result = ask(*COMMANDS[name])
    code, said = LIVE[name]
    not_a_traceback(result)
    assert (result.exit_code, result.stderr) == (code, "")
    assert said in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dump_is_answered_about_alike(tmp_path: Path, world: list[Manifest], name: str) -> None:
    path = dump(tmp_path / "dump.json", Ward([found for found in world if found["kind"] != "StorageClass"]))
    namespace = ("-n", SPACE) if name == "why" else ()
    result = run(*COMMANDS[name], *namespace, "--cluster", path, COLUMNS="200")
    code, said = LIVE[name]
    not_a_traceback(result)
    if name == "doctor":
        code, said = 0, "a dump holds no configuration of webhooks"
    assert result.exit_code == code
    assert said in result.stdout


# --- an empty cluster

EMPTY = {
    "why": (2, "there is no pod 'db-pd-0' in namespace shop; there is no pod at all"),
    "audit": (0, "no group was found"),
    "audit of a namespace": (0, "no group was found"),
    "can-drain": (2, "there is no node 'n1'; there is no node at all"),
    "can-drain of a zone": (2, "there is no zone 'z1' by the node label topology.kubernetes.io/zone; there is no zone"),
    "simulate": (2, "there is no node 'n1'; there is no node at all"),
    "doctor": (1, "no MutatingWebhookConfiguration has a webhook of ours"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("live", [True, False], ids=["live", "dump"])
def test_an_empty_cluster_is_a_sentence(tmp_path: Path, name: str, live: bool) -> None:
    nothing = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}]
    code, said = EMPTY[name]
    if live:
        with asking(tmp_path, nothing) as ask:
            result = ask(*COMMANDS[name])
    else:
        path = dump(tmp_path / "dump.json", Ward(nothing))
        result = run(*COMMANDS[name], *(("-n", SPACE) if name == "why" else ()), "--cluster", path, COLUMNS="200")
        if name == "doctor":
            code, said = 0, "no group was found"
    not_a_traceback(result)
    assert result.exit_code == code
    assert said in " ".join((result.stdout + result.stderr).split())


# --- who may not, and who is not known


@every_command
def test_who_may_not_read_is_told_the_verb_and_the_resource(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...]
) -> None:
    with asking(tmp_path, world, lambda path: None if path == "/version" else (403, {})) as ask:
        result = ask(*command)
    if command == ("doctor",):
        assert result.exit_code == 3
        assert "not checked: not allowed to list mutatingwebhookconfigurations" in result.stdout
    else:
        said = one_sentence(result, 3)
        assert "not allowed (told so); a role with the verb" in said
        assert "kubectl auth can-i" in said


@every_command
def test_who_is_not_known_is_told_so(tmp_path: Path, world: list[Manifest], command: tuple[str, ...]) -> None:
    with asking(tmp_path, world, lambda _: (401, {})) as ask:
        assert "the API server does not know who we are (401)" in one_sentence(ask(*command), 3)


@every_command
@pytest.mark.parametrize("plural", [kind.plural for kind in BUILT_IN if kind.plural != "events"])
def test_one_kind_that_may_not_be_read_is_named(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...], plural: str
) -> None:
    with asking(tmp_path, world, lambda path: (403, {}) if re.search(rf"/{plural}(/[^/]+)?$", path) else None) as ask:
        result = ask(*command)
    not_a_traceback(result)
    assert result.exit_code in (0, 1, 3)
    if result.exit_code == 3:
        assert plural in one_sentence(result, 3)


# --- a server that does not answer as it should


@every_command
def test_a_server_that_is_not_there_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}")
    said = one_sentence(run(*command, "--kubeconfig", config), 3)
    assert f"no answer from the API server of {config} (" in said
    assert "can it be reached from here?" in said


@every_command
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(Reply(503, b"no"), ": 503", id="broken"),
        pytest.param(Reply(200, b"<html>"), "the answer is not JSON", id="no API server"),
        pytest.param(Reply(200, b"[]"), ": 200 ", id="no object"),
        pytest.param(Reply(301, b""), ": 301", id="moved"),
        pytest.param(Reply(404, b"{}"), "", id="nothing there"),
        pytest.param(Reply(429, b"{}", {"Retry-After": "60"}), "asks to wait 60 s more", id="busy"),
        pytest.param(RESET, "no answer from the API server of", id="reset"),
        pytest.param(STALL, "no answer from the API server of", id="stalled"),
    ],
)
def test_a_server_that_answers_nonsense_is_a_sentence(
    tmp_path: Path, command: tuple[str, ...], reply: Reply | str, said: str
) -> None:
    with fake_api_server() as server:
        server.answer_with(reply)
        timeout = "0.3" if reply == STALL else "5"
        result = run(*command, "--kubeconfig", kubeconfig(tmp_path / "config", server.url), "--timeout", timeout)
    not_a_traceback(result)
    assert said in one_sentence(result, 3 if said else result.exit_code)
    assert result.exit_code in (2, 3)


def test_a_server_that_knows_no_nodes_is_taken_for_no_api_server(tmp_path: Path) -> None:
    with fake_api_server() as server:
        server.answer_with(Reply(404, b"{}"))
        result = run("audit", "--kubeconfig", kubeconfig(tmp_path / "config", server.url))
    said = one_sentence(result, 3)
    assert "does not know this kind (404)" in said
    assert "is the address that of an API server?" in said


def test_a_server_of_another_authority_is_not_called_down(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    other.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    with fake_api_server(context) as server:
        config = kubeconfig(tmp_path / "config", server.url)
        document = json.loads(config.read_text())
        document["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
        config.write_text(json.dumps(document))
        said = one_sentence(run("audit", "--kubeconfig", config), 3)
    assert "has a certificate that is not trusted (" in said
    assert "certificate-authority-data" in said
    assert "is it up" not in said


@every_command
def test_a_server_that_is_busy_for_a_moment_is_waited_for(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...]
) -> None:
    refusals: list[Refusal] = [(429, {"Retry-After": "0"})]
    with asking(tmp_path, world, lambda _: refusals.pop() if refusals else None) as ask:
        result = ask(*command)
    assert refusals == []
    assert result.exit_code in (0, 1)


# --- a wrong kubeconfig, a wrong flag


@every_command
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "it is no YAML", id="no YAML"),
        pytest.param("", "is empty", id="empty"),
        pytest.param("[]", "it is no kubeconfig", id="no mapping"),
        pytest.param("apiVersion: v1\nkind: Config\n", "Expected key current-context", id="no contexts"),
        pytest.param("\x00\x01", "it is no YAML", id="no text"),
    ],
)
def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, command: tuple[str, ...], text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    line = one_sentence(run(*command, "--kubeconfig", path), 2)
    assert str(path) in line
    assert said in line


@every_command
def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    missing = tmp_path / "none"
    assert str(missing) in one_sentence(run(*command, "--kubeconfig", missing), 2)
    assert "no kubeconfig at" in one_sentence(run(*command, KUBECONFIG=str(missing)), 2)


@every_command
def test_a_context_that_is_not_there_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    assert "prod" in one_sentence(run(*command, "--kubeconfig", config, "--context", "prod"), 2)


@every_command
def test_two_clusters_at_once_and_a_negative_time_are_wrong_flags(tmp_path: Path, command: tuple[str, ...]) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    dumped = dump(tmp_path / "dump.json", Ward([]))
    assert "only one of" in one_sentence(run(*command, "--kubeconfig", config, "--cluster", dumped), 2)
    assert "--timeout" in one_sentence(run(*command, "--kubeconfig", config, "--timeout", "-1"), 2)


# --- garbage in what is there, and dumps that lack something


GARBAGE = ["", "{", "[]", "null", '{"v":1}', '{"v":99}', '{"v":1,"member":7,"node":[]}', "[" * 5000, "\x00\ufffd"]


@every_command
@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_records_is_no_trouble(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...], garbage: str
) -> None:
    spoilt = json.loads(json.dumps(world))
    for found in spoilt:
        annotations = found["metadata"].get("annotations") or {}
        if found["kind"] == "Pod":
            annotations |= {keys.DECISION: garbage, keys.ASSIGNED_NODE: garbage, keys.GUARD: garbage}
        elif found["kind"] == "PersistentVolumeClaim":
            annotations |= {keys.LOCK: garbage, f"{keys.ENTRY_PREFIX}abc": garbage}
        found["metadata"]["annotations"] = annotations
    with asking(tmp_path, spoilt) as ask:
        result = ask(*command)
    not_a_traceback(result)
    assert (result.exit_code in (0, 1), result.stdout != "") == (True, True), result.stderr


@every_command
@pytest.mark.parametrize("kind", ["Node", "Pod", "PersistentVolumeClaim", "StorageClass", "StatefulSet", "TidbCluster"])
def test_a_dump_without_a_kind_is_answered_or_told_about(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...], kind: str
) -> None:
    left = [found for found in world if found["kind"] not in (kind, "StorageClass")]
    path = dump(tmp_path / "dump.json", Ward(left))
    if kind == "StorageClass":
        items = [found for found in json.loads(path.read_text())["items"] if found["kind"] != kind]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = run(*command, *(("-n", SPACE) if command[0] == "why" else ()), "--cluster", path, COLUMNS="200")
    not_a_traceback(result)
    assert result.exit_code in (0, 1, 2, 3)
    if kind != "TidbCluster":
        assert "the dump holds no " in result.stderr
    if result.exit_code in (2, 3):
        assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1


# --- names that do not exist


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("why", "db-pd-O"), "there is no pod 'db-pd-O' in namespace shop; did you mean db-pd-"),
        (("why", "db-pd-0", "-n", "shpo"), "there is no pod 'db-pd-0' in namespace shpo; it is in shop: -n shop"),
        (("why", "zzz", "-n", "shpo"), "there is no namespace 'shpo'; did you mean shop?"),
        (("audit", "-n", "shpo"), "there is no namespace 'shpo'; did you mean shop?"),
        (("can-drain", "n11"), "there is no node 'n11'; did you mean n1"),
        (("can-drain", "elsewhere"), "there is no node 'elsewhere'; there are n1, n2, n3, n4"),
        (("can-drain", "--zone", "z9"), "there is no zone 'z9'"),
        (("can-drain",), "no node was named"),
        (("simulate", "lose-node:n11"), "there is no node 'n11'; did you mean n1"),
        (("simulate", "lose-zone:z9"), "there is no zone 'z9'"),
        (
            ("simulate", "scale:db-dp=4"),
            "there is no StatefulSet or group object 'shop/db-dp'; did you mean shop/db-pd?",
        ),
        (("simulate", "drain:n1"), "step 'drain:n1': must be scale:"),
        (("why",), "Missing argument 'POD'"),
        (("simulate",), "Missing argument 'STEP...'"),
        (("audti",), "No such command 'audti'"),
        (("audit", "-o", "xml"), "'xml' is not one of"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_a_name_that_is_not_there_comes_with_near_ones(
    tmp_path: Path, world: list[Manifest], command: tuple[str, ...], said: str
) -> None:
    with asking(tmp_path, world) as ask:
        assert said in one_sentence(ask(*command), 2)


# --- a claim that names nothing stays out of the way


def test_claims_of_nobody_do_not_stop_an_answer(tmp_path: Path, world: list[Manifest]) -> None:
    strange = a_claim("strange", labels_v1("pd"), volume="gone")
    with asking(tmp_path, [*world, strange]) as ask:
        assert ask("audit").exit_code == 0
