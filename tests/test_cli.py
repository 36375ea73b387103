"""The command line: help, variables, wrong values, exit codes; and that `serve` serves."""

from __future__ import annotations

import errno
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from dumps import a_cluster_with, a_set, pods_of_set, write

from webhook.cli import main
from webhook.commands import serve, variables
from webhook.commands.parameters import setting
from webhook.errors import DumpError, SettingsError, UnknownOutcome
from webhook.settings import Settings, variable

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]}))
    return path


def run(*arguments: str | Path, **variables: str) -> Result:
    """Run the command line as the shell would, without any variable of the machine's that we would read."""
    absent = {variable(field.name): None for field in fields(Settings)}
    environment = {**absent, "KUBERNETES_SERVICE_HOST": None, "KUBECONFIG": None, **variables}
    return CliRunner(env=environment).invoke(main, [str(argument) for argument in arguments])


def words(text: str) -> str:
    """Text without the line breaks and hyphenation of a help page."""
    return " ".join(text.split()).replace("- ", "-")


def test_help_says_what_it_is_for_and_names_the_commands():
    result = run("--help")

    assert result.exit_code == 0
    assert "off each other's nodes" in words(result.output)
    assert "serve" in result.output
    assert "TIDB_HA_LOG_FORMAT" in result.output


def test_without_a_command_the_help_is_shown():
    result = run()

    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_the_help_of_serve_names_every_setting_with_its_variable(name: str):
    text = words(run("serve", "--help").output)

    assert f"--{name.replace('_', '-')} " in text
    assert variable(name) in text


@pytest.mark.parametrize(
    "default",
    [
        "default: (localhost:8443; :8443 with TLS files)",
        "default: (localhost:8081; :8081 with TLS files)",
        "env var: TIDB_HA_WORKERS; default: 1]",
        "env var: TIDB_HA_THREADS; default: 64]",
        "env var: TIDB_HA_LOG_FORMAT; default: json]",
        "env var: TIDB_HA_DRAIN_SECONDS; default: (10 s)]",
        "env var: TIDB_HA_EXPIRY; default: (120 s)]",
        "env var: TIDB_HA_CLOCK_ALLOWANCE; default: (60 s)]",
        "env var: TIDB_HA_BUDGET_MARGIN; default: (1 s)]",
        "env var: TIDB_HA_OTHER_SCHEDULERS; default: (none)]",
        "default: (in a pod its service account, else kubectl's own rules)",
    ],
)
def test_the_help_of_serve_shows_the_defaults(default: str):
    assert default in words(run("serve", "--help").output)


def test_the_version_is_the_distributions():
    result = run("--version")

    assert result.exit_code == 0
    assert result.output.startswith("tidb-ha-webhook ") or result.output.startswith("main ")
    assert result.output.split()[-1][0].isdigit()


