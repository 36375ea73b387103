"""The commands of the README, to be run as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from e2e.control_plane import ControlPlane, components

README: Final = Path(__file__).parents[2] / "README.md"


def documented(*beginnings: str) -> str:
    """The lines of the README's commands that begin so, in the README's order, without their comments."""
    found = [command for command in _commands() if command.startswith(beginnings)]
    missing = [begin for begin in beginnings if not any(command.startswith(begin) for command in found)]
    if missing:
        raise AssertionError(f"the README has no command that begins with {missing}")
    return "\n".join(found)


def _commands() -> list[str]:
    """Every command of the README's indented blocks; one whose line ends in | or \\ goes on in the next."""
    commands, goes_on = [], False
    for line in README.read_text().splitlines():
        if not line.startswith("    "):
            continue
        text = line.strip().partition("  #")[0].strip()
        if goes_on:
            commands[-1] += f"\n{text}"
        else:
            commands.append(text)
        goes_on = text.endswith(("|", "\\"))
    return commands


def shell(
    control_plane: ControlPlane, commands: str, directory: Path, **replaced: str
) -> subprocess.CompletedProcess[str]:
    """Run commands in a directory as the administrator, with words of theirs replaced."""
    for word, other in {**replaced, ".venv/bin/": ""}.items():
        commands = commands.replace(word, other)
    path = f"{components.binary('kubectl').parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(control_plane.kubeconfig)}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", commands],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
