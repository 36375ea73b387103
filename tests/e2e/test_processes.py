"""No child outlives the tests, and a component that cannot start says why."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.processes import Child, ChildError
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

# Starts a child, and then waits for its own end.
PARENT = """
import signal, sys, time
from pathlib import Path
from e2e.processes import Child
# A shell that runs the tests in the background has told them to ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
child = Child("sleeper", ["sleep", "600"], Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda end: end.name)
def test_a_child_ends_when_its_parent_is_ended(tmp_path: Path, end: signal.Signals) -> None:
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        # Past the wrapper, which carries the request to end into the program.
        wait_until(lambda: _command(child).startswith("sleep"), "the child's own program", 10)

        parent.send_signal(end)
        parent.wait()

    wait_until(lambda: not _command(child), "the child to end", 10)


def test_a_component_that_cannot_start_shows_its_last_words_and_takes_the_others_with_it(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, scheduler_flags=["--no-such-flag"])

    with pytest.raises(ChildError, match=r"kube-scheduler ended(?s:.*)unknown flag: --no-such-flag"), plane:
        pass

    assert not any(child.running for child in plane.children)


def test_a_child_that_does_not_become_ready_is_reported_with_its_log(tmp_path: Path) -> None:
    child = Child("slow", ["sh", "-c", "echo still busy; exec sleep 600"], tmp_path / "log")
    child.start()
    try:
        wait_until(lambda: "busy" in child.last_lines(), "its first line", 10)
        with pytest.raises(ChildError, match=r"waited 0.1 s for slow to become ready(?s:.*)still busy"):
            child.wait_ready(lambda: False, 0.1)
    finally:
        child.stop()
    assert not child.running


def test_two_api_servers_on_one_etcd_serve_the_same_objects_and_one_survives_the_other(tmp_path: Path) -> None:
    with (
        ControlPlane(tmp_path, apiservers=2) as plane,
        Api(plane.urls[0], plane.token, plane.files.ca) as first,
        Api(plane.urls[1], plane.token, plane.files.ca) as second,
    ):
        first.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}})

        plane.kill_apiserver(0)

        assert second.get("Namespace", "shared")["metadata"]["name"] == "shared"


def _command(pid: int) -> str:
    """The command line of a process, empty when it has ended (or is a zombie)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
