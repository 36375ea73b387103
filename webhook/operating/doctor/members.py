"""Checks of the groups themselves: what the audit found, who holds others up, and what the records say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from webhook.cluster.door import ADVANCED_STATEFUL_SETS, CLAIMS, STATEFUL_SETS
from webhook.core import keys, ledger
from webhook.core.audited import GroupAudit
from webhook.core.findings import FindingKind
from webhook.core.groups import MEMBER_CLASSES
from webhook.core.model import Family, MemberClass, Placement
from webhook.core.shapes import inside, text, texts
from webhook.errors import NotFound
from webhook.operating.auditing import Row
from webhook.operating.doctor.lines import Line, fail, ok, skip, warn
from webhook.operating.doctor.patient import Patient
from webhook.operating.page import listed

# Nodes that Karpenter made; it moves pods to save some, and cannot where they are pinned.
KARPENTER: Final = "karpenter.sh/nodepool"


def groups(patient: Patient) -> Iterator[Line]:
    """What the audit says in short."""
    report = patient.report
    if report.all_well:
        yield ok("groups", report.summary)
    else:
        troubled = [str(row.group) for row in report.troubled] + [str(each.group) for each in report.unreadable]
        yield fail("groups", f"{report.summary}: {listed(troubled)}", "tidb-ha-webhook audit has the details")


def classes(patient: Patient) -> Iterator[Line]:
    """Sets that opted in by a class that is none: nobody knows how many of them may be together."""
    wrong: list[str] = []
    for resource in (STATEFUL_SETS, ADVANCED_STATEFUL_SETS):
        try:
            sets = patient.list(resource)
        except NotFound:
            continue
        for found in sets:
            labels = texts(inside(found, "spec", "template", "metadata", "labels"))
            value = labels.get(keys.CLASS_LABEL)
            # The operator's own labels go before the class.
            by_operator = labels.get(keys.V1_MANAGED_BY) == keys.TIDB_OPERATOR and labels.get(keys.V1_COMPONENT)
            if value is not None and value not in tuple(MemberClass) and by_operator not in MEMBER_CLASSES:
                name, namespace = (text(inside(found, "metadata", part)) for part in ("name", "namespace"))
                wrong.append(f'{namespace}/{name} ("{value}")')
    if wrong:
        right = " or ".join(MemberClass)
        yield fail(
            "classes",
            f"{listed(wrong)} opted in by a class that is none: only guarded, and audited as a quorum",
            f"set the label {keys.CLASS_LABEL} of the pod template to {right}",
        )
    else:
        yield ok("classes", "every set that opted in has a class that is known")


def strangers(patient: Patient) -> Iterator[Line]:
    """Members that nobody asked us about."""
    names = _members(patient, lambda audited: audited.never_passed)
    if names:
        yield warn(
            "members",
            f"{len(names)} never passed us: {listed(names)}",
            "they were created before the webhook or while it was away; the audit shows whether it matters",
        )
    else:
        there = any(row.audited.members for row in patient.report.rows)
        yield ok("members", "all have passed us") if there else skip("members", "there are none")


def guards(patient: Patient) -> Iterator[Line]:
    """Running members that keep others off."""
    names = _members(patient, lambda audited: audited.guarded_running)
    if names:
        yield warn(
            "guarded and running",
            f"{listed(names)} keep others off their nodes for as long as they live",
            "re-create them one at a time when all members run: kubectl delete pod",
        )
    else:
        yield ok("guarded and running", "none")


def isolation(patient: Patient) -> Iterator[Line]:
    """Where what is said of TiKV hangs on something that could not be read."""
    names = [
        str(row.group)
        for row in patient.report.rows
        if any(finding.kind is FindingKind.ISOLATION_NOT_CHECKED for finding in row.findings)
    ]
    if names:
        yield warn(
            "PD's isolation",
            f"of {listed(names)} it is not known whether PD keeps copies apart: two stores lost together may hold two",
            "set location-labels in PD's configuration (host, and zone where there are zones)",
        )
    else:
        yield ok("PD's isolation", "no answer depends on location-labels of PD that could not be read")


def claims(patient: Patient) -> Iterator[Line]:
    """Groups without a claim to lock on."""
    if patient.connection.on_dump and not patient.list(CLAIMS):
        yield skip("lock claims", "the dump holds no claims")
        return
    placed = [found for found in patient.fleet.groups if found.snapshot.desired.replicas > 1]
    # Before the first pod there need be none: a set's controller makes them with the pods.
    without = [str(found.group) for found in placed if found.snapshot.pods and not found.snapshot.claims]
    if without:
        yield warn(
            "lock claims",
            f"{listed(without)} have no claim with the group's labels: their pods only ever get the guard",
            "use volumeClaimTemplates, or label the claims as the pods are",
        )
    else:
        yield ok("lock claims", "every group that is placed has one")


def records(patient: Patient) -> Iterator[Line]:
    """Entries that should have gone, that nobody can read, or that are of another time."""
    settings, timeless = patient.connection.settings, patient.connection.on_dump
    stale: list[str] = []
    unreadable: list[str] = []
    newer: list[str] = []
    future: list[str] = []
    for found in patient.fleet.groups:
        snapshot = found.snapshot
        recorded = ledger.read_records(snapshot.claims)
        carried = ledger.carried_tokens(snapshot.pods)
        name = str(found.group)
        # When a dump was made is not known.
        for entry in () if timeless else recorded.entries().values():
            if entry.time > snapshot.now + settings.clock_allowance:
                future.append(name)
            elif ledger.is_over(entry, carried, snapshot.now, settings.expiry, 0.0):
                stale.append(name)
        unreadable += [name] * len(recorded.unreadable)
        newer += [name] * len(recorded.newer)
    yield from _about(future, "dated in the future", "set the API servers' clocks (NTP)")
    yield from _about(unreadable, "that cannot be read", "nothing: the next decision replaces them")
    yield from _about(newer, "of a newer version", "finish the upgrade")
    if not (future or unreadable or newer):
        are = "1 is over, and goes" if len(stale) == 1 else f"{len(stale)} are over, and go"
        over = f"; {are} with the next decision of the group" if stale else ""
        yield ok("records", f"all can be read{over}")


def autoscalers(patient: Patient) -> Iterator[Line]:
    """Whether a pin holds up somebody who saves nodes."""
    made = {node.name for node in patient.fleet.nodes if KARPENTER in node.labels}
    held = [
        str(row.group)
        for row in patient.report.rows
        if row.audited.options.placement is Placement.PIN and _is_on(row, made)
    ]
    if held:
        yield warn(
            "autoscalers",
            f"Karpenter cannot move the pinned pods of {listed(held)}, nor save their nodes",
            "where it shall, set the option placement to Guard",
        )
    else:
        yield ok("autoscalers", "no member is pinned to a node of Karpenter's")


def _about(names: list[str], which: str, to_do: str) -> Iterator[Line]:
    if names:
        yield warn("records", f"{len(names)} {which}, of {listed(sorted(set(names)))}", to_do)


def _members(patient: Patient, which: Callable[[GroupAudit], tuple[str, ...]]) -> list[str]:
    found = (
        [f"{row.group.namespace}/{name}" for name in which(row.audited)]
        for row in patient.report.rows
        # A generic set may have opted in for its guard alone; what is its own to decide is not told of.
        if row.group.family is not Family.GENERIC or row.audited.options.placement is Placement.PIN
    )
    return list(chain.from_iterable(found))


def _is_on(row: Row, nodes: set[str]) -> bool:
    return any(member.node in nodes for member in row.audited.members)
