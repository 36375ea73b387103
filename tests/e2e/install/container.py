"""Runs between fork and a container's program: gives it its mounts, in a mount namespace of its own.

Called as `unshare --mount python container.py SPEC`, SPEC a JSON file: {"command", "environment",
"mounts": {path in the container: folder of this machine}, "program": [folders]}. The root file system becomes
read-only, as the chart has it; paths below /run are made on a fresh file system there. The folders of the program,
which an image would have, stay where they are, also below a mount.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Mount, and become the program."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "tmpfs", "/run")
    mounts: dict[str, str] = spec["mounts"]
    covered = [each for each in spec["program"] if any(each.startswith(f"{path}/") for path in mounts)]
    # /tmp, where the program and the folders may be, is about to be covered: all are bound elsewhere first.
    sources = {path: stashed(folder) for path, folder in {**mounts, **{each: each for each in covered}}.items()}
    for path in [*sorted(mounts), *sorted(covered)]:
        if path.startswith("/run/") or path in covered:
            os.makedirs(path, exist_ok=True)
        mount("--bind", sources[path], path)
    mount("-o", "remount,bind,ro", "/")
    os.chdir("/")
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


def stashed(folder: str) -> str:
    """The folder once more, at a path that no mount covers."""
    stash = tempfile.mkdtemp(dir="/run")
    mount("--bind", folder, stash)
    return stash


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


main()