@pytest.mark.parametrize(
    ("arguments", "variables", "right"),
    [
        pytest.param(("--workers", "0"), {}, ("--workers 0", "from 1 to 32"), id="no worker"),
        pytest.param(("--workers", "two"), {}, ("--workers", "'two'", "integer"), id="workers in words"),
        pytest.param((), {"TIDB_HA_WORKERS": "two"}, ("TIDB_HA_WORKERS", "'two'", "integer"), id="variable in words"),
        pytest.param((), {"TIDB_HA_THREADS": "1"}, ("--threads 1", "from 2 to 1024"), id="variable out of range"),
        pytest.param(("--expiry", "soon"), {}, ("--expiry", "'soon'", "90s"), id="no length of time"),
        pytest.param(("--expiry", "-5"), {}, ("--expiry", "'-5'", "90s"), id="negative length of time"),
        pytest.param((), {"TIDB_HA_EXPIRY": "1d"}, ("TIDB_HA_EXPIRY", "'1d'", "1m30s"), id="days"),
        pytest.param(("--expiry", "1m"), {}, ("--expiry 60 s", "--clock-allowance 60 s", "at least 30 s"), id="expiry"),
        pytest.param(("--log-format", "xml"), {}, ("--log-format", "'xml'", "'json', 'text'"), id="log format"),
        pytest.param(("--bind", "8443"), {}, ("--bind 8443", "HOST:PORT"), id="no host"),
        pytest.param(("--bind", "0.0.0.0:1"), {}, ("--bind 0.0.0.0:1", "--tls-cert", "loopback"), id="plain HTTP"),
        pytest.param(("--tls-cert", "x.crt"), {}, ("--tls-cert x.crt", "--tls-key is missing"), id="half a pair"),
        pytest.param(("--cluster", "/no/such"), {}, ("--cluster", "/no/such", "does not exist"), id="no such dump"),
        pytest.param(
            (),
            {"TIDB_HA_KUBECONFIG": "/no/such"},
            ("TIDB_HA_KUBECONFIG", "/no/such", "does not exist"),
            id="kubeconfig",
        ),
        pytest.param((), {"TIDB_HA_IN_CLUSTER": "perhaps"}, ("TIDB_HA_IN_CLUSTER", "'perhaps'"), id="no yes or no"),
        pytest.param(
            ("--cluster", "."), {"TIDB_HA_IN_CLUSTER": "1"}, ("--in-cluster", "only one of"), id="two sources"
        ),
        pytest.param(("--leader",), {}, ("No such option", "--leader"), id="no such flag"),
        pytest.param(("now",), {}, ("unexpected extra argument",), id="argument"),
        pytest.param((), {"KUBECONFIG": "/no/such"}, ("no kubeconfig at /no/such", "--cluster FILE"), id="no cluster"),
        pytest.param(("--in-cluster",), {}, ("--in-cluster",), id="not in a pod"),
    ],
)
def test_a_wrong_value_is_one_clear_error(
    arguments: tuple[str, ...], variables: dict[str, str], right: tuple[str, ...]
):
    result = run("serve", *arguments, **variables)

    assert result.exit_code == 2
    error = words(result.output[result.output.index("Error: ") :])
    assert [word for word in right if word not in error] == []
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        pytest.param(
            (),
            {"TIDB_HA_BIND": "8443"},
            "--bind 8443: must be HOST:PORT with a port from 0 to 65535 (--bind is from the variable TIDB_HA_BIND)",
            id="variable",
        ),
        pytest.param(
            ("--bind", "8443"),
            {"TIDB_HA_BIND": "8444", "TIDB_HA_THREADS": "8"},
            "--bind 8443: must be HOST:PORT with a port from 0 to 65535",
            id="flag that goes before its variable",
        ),
        pytest.param(
            ("--clock-allowance", "60"),
            {"TIDB_HA_EXPIRY": "61", "TIDB_HA_BIND": ":1"},
            "it must leave at least 30 s (--expiry is from the variable TIDB_HA_EXPIRY)",
            id="one of two",
        ),
    ],
)
def test_a_wrong_value_that_came_from_a_variable_names_the_variable(
    arguments: tuple[str, ...], variables: dict[str, str], said: str
):
    result = run("serve", *arguments, **variables)

    assert result.exit_code == 2
    assert result.output.splitlines()[-1].endswith(said)


def test_a_certificate_named_by_a_variable_is_found_to_be_missing_and_the_variable_named(tmp_path: Path, dump: Path):
    named = {"TIDB_HA_TLS_CERT": str(tmp_path / "a.crt"), "TIDB_HA_TLS_KEY": str(tmp_path / "a.key")}

    result = run("serve", "--cluster", dump, **named)

    assert result.exit_code == 2
    last = result.output.splitlines()[-1]
    assert last.endswith("no such file; give a PEM file (--tls-cert is from the variable TIDB_HA_TLS_CERT)")


@pytest.mark.parametrize("command", ["serve", "plan"])
def test_a_file_that_cannot_be_opened_is_a_wrong_flag_as_one_that_is_not_there(tmp_path: Path, command: str):
    more = ("-f", "/proc/self/mem") if command == "plan" else ()

    results = [run(command, "--cluster", path, *more) for path in (tmp_path / "nowhere.yaml", "/proc/self/mem")]

    assert [result.exit_code for result in results] == [2, 2]
    assert "/proc/self/mem: Input/output error; give a file that is there" in results[1].stderr.splitlines()[-1]


# --- variables that nobody reads

MISSPELT = {"TIDB_HA_WORKRES": "2"}
WARNED = "TIDB_HA_WORKRES is no variable of this program; is TIDB_HA_WORKERS meant?"


