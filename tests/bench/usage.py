"""How much of the processors was used, and by whom (Linux, /proc)."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(groups: Collection[int]) -> float:
    """Processor time so far, in seconds, of all processes in these process groups that are there."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, which is in brackets and may hold anything: state, parent, group, …
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) in groups:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def machine_seconds() -> float:
    """Processor time so far, in seconds, that the whole machine spent on anything but waiting."""
    user, nice, system, _idle, _io_wait, interrupts, soft_interrupts, stolen = (
        int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + interrupts + soft_interrupts + stolen) / _TICKS
