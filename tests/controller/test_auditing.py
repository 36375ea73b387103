"""The leader's audits over the embedded cluster: what is counted, what is said and when, and what is swept."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_objects import SPACE, a_generic_pod, a_pod, a_set, a_v1_world, generic_world, labels_v1, with_floor
from controller.standing import Leader
from stand import EXPIRY, Stand

from webhook.audit_metrics import AuditFigures
from webhook.cluster.door import CLAIMS, NODES, PODS, STATEFUL_SETS
from webhook.cluster.fleet import read_fleet
from webhook.cluster.reader import Reader
from webhook.controller import auditing
from webhook.controller.auditing import MOST_EVENTS, PERIOD, Auditing
from webhook.controller.duties import AllDuties
from webhook.controller.saying import AGAIN, Sayings
from webhook.core import keys
from webhook.core.audit import audit
from webhook.core.findings import findings
from webhook.core.objects import Pod
from webhook.deadline import Deadline
from webhook.errors import Forbidden
from webhook.events import Notice
from webhook.locking.sweeping import Sweep

THREE = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(3)]


@dataclass
class Shown:
    figures: AuditFigures | None = None
    claims: int = 0

    def audited(self, figures: AuditFigures | None) -> None:
        self.figures = figures

    def swept(self, claims: int) -> None:
        self.claims += claims


@dataclass
class Auditor:
    """Audits of a stand, on its clock."""

    stand: Stand
    shown: Shown = field(default_factory=Shown)
    notices: list[Notice] = field(default_factory=list)
    told: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        stand = self.stand
        sweep = Sweep(stand.store, stand.memory, EXPIRY)
        self.auditing = Auditing(
            auditing.Collaborators(
                read=lambda deadline: read_fleet(Reader(stand.door, deadline)),  # type: ignore[arg-type]
                sweep=sweep.run,
                figures=self.shown,
                notify=self.notices.append,
                tell=lambda pods: self.told.extend(pods),
                clock=stand.clock.monotonic,
                expiry=EXPIRY,
            )
        )

    def periods(self, number: int = 1) -> None:
        for _ in range(number):
            while not self.auditing.is_due():
                self.stand.clock.elapsed += 1
            self.auditing.turn()

    @property
    def reasons(self) -> list[str]:
        return [notice.reason for notice in self.notices]

    @property
    def figures(self) -> AuditFigures:
        assert self.shown.figures is not None
        return self.shown.figures


def test_rescue_is_told_of_every_member() -> None:
    auditor = Auditor(running("n1", "n2", "n3"))
    auditor.periods()
    assert sorted(pod.name for pod in auditor.told) == ["db-tikv-0", "db-tikv-1", "db-tikv-2"]


def running(*nodes: str, **world: Any) -> Stand:
    """Three stores that run there, whatever we would have said."""
    stand = Stand(*a_v1_world(**world))
    for pod, node in zip(THREE, nodes, strict=False):
        stand.cluster.admit(pod, namespace=SPACE)
        bind(stand, pod["metadata"]["name"], node)
    return stand


def bind(stand: Stand, name: str, node: str, *, ready: str = "True") -> None:
    stand.bind(name, node)
    stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": ready}]}})


def test_a_breach_is_seen_within_one_period_in_metrics_and_event() -> None:
    auditor = Auditor(running("n1", "n1", "n2"))
    auditor.periods()

    assert auditor.figures.groups == {"well": 0, "breached": 1, "unknown": 0}
    assert auditor.figures.findings["Stacked"] == 1
    (notice,) = auditor.notices
    assert (notice.reason, notice.owner.kind, notice.owner.name) == ("AuditStacked", "StatefulSet", "db-tikv")
    assert notice.message == ("shop/db/tikv: node n1 holds 2 members (db-tikv-0, db-tikv-1), at most 1 may be there")


def test_what_is_well_is_counted_and_not_said() -> None:
    auditor = Auditor(running("n1", "n2", "n3"))
    auditor.periods(3)

    assert auditor.figures.groups == {"well": 1, "breached": 0, "unknown": 0}
    assert auditor.notices == []
    assert {(margin.topology_key, margin.survives) for margin in auditor.figures.margins} == {
        ("kubernetes.io/hostname", 1)
    }


def test_what_goes_on_is_said_once_and_again_after_an_hour_and_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    stand = running("n1", "n1", "n2")
    auditor = Auditor(stand)
    auditor.periods(round(AGAIN / PERIOD))
    assert auditor.reasons == ["AuditStacked", "AuditNoMargin"]
    auditor.periods(2)
    assert auditor.reasons.count("AuditStacked") == 2

    stand.delete(PODS, "db-tikv-2")
    stand.cluster.admit(THREE[2], namespace=SPACE)
    bind(stand, "db-tikv-2", "n1")
    auditor.periods()
    assert "3 members" in auditor.notices[-1].message

    for number, pod in enumerate(THREE, start=1):
        stand.delete(PODS, pod["metadata"]["name"])
        stand.cluster.admit(pod, namespace=SPACE)
        bind(stand, pod["metadata"]["name"], f"n{number}")
    auditor.periods()
    assert "audit: shop/db/tikv: no longer Stacked" in caplog.messages


def test_a_member_that_is_restarted_makes_no_event() -> None:
    stand = running("n1", "n2", "n3")
    auditor = Auditor(stand)
    bind(stand, "db-tikv-0", "n1", ready="False")
    auditor.periods()
    bind(stand, "db-tikv-0", "n1")
    auditor.periods()
    bind(stand, "db-tikv-0", "n1", ready="False")
    auditor.periods()
    assert auditor.notices == []
    auditor.periods()
    assert auditor.reasons == ["AuditNoMargin"]


def test_one_audit_sends_so_many_events_and_the_next_ones_the_rest() -> None:
    stand = Stand()
    number = MOST_EVENTS + 5
    for index in range(number):
        for manifest in a_group_whose_nodes_are_gone(f"db{index:02}"):
            stand.cluster.create(
                {"StatefulSet": STATEFUL_SETS, "Pod": PODS, "Node": NODES}[manifest["kind"]],
                manifest,
                namespace=SPACE,
                timeout=1,
            )
    auditor = Auditor(stand)
    sent = []
    for _ in range(4):
        auditor.periods()
        sent.append(len(auditor.notices))
    # Two things are wrong with each.
    assert sent == [MOST_EVENTS, 2 * MOST_EVENTS, 2 * number, 2 * number]
    assert len(set(auditor.notices)) == 2 * number


def a_group_whose_nodes_are_gone(cluster: str) -> list[Any]:
    made = a_set("tikv", 3)
    made["metadata"]["name"] = f"{cluster}-tikv"
    labels = labels_v1("tikv", cluster)
    made["spec"]["selector"] = {"matchLabels": labels}
    made["spec"]["template"] = {"metadata": {"labels": labels}}
    pods = []
    for ordinal in range(3):
        pod = a_pod(f"{cluster}-tikv-{ordinal}", labels=labels)
        pod["metadata"]["ownerReferences"][0]["name"] = f"{cluster}-tikv"
        pod["spec"]["nodeName"] = "gone"
        pods.append(pod)
    return [made, *pods]


def test_a_group_of_which_too_little_is_known_is_counted() -> None:
    stand = running("n1", "n2", "n3")
    stand.delete(STATEFUL_SETS, "db-tikv")
    auditor = Auditor(stand)
    auditor.periods()
    assert auditor.figures.groups["unknown"] == 1


def test_trouble_is_said_once_and_the_last_figures_stay(caplog: pytest.LogCaptureFixture) -> None:
    stand = running("n1", "n2", "n3")
    auditor = Auditor(stand)
    auditor.periods()
    before = auditor.figures
    stand.door.fails("list pods", Forbidden("list", "pods", status=403))
    auditor.periods(3)
    assert auditor.figures is before
    assert [text for text in caplog.messages if text.startswith("no audit for now")] == [
        "no audit for now: list pods: 403"
    ]
    stand.door.before.clear()
    auditor.periods()
    stand.door.fails("list pods", Forbidden("list", "pods", status=403))
    auditor.periods()
    assert sum(text.startswith("no audit for now") for text in caplog.messages) == 2


def test_the_records_of_quiet_groups_are_counted_and_swept() -> None:
    stand = Stand(*a_v1_world())
    for pod in THREE:
        answer = stand.admit(pod)
        bind(stand, pod["metadata"]["name"], answer.node)
        claim = f"tikv-{pod['metadata']['name']}"
        stand.patch(CLAIMS, claim, {"spec": {"volumeName": claim}, "status": {"phase": "Bound"}})
    auditor = Auditor(stand)
    auditor.periods()
    assert auditor.figures.records > 0
    assert auditor.figures.oldest_record < 60
    assert auditor.shown.claims > 0
    assert stand.records() == {}
    auditor.periods()
    assert auditor.figures.records == 0


def test_no_sweep_begins_when_there_is_little_time() -> None:
    stand = Stand(*a_v1_world())
    for pod in THREE:
        stand.admit(pod)
        claim = f"tikv-{pod['metadata']['name']}"
        stand.patch(CLAIMS, claim, {"spec": {"volumeName": claim}, "status": {"phase": "Bound"}})
    stand.clock.elapsed += EXPIRY + 1
    stand.door.costs = 0.4
    auditor = Auditor(stand)
    auditor.auditing.turn()
    assert auditor.shown.figures is not None
    assert stand.records() != {}


def test_who_does_not_lead_any_more_shows_nothing() -> None:
    auditor = Auditor(running("n1", "n1", "n2"))
    auditor.periods()
    auditor.auditing.forget()
    assert auditor.shown.figures is None
    auditor.periods()
    assert auditor.reasons == ["AuditStacked", "AuditStacked"]


def test_guarded_pods_are_counted_by_what_they_do() -> None:
    stand = Stand(*a_v1_world())
    for pod in THREE[:2]:
        stand.cluster.admit(with_floor(a_pod(pod["metadata"]["name"])), namespace=SPACE)
    bind(stand, "db-tikv-0", "n1")
    auditor = Auditor(stand)
    auditor.periods()
    assert auditor.figures.guarded == {"running": 1, "waiting": 1}
    assert auditor.figures.findings["GuardedRunning"] == 1


def test_audits_and_rescue_take_turns() -> None:
    stand = running("n1", "n2", "n3")
    auditor, leader = Auditor(stand), Leader(stand)
    duties = AllDuties(leader.rescue, auditor.auditing)
    assert duties.turn()
    assert auditor.shown.figures is not None
    first = auditor.shown.figures
    assert not duties.turn()
    assert auditor.shown.figures is first
    stand.clock.elapsed += PERIOD
    assert duties.turn()
    assert auditor.shown.figures is not first
    duties.forget()
    assert auditor.shown.figures is None


def test_a_thing_that_comes_and_goes_is_no_news_before_it_has_stayed() -> None:
    sayings = Sayings(lambda: 0.0)
    subject = ("group", "kind")
    for _ in range(2):
        sayings.begin()
        assert not sayings.is_due(subject, "text", looks=2)
        assert sayings.end() == ()
        sayings.begin()
        assert sayings.end() == ()


def test_a_class_that_is_none_in_the_template_is_told_though_the_pods_have_another_still() -> None:
    stand = Stand(*generic_world())
    for ordinal in range(3):
        stand.bind(f"raft-{ordinal}", stand.admit(a_generic_pod(ordinal)).node)
    labels = {"app": "raft", keys.CLASS_LABEL: "quorm"}
    stand.patch(STATEFUL_SETS, "raft", {"spec": {"template": {"metadata": {"labels": labels}}}})
    fleet = read_fleet(Reader(stand.cluster, Deadline.after(9, stand.clock.monotonic)))
    said = [found.text for group in fleet.groups for found in findings(audit(group.snapshot))]
    assert any("quorm" in text for text in said)
