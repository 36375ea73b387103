"""Helm, as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.control_plane import components

CHART = Path(__file__).resolve().parents[3] / "charts" / "tidb-ha-webhook"
MAJORS = (3, 4)


def missing() -> str:
    """Which Helm is missing and what to do about it; empty when both are there."""
    names = [f"helm{major}" for major in MAJORS if not os.access(components.BUILT / f"helm{major}", os.X_OK)]
    return f"no {', '.join(names)}: run `tests/e2e/control_plane/build.sh helm` first" if names else ""


class HelmError(Exception):
    """Helm ended with an error; the text is what it said."""


class Helm:
    """One major version of Helm; a kubeconfig is needed for all but rendering."""

    def __init__(self, major: int, home: Path, kubeconfig: Path | None = None) -> None:
        self.major = major
        self._home = home
        self._kubeconfig = kubeconfig

    def run(self, *arguments: str | Path, values: Mapping[str, Any] | None = None, timeout: float = 240) -> str:
        """Run a command; what it printed."""
        command: list[str] = [str(components.BUILT / f"helm{self.major}"), *map(str, arguments)]
        if values is not None:
            command.append("--values=-")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._home)}
        if self._kubeconfig is not None:
            environment["KUBECONFIG"] = str(self._kubeconfig)
        done = subprocess.run(
            command,
            input=None if values is None else json.dumps(values),
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise HelmError(f"helm{self.major} {arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout
