"""Which cluster a command asks, in which namespace, and how it says that it could not."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_api_server import RESET, FakeApiServer, Reply, fake_api_server, json_reply, status_reply
from operating.asked import run

from webhook.cluster.contexts import namespace_of, own_namespace
from webhook.operating.page import Page


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as server:
        yield server


def kubeconfig(path: Path, url: str, namespace: str = "shop") -> Path:
    """A file with two contexts, the current one of this namespace."""
    contexts = [
        {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": namespace}},
        {"name": "other", "context": {"cluster": "c", "user": "u"}},
    ]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": contexts,
        "current-context": "one",
    }
    path.write_text(json.dumps(document))
    return path


def test_the_namespace_is_that_of_the_context(tmp_path: Path, server: FakeApiServer):
    server.answer_with(status_reply(403, "may not"))

    for arguments, namespace in (((), "shop"), (("--context", "other"), "default"), (("-n", "db"), "db")):
        run("why", "x", "--kubeconfig", kubeconfig(tmp_path / "config", server.url), *arguments)

        assert server.asked[-1].path == f"/api/v1/namespaces/{namespace}/pods/x"


def test_a_context_that_does_not_exist_is_an_error(tmp_path: Path):
    result = run("why", "x", "--kubeconfig", kubeconfig(tmp_path / "config", "http://localhost:1"), "--context", "tow")

    assert result.exit_code == 2
    assert "tow" in result.stderr


@pytest.mark.parametrize("text", ["{", "[]", "contexts: 3", ""])
def test_the_namespace_of_a_file_that_cannot_be_read_is_the_default(tmp_path: Path, text: str):
    path = tmp_path / "config"
    path.write_text(text)

    assert namespace_of(str(path)) == "default"


def test_a_pod_asks_in_its_own_namespace(tmp_path: Path):
    assert own_namespace(tmp_path) == "default"
    (tmp_path / "namespace").write_text("db\n")
    assert own_namespace(tmp_path) == "db"


def test_without_a_cluster_there_is_a_hint(tmp_path: Path):
    result = run("why", "x", KUBECONFIG=str(tmp_path / "none"))

    assert result.exit_code == 2
    assert "no kubeconfig at" in result.stderr


def test_outside_a_pod_its_service_account_is_not_there():
    result = run("why", "x", "--in-cluster")

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --in-cluster: ")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(
            status_reply(403, 'pods "x" is forbidden: User "u" cannot get'),
            'get pods x: not allowed (pods "x" is forbidden: User "u" cannot get); a role with the verb get on pods is',
            id="forbidden",
        ),
        pytest.param(status_reply(401, "Unauthorized"), "does not know who we are (401) (Unauthorized)", id="unknown"),
        pytest.param(
            status_reply(429, Retry_After="70"),
            "get pods x: the API server has too much to do (429) and asks to wait 70 s more",
            id="busy",
        ),
        pytest.param(status_reply(500, "oh"), "get pods x: 500 oh", id="broken"),
        pytest.param(Reply(200, b"<html>"), "get pods x: 200 the answer is not JSON", id="no API server"),
        pytest.param(RESET, "get pods x: no answer from the API server of", id="reset"),
    ],
)
def test_what_cannot_be_read_is_a_sentence_and_exit_code_3(
    tmp_path: Path, server: FakeApiServer, reply: Reply | str, said: str
):
    server.answer_with(reply)

    result = run("why", "x", "--kubeconfig", kubeconfig(tmp_path / "config", server.url))

    assert (result.exit_code, result.stdout) == (3, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_server_that_asks_to_wait_is_waited_for(tmp_path: Path, server: FakeApiServer):
    server.answer_with(status_reply(429, Retry_After="0"), status_reply(403, "may not"))

    result = run("why", "x", "--kubeconfig", kubeconfig(tmp_path / "config", server.url))

    assert "not allowed (may not)" in result.stderr
    assert len(server.asked) == 2


def test_an_unreachable_server_is_named(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}")

    result = run("why", "x", "--kubeconfig", config)

    assert result.exit_code == 3
    assert f"no answer from the API server of {config}" in result.stderr
    assert "Connection refused" in result.stderr
    assert "can it be reached from here?" in result.stderr


def test_time_that_is_used_up_is_said(tmp_path: Path, server: FakeApiServer):
    server.answer_with(json_reply({"metadata": {"name": "x"}}))

    result = run("why", "x", "--kubeconfig", kubeconfig(tmp_path / "config", server.url), "--timeout", "0")

    assert result.exit_code == 3
    assert "the time of --timeout is used up" in result.stderr


def test_a_page_without_anything_is_its_headline():
    page = Page(3)
    page.answer("so", ())
    page.section("nothing", (), most=2)
    page.section("blank", ("", "x"), most=2)

    assert page.text() == "so\n\n… 3 more lines"
