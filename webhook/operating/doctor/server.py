"""Checks of the API server: its version, its clock, and those of its siblings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from webhook.cluster.door import STORAGE_CLASSES
from webhook.cluster.reader import time_left
from webhook.core.shapes import inside, text
from webhook.operating.doctor.lines import Line, fail, ok, skip, warn
from webhook.operating.doctor.patient import LEASES, Patient

# The oldest minor version that the chart installs on, the first with the floor, and the last that it was tried with.
OLDEST: Final = 30
WITH_FLOOR: Final = 36
TRIED: Final = 36
# Seconds. Beyond the first a difference is worth knowing, beyond the clock allowance it is unsafe.
NOTABLE: Final = 5.0
# An API server renews its own Lease every 10 s.
RENEWAL: Final = 15.0
API_SERVERS: Final = {"apiserver.kubernetes.io/identity": "kube-apiserver"}


def version(patient: Patient) -> Iterator[Line]:
    """Whether this version of Kubernetes is one that we know."""
    about = patient.connection.about
    if about is None:
        yield skip("API server", "this is a dump")
        return
    told = about.version(time_left(patient.connection.deadline))
    name = text(told.get("gitVersion")) or "of an unknown version"
    minor = text(told.get("minor")).rstrip("+")
    if text(told.get("major")) != "1" or not minor.isdigit():
        yield warn("API server", f"reachable, {name}", "compare it with the versions in docs/upgrading.md")
    elif int(minor) < OLDEST:
        yield fail("API server", f"{name} is older than 1.{OLDEST}", f"upgrade Kubernetes to 1.{OLDEST} or later")
    elif int(minor) < WITH_FLOOR:
        yield ok("API server", f"reachable, {name}; the floor needs 1.{WITH_FLOOR}")
    elif int(minor) > TRIED:
        yield warn(
            "API server",
            f"{name} is newer than 1.{TRIED}, whose scheduler's filters are judged by",
            "look for a newer version of tidb-ha-webhook",
        )
    else:
        yield ok("API server", f"reachable, {name}")


def clock(patient: Patient) -> Iterator[Line]:
    """How far this machine's clock is from the API server's. Safety does not rest on it."""
    if patient.connection.on_dump:
        yield skip("clock", "this is a dump")
        return
    date = patient.reader.list(STORAGE_CLASSES, resource_version="0").date
    apart = abs(patient.clock() - date)
    if apart > NOTABLE:
        yield warn(
            "clock",
            f"this machine and the API server are {apart:.0f} s apart",
            "nothing of ours rests on this machine's clock, but logs will not agree: look at NTP on both",
        )
    else:
        yield ok("clock", "this machine agrees with the API server")


def siblings(patient: Patient) -> Iterator[Line]:
    """How far the clocks of the API servers are apart, by the times that they write into their Leases."""
    if patient.connection.on_dump:
        yield skip("API servers' clocks", "this is a dump")
        return
    listing = patient.reader.list(LEASES, namespace="kube-system", labels=API_SERVERS)
    ages = [listing.date - seconds for lease in listing.items if (seconds := _renewed(lease)) is not None]
    if len(ages) < 2:
        yield ok("API servers' clocks", f"{len(ages)} API server: nothing to compare")
        return
    # One that has just renewed and one that is about to are as far apart as a renewal is long.
    apart, allowed = max(0.0, max(ages) - min(ages) - RENEWAL), patient.connection.settings.clock_allowance
    if apart > allowed:
        yield fail(
            "API servers' clocks",
            f"{len(ages)} API servers are about {apart:.0f} s apart, more than --clock-allowance {allowed:g} s",
            "set their clocks (NTP), or raise --clock-allowance and --expiry: entries may be given up too early",
        )
    elif apart > NOTABLE:
        yield warn("API servers' clocks", f"{len(ages)} are about {apart:.0f} s apart", "set their clocks (NTP)")
    else:
        yield ok("API servers' clocks", f"{len(ages)} agree")


def _renewed(lease: object) -> float | None:
    try:
        renewed = datetime.fromisoformat(text(inside(lease, "spec", "renewTime")))
    except ValueError:
        return None
    return renewed.replace(tzinfo=renewed.tzinfo or UTC).timestamp()