def test_a_misspelt_variable_is_warned_of_with_what_is_meant(tmp_path: Path):
    result = run("plan", "--cluster", tmp_path / "nowhere", "-f", "-", **MISSPELT)

    assert result.stderr.splitlines()[0] == f"Warning: {WARNED}"


def test_serve_warns_of_a_misspelt_variable_in_its_log(tmp_path: Path):
    broken = tmp_path / "dump.yaml"
    broken.write_text("kind: [")

    result = run("serve", "--cluster", broken, **MISSPELT)

    first = json.loads(result.stderr.splitlines()[0])
    assert (first["level"], first["message"]) == ("warning", WARNED)


def test_who_completes_a_word_is_not_warned():
    found = ShellComplete(main, {}, "tidb-ha-webhook", "_X")

    result = CliRunner(env=MISSPELT).invoke(click.Command("x", callback=lambda: found.get_completions(["plan"], "--")))

    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    "name",
    [
        "TIDB_HA_WORKERS",
        "TIDB_HA_FILENAME",
        "TIDB_HA_CERTS_SERVICE",
        "TIDB_HA_WEBHOOK_SERVICE_HOST",
        "TIDB_HA_WEBHOOK_SERVICE_PORT",
        "TIDB_HA_WEBHOOK_SERVICE_PORT_HTTPS",
        "TIDB_HA_WEBHOOK_PORT",
        "TIDB_HA_WEBHOOK_PORT_443_TCP",
        "TIDB_HA_WEBHOOK_PORT_443_TCP_ADDR",
        "TIDB_HA_SERVICE_HOST",
        "MY_TIDB_HA_X",
    ],
)
def test_known_variables_and_those_of_a_service_are_not_warned_of(name: str):
    assert list(variables.unknown({name: "1"}, variables.known_to(main))) == []


def test_a_variable_that_is_near_to_none_is_only_named():
    assert list(variables.unknown({"TIDB_HA_QQQQQQ": ""}, ())) == ["TIDB_HA_QQQQQQ is no variable of this program"]
    assert variables.known_to(serve.command) >= {"TIDB_HA_BIND", "TIDB_HA_WORKERS"}


# --- output that cannot be written

