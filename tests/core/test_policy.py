"""What options make of a decision, and what a pod's own fields leave of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import (
    LOCAL_VOLUMES,
    bound_claim,
    make_claim,
    make_desired,
    make_node,
    make_nodes,
    make_placing,
    make_pod,
    make_snapshot,
    make_volume,
    running_members,
)

from webhook.core import keys
from webhook.core.free_fields import NO_GUARD, NO_PIN, FreeFields
from webhook.core.model import Decision, Options, Placement, Placing, Snapshot, WhenUnplaceable
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome
from webhook.core.placement import decide
from webhook.core.policy import decide_by_options, nothing_to_decide, untouched, untouched_cause, when_unplaceable

OTHERS = ("custom",)
GUARD = {"placement": Placement.GUARD}
# One member already runs on n1, where the data of the pod to be placed is.
DATA_BESIDE_ANOTHER = {
    "claims": [bound_claim("on-n1")],
    "volumes": LOCAL_VOLUMES,
    "pods": running_members("n1"),
}


def snapshot(replicas: int = 3, options: Any = None, **parts: Any) -> Snapshot:
    return make_snapshot(desired=make_desired(replicas, **(options or {})), **parts)


def limited(**left: Any) -> Placing:
    return replace(make_placing(), free_fields=FreeFields(**left))


def brief(decision: Decision) -> tuple[Outcome, Cause, str, str]:
    return decision.outcome, decision.cause, decision.node, decision.domain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"annotations": {keys.MIRROR_POD: "x"}, "node_name": "n1"}, "mirror"),
        ({"node_name": "n1"}, "has a node"),
        ({"name": ""}, "name is made after"),
    ],
    ids=["member", "mirror", "node", "no name"],
)
def test_nothing_is_decided_about_a_pod_that_runs_or_has_no_name(changes: dict[str, Any], said: str) -> None:
    why = nothing_to_decide(replace(make_pod(), **changes))
    assert said in why
    assert bool(why) == bool(said)


@pytest.mark.parametrize(
    ("pod", "own", "cause"),
    [
        (make_pod(), Options(), None),
        (make_pod(), Options(skip=True), Cause.SKIP_OPTION),
        (make_pod(scheduler_name="tidb-scheduler"), Options(), Cause.TIDB_SCHEDULER),
        (make_pod(scheduler_name="tidb-scheduler"), Options(skip=True), Cause.SKIP_OPTION),
        (make_pod(scheduler_name="custom"), Options(placement=Placement.GUARD), None),
    ],
    ids=["member", "skip", "tidb-scheduler", "both", "another scheduler"],
)
def test_a_pod_is_left_alone_for_skip_and_for_tidb_scheduler(pod: Pod, own: Options, cause: Cause | None) -> None:
    assert untouched_cause(pod, own) is cause


def test_without_options_the_rule_alone_decides() -> None:
    given = snapshot()
    assert decide_by_options(given, make_placing(), OTHERS) == decide(given, make_placing())


def test_skip_leaves_a_pod_untouched_and_names_the_groups_topology_key() -> None:
    decision = decide_by_options(
        snapshot(options={"skip": True, "topology_key": "zone", "problems": ("p",)}), make_placing()
    )
    assert decision == Decision(Outcome.UNTOUCHED, Cause.SKIP_OPTION, topology_key="zone", problems=("p",))


@pytest.mark.parametrize(
    ("options", "name"), [({"skip": True}, "skip"), (GUARD, "placement")], ids=["skip", "placement"]
)
def test_the_object_that_has_the_option_is_named(options: dict[str, Any], name: str) -> None:
    decision = decide_by_options(snapshot(options={**options, "set_by": {name: "annotation x of y"}}), make_placing())
    assert decision.detail == "annotation x of y"


def test_a_member_that_is_left_alone_for_another_reason_names_no_option() -> None:
    own = Options(skip=True, set_by={"skip": "annotation x of the pod"})
    assert untouched(Cause.SKIP_OPTION, own).detail == "annotation x of the pod"
    assert untouched(Cause.TIDB_SCHEDULER, own).detail == ""


@pytest.mark.parametrize(
    ("options", "changes", "cause"),
    [
        (GUARD, {}, Cause.GUARD_OPTION),
        ({}, {"scheduler_name": "custom"}, Cause.OTHER_SCHEDULER),
        (GUARD, {"scheduler_name": "custom"}, Cause.OTHER_SCHEDULER),
    ],
    ids=["option", "scheduler", "both"],
)
class TestWithoutAPin:
    def test_a_pod_that_could_be_pinned_is_guarded(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        decision = decide_by_options(snapshot(options=options), make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.GUARDED, cause, "", "")
        assert (decision.hostname, decision.guard_too, decision.detail, decision.cap) == ("", False, "", 1)

    def test_a_pod_without_a_safe_node_keeps_its_reasons_under_the_cause_that_was_asked_for(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        given = snapshot(options=options, nodes=make_nodes(1), pods=running_members("n1"))
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.GUARDED, cause, "", "")
        assert decision.passed_over.keys() == {"n1"}
        assert "n1 holds 1" in decision.detail

    def test_a_member_whose_data_is_beside_another_is_left_to_its_volume(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        given = snapshot(options=options, **DATA_BESIDE_ANOTHER)
        assert decide(given, make_placing(**changes)).outcome is Outcome.RETURNED
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.RETURNED_WAITING, cause, "", "n1")

    def test_so_is_one_within_the_cap(self, options: dict[str, Any], changes: dict[str, Any], cause: Cause) -> None:
        given = snapshot(replicas=6, options={**options, "min_domains": 1}, **DATA_BESIDE_ANOTHER)
        assert decide(given, make_placing(**changes)).outcome is Outcome.PINNED
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.RETURNED_WAITING, cause, "", "n1")

    def test_a_member_whose_data_is_alone_on_its_node_is_guarded(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        given = snapshot(options=options, claims=[bound_claim("on-n1")], volumes=LOCAL_VOLUMES)
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.GUARDED, cause, "", "")

    def test_a_member_whose_volume_goes_anywhere_is_guarded_though_it_would_join_another(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        given = snapshot(
            replicas=6,
            options={**options, "min_domains": 1},
            nodes=make_nodes(1),
            claims=[bound_claim("network")],
            volumes=[make_volume("network")],
            pods=running_members("n1"),
        )
        assert brief(decide(given, make_placing(**changes)))[::2] == (Outcome.PINNED, "n1")
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.GUARDED, cause, "", "")

    def test_a_member_that_waits_for_its_node_goes_on_waiting_for_that_reason(
        self, options: dict[str, Any], changes: dict[str, Any], cause: Cause
    ) -> None:
        nodes = (make_node("n1", unschedulable=True), *make_nodes(3)[1:])
        given = snapshot(options=options, nodes=nodes, claims=[bound_claim("on-n1")], volumes=LOCAL_VOLUMES)
        decision = decide_by_options(given, make_placing(**changes), OTHERS)
        assert brief(decision) == (Outcome.RETURNED_WAITING, Cause.NONE, "", "n1")
        assert "unschedulable" in decision.detail

    def test_a_set_of_one_is_untouched(self, options: dict[str, Any], changes: dict[str, Any], cause: Cause) -> None:
        decision = decide_by_options(snapshot(1, options), make_placing(**changes), OTHERS)
        assert (decision.outcome, decision.cause) == (Outcome.UNTOUCHED, Cause.SET_OF_ONE)


# What the pod's own fields leave


@pytest.mark.parametrize(
    ("left", "outcome", "detail"),
    [
        ({"pin": False}, Outcome.PINNED, None),
        ({"hostname": False}, Outcome.PINNED, None),
        ({"pin": False, "hostname": False}, Outcome.GUARDED, NO_PIN),
        ({"guards": frozenset()}, Outcome.PINNED, None),
    ],
    ids=["by its host's label", "by its affinity", "neither", "cannot be guarded and need not be"],
)
def test_a_pod_is_pinned_as_far_as_its_own_fields_allow(
    left: dict[str, Any], outcome: Outcome, detail: str | None
) -> None:
    decision = decide_by_options(snapshot(), limited(**left))
    assert decision.outcome is outcome
    if detail:
        assert (decision.cause, decision.detail) == (Cause.REQUESTER_FIELDS, detail)


def test_a_node_whose_hostname_label_is_not_its_own_alone_is_no_way_to_pin() -> None:
    twins = tuple(make_node(name, labels={keys.HOSTNAME: "same"}) for name in ("n1", "n2"))
    decision = decide_by_options(snapshot(nodes=twins), limited(pin=False))
    assert (decision.outcome, decision.cause) == (Outcome.GUARDED, Cause.REQUESTER_FIELDS)


@pytest.mark.parametrize(
    ("guards", "outcome"),
    [
        (None, Outcome.PINNED),
        (frozenset({keys.HOSTNAME}), Outcome.PINNED),
        (frozenset({"zone"}), Outcome.GUARDED),
        (frozenset(), Outcome.GUARDED),
    ],
    ids=["free", "covered", "covered by another key", "not covered"],
)
def test_a_pod_that_needs_the_guard_beside_its_pin_must_be_able_to_hold_it(
    guards: frozenset[str] | None, outcome: Outcome
) -> None:
    given = snapshot(pods=[make_pod("db-tikv-1")])
    assert decide(given, make_placing()).guard_too
    decision = decide_by_options(given, limited(guards=guards))
    assert decision.outcome is outcome
    if outcome is Outcome.GUARDED:
        assert (decision.cause, decision.detail, decision.guard_too) == (Cause.REQUESTER_FIELDS, NO_GUARD, False)


def test_a_member_that_returns_and_cannot_be_pinned_is_left_to_its_volume() -> None:
    decision = decide_by_options(snapshot(**DATA_BESIDE_ANOTHER), limited(pin=False, hostname=False))
    assert brief(decision) == (Outcome.RETURNED_WAITING, Cause.REQUESTER_FIELDS, "", "n1")


def test_its_own_fields_have_no_say_where_there_is_no_pin() -> None:
    given = snapshot(nodes=make_nodes(1), pods=running_members("n1"))
    assert decide_by_options(given, limited(pin=False, hostname=False)).cause is Cause.NO_SAFE_NODE


def test_a_claim_that_the_label_does_not_find_ties_its_member_too() -> None:
    hidden = make_claim("tikv-db-tikv-0", labels={}, volume_name="on-n1")
    given = snapshot(options=GUARD, volumes=LOCAL_VOLUMES, pods=running_members("n1"), claims=[hidden])
    listed = tuple(claim for claim in given.claims if claim.name != hidden.name)
    decision = decide_by_options(replace(given, claims=listed), make_placing())
    assert decision.outcome is Outcome.RETURNED_WAITING


# when-unplaceable


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.GUARDED], ids=str)
@pytest.mark.parametrize("chosen", list(WhenUnplaceable), ids=str)
def test_an_answer_stays_whatever_its_user_chose_for_want_of_one(outcome: Outcome, chosen: WhenUnplaceable) -> None:
    decision = Decision(outcome, Cause.NO_SAFE_NODE)
    assert when_unplaceable(decision, Options(when_unplaceable=chosen)) is decision


@pytest.mark.parametrize("cause", list(Cause), ids=lambda cause: cause.name)
@pytest.mark.parametrize(
    ("chosen", "outcome"),
    [
        (WhenUnplaceable.GUARD, Outcome.GUARDED),
        (WhenUnplaceable.DENY, Outcome.DENIED),
        (WhenUnplaceable.ADMIT, Outcome.ADMITTED),
    ],
)
def test_a_guard_for_want_of_an_answer_is_what_its_user_chose(
    cause: Cause, chosen: WhenUnplaceable, outcome: Outcome
) -> None:
    asked_for = cause in (Cause.GUARD_OPTION, Cause.OTHER_SCHEDULER)
    decision = when_unplaceable(Decision(Outcome.GUARDED, cause), Options(when_unplaceable=chosen))
    assert decision == Decision(Outcome.GUARDED if asked_for else outcome, cause)


@pytest.mark.parametrize("chosen", list(WhenUnplaceable), ids=str)
def test_a_guard_in_trouble_is_what_a_pod_with_placement_guard_asked_for(chosen: WhenUnplaceable) -> None:
    decision = Decision(Outcome.GUARDED, Cause.API_TROUBLE)
    in_force = Options(placement=Placement.GUARD, when_unplaceable=chosen)
    assert when_unplaceable(decision, in_force).outcome is Outcome.GUARDED
