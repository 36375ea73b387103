"""Completion: of commands, flags and names, for shells and for kubectl; and the plugin that kubectl finds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from cluster_objects import SPACE, a_pod, a_v1_world
from operating.asked import dump, run
from stand import Stand

from webhook import cli
from webhook.cluster.door import NODES
from webhook.commands.completion import for_kubectl
from webhook.core.audited import ZONE


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    stand = Stand(*a_v1_world())
    stand.admit(a_pod())
    return dump(tmp_path / "dump.json", stand.cluster)


def completed(*words: str) -> list[str]:
    """What kubectl is told."""
    return for_kubectl(cli.main, words).splitlines()


def test_commands_and_flags_are_completed():
    assert completed("w") == ["why\tExplain one pod: what was decided, why, and what would be now.", ":4"]
    assert "--namespace" in "\n".join(completed("why", "--"))
    assert completed()[-1] == ":4"


def test_names_of_pods_and_nodes_are_completed(cluster: Path):
    where = ("--cluster", str(cluster), "-n", SPACE)

    assert completed("why", *where, "db-") == ["db-tikv-0", ":4"]
    assert completed("can-drain", "--cluster", str(cluster), "") == ["n1", "n2", "n3", ":4"]
    assert completed("can-drain", "--cluster", str(cluster), "n1", "n2") == ["n2", ":4"]


def test_steps_zones_and_namespaces_are_completed(tmp_path: Path):
    stand = Stand(*a_v1_world())
    stand.admit(a_pod())
    for node, zone in (("n1", "east"), ("n2", "east"), ("n3", "west")):
        stand.cluster.merge_patch(NODES, node, {"metadata": {"labels": {ZONE: zone}}}, timeout=1)
    where = ("--cluster", str(dump(tmp_path / "dump.json", stand.cluster)))

    assert completed("simulate", "lo") == ["lose-node:", "lose-zone:", ":4"]
    assert completed("simulate", *where, "lose-node:n") == ["lose-node:n1", "lose-node:n2", "lose-node:n3", ":4"]
    assert completed("simulate", *where, "lose-zone:w") == ["lose-zone:west", ":4"]
    assert completed("simulate", *where, "scale:") == [f"scale:{SPACE}/db-tikv=", ":4"]
    assert completed("can-drain", *where, "--zone", "") == ["east", "west", ":4"]
    for command in ("audit", "why"):
        assert completed(command, *where, "-n", "") == [SPACE, ":4"]


def test_contexts_of_the_kubeconfig_are_completed(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: b,"
        " clusters: [{name: c, cluster: {server: 'http://localhost'}}], users: [{name: u, user: {}}],"
        " contexts: [{name: b, context: {cluster: c, user: u}}, {name: a, context: {cluster: c, user: u}}]}"
    )

    assert completed("audit", "--kubeconfig", str(path), "--context", "") == ["a", "b", ":4"]
    path.write_text("[]")
    assert completed("audit", "--kubeconfig", str(path), "--context", "") == [":4"]


def test_without_a_kubeconfig_no_context_is_offered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", "/no/such")

    assert completed("audit", "--context", "") == [":4"]


def test_where_nobody_can_be_asked_nothing_is_offered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", "/no/such")

    assert completed("why", "db-") == [":4"]


def test_kubectl_is_answered_on_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-tidb_ha", "can-d"])

    cli.complete_for_kubectl()

    assert capsys.readouterr().out.startswith("can-drain\t")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str):
    result = run("completion", shell)

    assert result.exit_code == 0
    assert "_TIDB_HA_WEBHOOK_COMPLETE" in result.stdout


def test_the_scripts_that_kubectl_looks_for_are_installed():
    scripts = {entry.name: entry.value for entry in distribution("tidb-ha-webhook").entry_points}

    assert scripts["kubectl-tidb_ha"] == scripts["tidb-ha-webhook"]
    assert scripts["kubectl_complete-tidb_ha"] == "webhook.cli:complete_for_kubectl"


def test_the_plugin_runs_under_its_own_name():
    plugin = shutil.which("kubectl-tidb_ha", path=str(Path(sys.executable).parent))
    assert plugin is not None

    done = subprocess.run([plugin, "--version"], capture_output=True, text=True, check=True)

    assert done.stdout.split()[-1][0].isdigit()
