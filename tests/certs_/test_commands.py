"""`python -m certs` as people and the chart call it."""

from __future__ import annotations

import base64
import http.client
import json
import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_api_server import FakeApiServer, Reply, fake_api_server, json_reply, status_reply

from certs import logs
from certs.__main__ import main
from certs.authority import Pair, issue_authority, issue_leaf, service_names
from certs.cluster import Published, StoredSecret
from certs.figures import Figures, health_application, health_server
from certs.given import given_by
from certs.material import Material, Retired, data_of
from certs.report import report
from certs_.handshakes import handshake

NOW = datetime(2026, 9, 15, 12, 0, tzinfo=UTC)
NAMES = service_names("hook", "rel")
AUTHORITY, NEXT = issue_authority(NOW), issue_authority(NOW)
MATERIAL = Material(AUTHORITY, issue_leaf(AUTHORITY, NAMES, NOW))
WELL = Published("1", (("pods", AUTHORITY.certificate), ("probe", AUTHORITY.certificate)))


def stored(material: Material, *, rotate: bool = False) -> StoredSecret:
    return StoredSecret("1", {name: text for name, text in data_of(material).items() if text}, rotate)


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as fake:
        yield fake


@pytest.fixture
def kubeconfig(server: FakeApiServer, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": server.url}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [cluster],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
    return path


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_issue_makes_a_pair_that_a_strict_client_accepts(tmp_path: Path) -> None:
    done = invoke("issue", "--service", "hook", "--namespace", "rel", "--directory", tmp_path)
    assert done.exit_code == 0
    assert "hook.rel.svc.cluster.local" in done.output
    leaf = Pair((tmp_path / "tls.crt").read_bytes(), (tmp_path / "tls.key").read_bytes())
    assert handshake(leaf, (tmp_path / "ca.crt").read_bytes(), "hook.rel.svc")


def test_status_says_that_all_is_well_with_exit_code_0(server: FakeApiServer, kubeconfig: Path) -> None:
    issued = issue_authority(datetime.now(UTC))
    material = Material(issued, issue_leaf(issued, NAMES, datetime.now(UTC)))
    secret = {"metadata": {"resourceVersion": "1"}, "data": stored(material).data}
    encoded = data_of(material)["ca.crt"]
    configuration = {
        "metadata": {"resourceVersion": "1"},
        "webhooks": [{"name": "pods", "clientConfig": {"caBundle": encoded}}],
    }
    server.answer_with(json_reply(secret), json_reply(configuration))
    done = invoke("status", "--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig)
    assert done.exit_code == 0, done.output
    assert "pods: trusts the certificate (1 CA)" in done.output
    assert [asked.path.rpartition("/")[2] for asked in server.asked] == ["hook-certificates", "hook.rel"]


def test_status_ends_with_1_when_something_is_amiss(server: FakeApiServer, kubeconfig: Path) -> None:
    server.answer_with(status_reply(404))
    done = invoke("status", "--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig)
    assert (done.exit_code, "not there" in done.output) == (1, True)


NOWHERE = status_reply(404)


def configuration(mode: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "1", "annotations": {"tidb-ha-webhook.io/certificates": mode}}}


def test_a_refusal_is_one_line_and_no_traceback(server: FakeApiServer, kubeconfig: Path) -> None:
    server.answer_with(NOWHERE, status_reply(403, "you may not"))
    done = invoke("rotate", "--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig)
    assert done.exit_code == 1
    assert done.output == "Error: patch secret: 403 you may not\n"


@pytest.mark.parametrize("found", [NOWHERE, json_reply(configuration("selfManaged"))], ids=["none", "ours"])
def test_rotate_asks_for_a_new_authority(server: FakeApiServer, kubeconfig: Path, found: Reply) -> None:
    server.answer_with(found, json_reply({}))
    done = invoke("rotate", "--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig, "--reason", "why")
    assert done.exit_code == 0
    assert server.asked[1].json()["metadata"]["annotations"] == {"tidb-ha-webhook.io/rotate": "why"}


def test_rotate_asks_for_nothing_where_somebody_else_makes_the_certificates(
    server: FakeApiServer, kubeconfig: Path
) -> None:
    server.answer_with(json_reply(configuration("injector")))
    done = invoke("rotate", "--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig)
    assert done.exit_code == 1
    assert "made elsewhere (mode injector)" in done.output
    assert [asked.method for asked in server.asked] == ["GET"]


def test_clean_says_what_it_removed(server: FakeApiServer, kubeconfig: Path) -> None:
    arguments = ("--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig, "--quiet-time", "0")
    done = invoke("clean", *arguments, "--policy", "rel-hook")
    assert done.exit_code == 0
    assert "removed webhook configuration\nremoved Secret hook-certificates\nremoved Lease hook-certs\n" in done.output


def test_clean_removes_what_cert_manager_would_make_anew_before_what_it_has_made(
    server: FakeApiServer, kubeconfig: Path
) -> None:
    arguments = ("--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig, "--quiet-time", "0")
    done = invoke("clean", *arguments, "--certificate", "hook-server", "--also-secret", "hook-cert-manager")
    assert done.exit_code == 0, done.output
    removed = [asked.path.rpartition("/")[2] for asked in server.asked]
    assert removed[:5] == ["hook.rel", "hook-server", "hook-certificates", "hook-cert-manager", "hook-certs"]
    assert "removed Certificate hook-server\n" in done.output
    assert "removed Secret hook-cert-manager\n" in done.output


@pytest.mark.parametrize("written", ["{", "- a", "secret: [", "clusters: 7", "", "contexts: null"], ids=repr)
def test_a_kubeconfig_that_is_none_is_an_error_without_its_text(tmp_path: Path, written: str) -> None:
    (tmp_path / "config").write_text(written)
    done = invoke("status", "--service", "hook", "--namespace", "rel", "--kubeconfig", tmp_path / "config")
    assert done.exit_code == 1
    assert done.output.startswith("Error: no access to a cluster: ")
    assert "secret" not in done.output


def test_outside_a_pod_in_cluster_is_an_error_in_words() -> None:
    done = invoke("status", "--service", "hook", "--namespace", "rel", "--in-cluster")
    assert done.exit_code == 1
    assert "no access to a cluster" in done.output


@pytest.mark.parametrize(
    ("secret", "published", "line"),
    [
        (stored(MATERIAL), None, "webhook configuration: not there"),
        (None, WELL, "secret: not there"),
        (stored(Material(AUTHORITY)), WELL, "certificate: missing"),
        (stored(MATERIAL), Published("1", (("pods", b""),)), "pods: does not trust the certificate"),
        (
            stored(MATERIAL),
            Published("1", (("pods", AUTHORITY.certificate + NEXT.certificate),)),
            "pods: trusts the certificate, but not exactly",
        ),
    ],
)
def test_what_is_amiss_is_said(secret: StoredSecret | None, published: Published | None, line: str) -> None:
    lines, well = report(secret, published, NOW)
    assert not well
    assert line in "\n".join(lines)


def test_an_expiry_that_comes_near_is_amiss() -> None:
    assert report(stored(MATERIAL), WELL, NOW + timedelta(days=70))[1]
    assert not report(stored(MATERIAL), WELL, NOW + timedelta(days=80))[1]


def test_a_rotation_is_told_stage_by_stage() -> None:
    next_leaf = issue_leaf(NEXT, NAMES, NOW)
    rotating = Material(AUTHORITY, MATERIAL.leaf, NEXT, next_leaf)
    both = Published("1", (("pods", AUTHORITY.certificate + NEXT.certificate),))
    retiring = Material(NEXT, next_leaf, retired=(Retired(AUTHORITY.certificate, NOW + timedelta(days=1)),))
    assert "rotation: asked for" in "\n".join(report(stored(MATERIAL, rotate=True), WELL, NOW)[0])
    assert "stage: publish" in "\n".join(report(stored(rotating), WELL, NOW)[0])
    assert "stage: confirm" in "\n".join(report(stored(rotating), both, NOW)[0])
    assert "old CA: trusted until 2026-09-16 12:00 UTC" in report(stored(retiring), both, NOW)[0]


def test_of_certificates_that_somebody_else_makes_it_is_told_what_is_trusted() -> None:
    published = Published("1", (("pods", AUTHORITY.certificate + NEXT.certificate),), "existingSecret")
    lines, well = report(None, published, NOW)
    assert well
    assert lines == ["mode: existingSecret; certificates are made, and changed, elsewhere", "pods: trusts 2 CA(s)"]
    before = Material(retired=(Retired(AUTHORITY.certificate, NOW + timedelta(days=1)),))
    assert report(stored(before), published, NOW)[0][2:] == ["old CA: trusted until 2026-09-16 12:00 UTC"]


def test_a_bundle_that_nobody_has_filled_is_amiss() -> None:
    lines, well = report(None, Published("1", (("pods", b""),), "injector"), NOW)
    assert not well
    assert "pods: trusts no CA" in lines[1]


def test_nothing_secret_is_reported() -> None:
    assert "PRIVATE" not in "\n".join(report(stored(MATERIAL), WELL, NOW)[0])


@pytest.mark.parametrize(
    ("path", "problem", "status", "text"),
    [
        ("/livez", "not yet", 200, "ok"),
        ("/readyz", None, 200, "ok"),
        ("/readyz", "not yet", 503, "not ready: not yet"),
        ("/metrics", None, 200, "tidb_ha_webhook_ca_bundle_in_sync"),
        ("/startz", None, 200, "ok"),
        ("/startz", "no certificate", 503, "there is no certificate yet"),
        ("/", None, 404, "nothing is here"),
    ],
)
def test_health_is_told_over_plain_http(path: str, problem: str | None, status: int, text: str) -> None:
    server = health_server(0, health_application(Figures(), lambda: problem, lambda: problem is None))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    connection = http.client.HTTPConnection("localhost", server.server_port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == status
    assert text in answer.read().decode()
    connection.close()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("form", ["json", "text"])
def test_log_lines_are_of_the_form_that_was_asked_for(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.root.handlers[:], logging.root.level
    try:
        logs.configure(form)
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("certs").exception("it failed")
    finally:
        logging.root.handlers[:], logging.root.level = before
    written = capsys.readouterr().err
    assert "it failed" in written
    assert "ValueError: why" in written
    if form == "json":
        assert json.loads(written)["level"] == "error"


def test_run_looks_serves_its_health_and_ends_on_sigterm(
    server: FakeApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    server.answer_with(status_reply(404))
    command = [sys.executable, "-m", "certs", "run", "--service", "hook", "--namespace", "rel"]
    options = ["--kubeconfig", kubeconfig, "--directory", tmp_path / "tls", "--probe-port", "0", "--health-port", "0"]
    process = subprocess.Popen([*command, *map(str, options), "--interval", "0.1"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert re.search(r"keeps what is trusted for hook.rel.svc.cluster.local \(mode selfManaged\)", first)
    while len(server.asked) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert "nothing is done until there is" in process.stderr.read()
    process.stderr.close()


def test_publish_has_the_given_authority_trusted(server: FakeApiServer, kubeconfig: Path, tmp_path: Path) -> None:
    entries = [{"name": "pods", "clientConfig": {}}]
    published = {**configuration("existingSecret"), "webhooks": entries}
    lease = {"metadata": {"name": "hook-certs", "resourceVersion": "3"}, "spec": {"holderIdentity": "me"}}
    server.answer_with(json_reply(published), NOWHERE, NOWHERE, json_reply(lease, 201), json_reply(published))
    bundle = base64.b64encode(AUTHORITY.certificate).decode()
    options = ["--kubeconfig", kubeconfig, "--directory", tmp_path, "--health-port", "0", "--interval", "0.1"]
    names = ["--service", "hook", "--namespace", "rel", "--mode", "existingSecret", "--ca-bundle", bundle]
    command = [sys.executable, "-m", "certs", "publish", *names, *map(str, options)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "(mode existingSecret)" in process.stderr.readline()
    while not (written := [asked for asked in server.asked if asked.method == "PATCH"]):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    process.stderr.close()
    assert written[0].json()["webhooks"] == [{"name": "pods", "clientConfig": {"caBundle": bundle}}]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "give --ca-bundle or --ca-file"),
        (("--ca-bundle", "?"), "not base64 of certificates"),
        (("--ca-bundle", "eHg="), "not base64 of certificates"),
    ],
)
def test_publish_without_an_authority_is_an_error_in_words(
    kubeconfig: Path, tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    names = ("--service", "hook", "--namespace", "rel", "--kubeconfig", kubeconfig, "--directory", tmp_path)
    done = invoke("publish", *names, "--mode", "existingSecret", *options)
    assert (done.exit_code, text in done.output) == (2, True)


def test_a_file_of_authorities_is_read_whenever_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    given = given_by("", path)
    assert given() == ()
    path.write_bytes(AUTHORITY.certificate)
    assert given() == (AUTHORITY.certificate,)
    path.write_bytes(b"half a cert")
    assert given() == ()


def test_line_breaks_in_a_bundle_do_not_matter() -> None:
    assert given_by(base64.encodebytes(NEXT.certificate).decode(), None)() == (NEXT.certificate,)


def test_what_cannot_be_printed_is_one_line():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "certs", "issue", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot be written" in done.stderr
    assert "No space left on device" in done.stderr
