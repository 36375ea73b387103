"""Runs between fork and a container's program: gives it its mounts, in a mount namespace of its own.

Called as `unshare --mount python container.py SPEC`, SPEC a JSON file: {"command", "environment",
"mounts": {path in the container: folder of this machine}}. The root file system becomes read-only, as the chart
has it; paths below /run are made on a fresh file system there.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Mount, and become the program."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    mount("--make-rprivate", "/")
    # Held open: /tmp, where the folders may be, is about to be covered.
    held = {path: os.open(folder, os.O_PATH | os.O_DIRECTORY) for path, folder in spec["mounts"].items()}
    mount("-t", "tmpfs", "tmpfs", "/run")
    for path, descriptor in sorted(held.items()):
        if path.startswith("/run/"):
            os.makedirs(path, exist_ok=True)
        mount("--bind", f"/proc/{os.getpid()}/fd/{descriptor}", path)
    mount("-o", "remount,bind,ro", "/")
    os.chdir("/")
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


main()