ENTRY = "import sys; from webhook.cli import main, complete_for_kubectl; {}"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("serve", "--help"),
        ("plan", "--cluster", "{dump}", "-f", "{sets}"),
        ("plan", "--cluster", "{dump}", "-f", "{sets}", "-o", "json"),
        ("why", "db-tikv-0", "-n", "t1", "--cluster", "{dump}"),
        ("audit", "--cluster", "{dump}"),
        ("can-drain", "n1", "--cluster", "{dump}"),
        ("doctor", "--cluster", "{dump}"),
        ("completion", "bash"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_exit_code_1(tmp_path: Path, arguments: tuple[str, ...]):
    places = {
        "dump": write(tmp_path / "dump.json", *a_cluster_with(a_set(), *pods_of_set(a_set()))),
        "sets": write(tmp_path / "sets.json", a_set(replicas=4)),
    }
    command = [
        sys.executable,
        "-c",
        ENTRY.format("main(prog_name='x')"),
        *(each.format(**places) for each in arguments),
    ]

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "Error: what was to be printed or kept cannot be written: No space left on device"
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_completions_that_cannot_be_written_end_with_one_line_too():
    command = [sys.executable, "-c", ENTRY.format("complete_for_kubectl()"), "pl"]

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_another_error_of_the_system_shows_where_it_came_from():
    with command_that(PermissionError(errno.EPERM, "no")) as name:
        assert isinstance(run(name).exception, PermissionError)


def test_a_dump_that_cannot_be_used_is_one_line_and_exit_code_1(tmp_path: Path):
    broken = tmp_path / "dump.yaml"
    broken.write_text("kind: [")

    result = run("serve", "--cluster", broken)

    assert result.exit_code == 1
    last = result.output.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "dump.yaml" in last
    assert result.output.count("Error: ") == 1


def test_an_address_in_use_is_named(dump: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        result = run("serve", "--cluster", dump, "--bind", address, "--health-bind", "127.0.0.1:0")

    assert result.exit_code == 2
    assert f"Error: --bind {address}" in result.output


def test_a_flag_goes_before_its_variable_and_a_variable_before_the_default():
    @click.command()
    @setting("--threads", type=int)
    @setting("--expiry", type=float)
    @setting("--workers", type=int)
    def command(**parameters: Any) -> None:
        click.echo(json.dumps(parameters))

    result = CliRunner().invoke(
        command, ["--threads", "8"], env={"TIDB_HA_THREADS": "4", "TIDB_HA_EXPIRY": "200", "TIDB_HA_WORKERS": ""}
    )

    assert json.loads(result.output) == {"threads": 8, "expiry": 200.0, "workers": 1}


@contextmanager
def command_that(error: BaseException) -> Iterator[str]:
    """A command of the group that ends with an error, for as long as the block runs."""

    @click.command("broken")
    def command() -> None:
        raise error

    main.add_command(command)
    try:
        yield "broken"
    finally:
        del main.commands["broken"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        pytest.param(DumpError("dump.yaml: is empty"), 1, "Error: dump.yaml: is empty\n", id="error of ours"),
        pytest.param(UnknownOutcome("list", "pods"), 1, "Error: list pods: no answer\n", id="API"),
        pytest.param(SettingsError("--x 1: must\nbe 2"), 2, "Error: --x 1: must be 2\n", id="setting"),
    ],
)
def test_an_error_of_ours_is_one_line(error: Exception, code: int, line: str):
    with command_that(error) as name:
        result = run(name)

    assert (result.exit_code, result.output) == (code, line)


def test_an_interrupt_ends_as_shells_expect():
    with command_that(KeyboardInterrupt()) as name:
        assert run(name).exit_code == 130


def test_a_defect_of_ours_shows_its_traceback():
    with command_that(ZeroDivisionError()) as name:
        assert isinstance(run(name).exception, ZeroDivisionError)


def test_help_loads_neither_the_kubernetes_client_nor_the_servers():
    script = (
        "import sys; from webhook.cli import main; main(['serve', '--help'], standalone_mode=False);"
        "print('LOADED', sorted({'kubernetes', 'flask', 'gunicorn', 'prometheus_client'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "LOADED []"


class Server:
    """`serve` in a process of its own; `reviews` and `health` are its ports, `lines` its log."""

    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self.process = process
        self.log = log
        self.lines: list[str] = []
        for line in log:
            self.lines.append(line)
            if found := re.search(r"reviews at http://127.0.0.1:(\d+), health at http://127.0.0.1:(\d+)", line):
                self.reviews, self.health = int(found[1]), int(found[2])
                return
        raise AssertionError(f"it ended before it served: {self.lines}")

    def ask(self, port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def end(self) -> int:
        """Ask for the end, read the rest of the log, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.lines += self.log
        return self.process.wait(30)


@contextmanager
def serving(*arguments: str | Path) -> Iterator[Server]:
    script = "from webhook.cli import main; main(prog_name='tidb-ha-webhook')"
    command = [sys.executable, "-c", script, "serve", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield Server(process, process.stderr)
        finally:
            process.kill()


def test_serve_answers_reviews_probes_and_metrics_on_a_dump_until_it_is_told_to_end(dump: Path):
    request = {"uid": "u-1", "operation": "CREATE", "namespace": "t1", "object": {"metadata": {"name": "web-0"}}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    with serving(
        *("--cluster", dump, "--bind", "127.0.0.1:0", "--health-bind", "127.0.0.1:0"),
        *("--drain-seconds", "0"),
    ) as server:
        status, body = server.ask(server.reviews, "POST", "/mutate", json.dumps(review).encode())
        answers = [server.ask(server.health, "GET", path) for path in ("/livez", "/readyz", "/metrics")]
        code = server.end()

    assert (status, json.loads(body)["response"]) == (200, {"uid": "u-1", "allowed": True})
    assert [status for status, _ in answers] == [200, 200, 200]
    assert b'tidb_ha_webhook_http_responses_total{code="200"} 1.0' in answers[2][1]
    assert code == 0
    assert f"embedded cluster of {dump}" in server.lines[0]
    assert [line for line in server.lines if "level" not in json.loads(line)] == []
