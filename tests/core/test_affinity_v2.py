"""Pods of tidb-operator v2, which are applied again and again: fields that the requester set stay as they are."""

from __future__ import annotations

from typing import Any

import pytest
from core.pods import (
    HOSTNAME,
    V1,
    V2,
    WAITING,
    ZONE,
    a_guard,
    a_pin,
    a_pod,
    annotations_of,
    anti_terms,
    exists,
    guard,
    in_zone,
    node_terms,
    patched,
    pinned_to,
    required_anti_terms,
    required_node_terms,
    strictly_applied,
    with_floor,
)

from webhook.core import affinity, keys
from webhook.core.affinity import PatchError, free_fields_of, patch_for
from webhook.core.free_fields import FreeFields
from webhook.core.guard import keeps_off_group
from webhook.core.model import Decision, Group
from webhook.core.outcomes import Cause, Outcome

OWN_AFFINITY = node_terms(in_zone("a"))
FOREIGN = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "other"}}}
COMPONENT = {"labelSelector": {"matchLabels": {"pingcap.com/component": "tikv"}}}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(), id="bare"),
        pytest.param(a_pod(node_selector={ZONE: "a"}), id="EvenlySpread"),
        pytest.param(a_pod(affinity=anti_terms(FOREIGN)), id="own anti-affinity"),
    ],
)
@pytest.mark.parametrize("floor", [False, True], ids=["no floor", "floor"])
def test_the_pin_is_node_affinity_where_the_pod_has_none_of_its_own(pod: dict[str, Any], floor: bool) -> None:
    after = patched(with_floor(pod, V2) if floor else pod, a_pin(), V2)
    assert required_node_terms(after) == [{"matchFields": [pinned_to("n1")]}]
    assert required_anti_terms(after) == required_anti_terms(pod)
    assert after["spec"].get("nodeSelector") == pod["spec"].get("nodeSelector")


@pytest.mark.parametrize("selector", [None, {}], ids=["none", "empty"])
def test_the_pin_is_a_node_selector_where_only_that_is_free(selector: Any) -> None:
    pod = a_pod(affinity=OWN_AFFINITY, node_selector=selector)
    result = patch_for(pod, V2, a_pin(), "t")
    after = strictly_applied(pod, result)
    assert after["spec"]["nodeSelector"] == {HOSTNAME: "host-n1"}
    assert after["spec"]["affinity"] == OWN_AFFINITY
    assert annotations_of(after)[keys.ASSIGNED_NODE] == "n1"
    assert result.outcome is Outcome.PINNED


def test_a_node_selector_pin_is_recognised_replaced_and_taken_away() -> None:
    pod = a_pod(affinity=node_terms({"matchFields": [pinned_to("n1")]}))
    once = patched(pod, a_pin("n1"), V2)
    assert patch_for(once, V2, a_pin("n1"), "t0k3n").operations == []
    again = patched(once, a_pin("n2"), V2)
    assert again["spec"]["nodeSelector"] == {HOSTNAME: "host-n2"}
    back = patched(again, WAITING, V2)
    assert back["spec"] == pod["spec"]


@pytest.mark.parametrize(
    ("pod", "decision"),
    [
        pytest.param(a_pod(affinity=OWN_AFFINITY, node_selector={"disk": "ssd"}), a_pin(), id="own nodeSelector"),
        pytest.param(a_pod(affinity=OWN_AFFINITY), a_pin(hostname=""), id="hostname not unique"),
    ],
)
def test_the_guard_takes_the_place_of_a_pin_that_the_pods_fields_leave_no_room_for(
    pod: dict[str, Any], decision: Decision
) -> None:
    result = patch_for(pod, V2, decision, "t")
    after = strictly_applied(pod, result)
    assert (result.outcome, result.decision.cause) == (Outcome.GUARDED, Cause.REQUESTER_FIELDS)
    assert result.refused is None
    assert required_anti_terms(after) == [guard(V2)]
    assert required_node_terms(after) == required_node_terms(pod)
    assert annotations_of(after).keys() == {keys.DECISION, keys.GUARD}


def test_a_member_that_returns_and_cannot_be_pinned_is_held_by_its_volume_alone() -> None:
    pod = a_pod(affinity=OWN_AFFINITY, node_selector={"disk": "ssd"})
    result = patch_for(pod, V2, a_pin(outcome=Outcome.RETURNED), "t")
    assert (result.outcome, result.decision.cause) == (Outcome.RETURNED_WAITING, Cause.REQUESTER_FIELDS)
    assert result.patched["spec"] == pod["spec"]


@pytest.mark.parametrize("floor", [False, True], ids=["no floor", "floor"])
def test_the_guard_without_fields_of_the_requesters_has_both_halves(floor: bool) -> None:
    pod = with_floor(a_pod(), V2) if floor else a_pod()
    after = patched(pod, a_guard(), V2)
    assert required_anti_terms(after) == [guard(V2)]
    assert required_node_terms(after) == [{"matchExpressions": [exists()]}]


@pytest.mark.parametrize("floor", [False, True], ids=["no floor", "floor"])
@pytest.mark.parametrize("own", [OWN_AFFINITY, node_terms({"matchExpressions": [exists()]})], ids=["zone", "exists"])
def test_the_guard_leaves_the_requesters_node_affinity_alone(own: Any, floor: bool) -> None:
    pod = with_floor(a_pod(affinity=own), V2) if floor else a_pod(affinity=own)
    after = patched(pod, a_guard(), V2)
    assert required_anti_terms(after) == [guard(V2)]
    assert after["spec"]["affinity"]["nodeAffinity"] == own["nodeAffinity"]
    assert patch_for(after, V2, a_guard(), "t0k3n").operations == []


def test_nothing_is_added_where_its_own_anti_affinity_covers_the_group() -> None:
    own = {"topologyKey": HOSTNAME, **COMPONENT}
    pod = a_pod(affinity=anti_terms(own))
    result = patch_for(pod, V2, a_guard(), None)
    assert result.outcome is Outcome.GUARDED
    assert result.patched["spec"] == pod["spec"]
    assert annotations_of(result.patched).keys() == {keys.DECISION}


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(a_guard(Cause.BUSY), id="guard"),
        pytest.param(a_pin(guard_too=True), id="pin and guard"),
        pytest.param(a_pin(hostname=""), id="guard for want of a pin"),
    ],
)
def test_a_pod_that_can_be_kept_apart_in_no_way_is_refused(decision: Decision) -> None:
    pod = a_pod(affinity=anti_terms(FOREIGN) | OWN_AFFINITY)
    result = patch_for(pod, V2, decision, None)
    assert result.refused is Cause.REQUESTER_FIELDS
    assert (result.operations, result.patched) == ([], pod)
    assert (result.outcome, result.decision.cause) == (Outcome.DENIED, Cause.REQUESTER_FIELDS)
    assert "anti-affinity" in result.decision.detail


def test_a_list_that_holds_more_than_our_guard_is_the_requesters() -> None:
    pod = a_pod(affinity=anti_terms(guard(V2), FOREIGN), annotations={keys.GUARD: HOSTNAME})
    after = patched(pod, a_pin(), V2)
    assert required_anti_terms(after) == [guard(V2), FOREIGN]


def test_the_check_before_answering_finds_a_node_selector_that_is_wrong() -> None:
    pod, decision = a_pod(affinity=OWN_AFFINITY), a_pin()
    wrong = patched(pod, decision, V2)
    wrong["spec"]["nodeSelector"][HOSTNAME] = "host-n2"
    with pytest.raises(PatchError, match="changes more"):
        affinity._check(pod, wrong, wrong, V2, affinity._planned(pod, V2, decision))
    del wrong["spec"]["nodeSelector"]
    with pytest.raises(PatchError, match="does not pin the pod to the host host-n1"):
        affinity._check(pod, wrong, wrong, V2, affinity._planned(pod, V2, decision))


def selecting(*expressions: Any, **labels: str) -> dict[str, Any]:
    named = {f"pingcap.com/{key}": value for key, value in labels.items()}
    return {"labelSelector": {"matchLabels": named, "matchExpressions": list(expressions)}}


def expression(operator: str, *values: str, key: str = "pingcap.com/component") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("term", "covers"),
    [
        pytest.param(selecting(component="tikv"), True, id="fewer labels"),
        pytest.param(selecting(component="tikv", cluster="db"), True, id="the group's labels"),
        pytest.param(selecting(), True, id="everything"),
        pytest.param(selecting(component="pd"), False, id="another component"),
        pytest.param(selecting(component="tikv", group="a"), False, id="a part of the group"),
        pytest.param({"labelSelector": None}, False, id="no selector"),
        pytest.param({}, False, id="selector missing"),
        pytest.param(selecting(expression("In", "tikv", "pd")), True, id="In"),
        pytest.param(selecting(expression("In", "pd")), False, id="In without it"),
        pytest.param(selecting(expression("NotIn", "pd")), True, id="NotIn"),
        pytest.param(selecting(expression("NotIn", "tikv")), False, id="NotIn with it"),
        pytest.param(selecting(expression("Exists")), True, id="Exists"),
        pytest.param(selecting(expression("DoesNotExist")), False, id="DoesNotExist"),
        pytest.param(selecting(expression("Exists", key="x")), False, id="a label that is not known"),
        pytest.param(selecting(expression("NotIn", "a", key="x")), False, id="NotIn of a label that is not known"),
        pytest.param(selecting(expression("Gt", "1")), False, id="an operator that is not known"),
        pytest.param({**selecting(), "topologyKey": ZONE}, False, id="another topology key"),
        pytest.param({**selecting(), "namespaces": ["prod", "q"]}, True, id="its namespace among others"),
        pytest.param({**selecting(), "namespaces": ["q"]}, False, id="another namespace"),
        pytest.param({**selecting(), "namespaceSelector": {}}, True, id="all namespaces"),
        pytest.param(
            {**selecting(), "namespaceSelector": {"matchLabels": {"a": "b"}}}, False, id="namespaces by label"
        ),
        pytest.param(
            {**selecting(), "namespaceSelector": {"matchLabels": {"a": "b"}}, "namespaces": ["prod"]},
            True,
            id="namespaces by label and its own by name",
        ),
        pytest.param({**selecting(), "matchLabelKeys": ["pingcap.com/cluster"]}, True, id="a key that all share"),
        pytest.param({**selecting(), "matchLabelKeys": ["pod-template-hash"]}, False, id="a key that they may not"),
        pytest.param({**selecting(), "mismatchLabelKeys": ["pingcap.com/cluster"]}, False, id="mismatch keys"),
        pytest.param(None, False, id="null"),
    ],
)
def test_a_term_covers_the_group_only_if_it_is_sure_to_select_every_member(term: Any, covers: bool) -> None:
    given = {"topologyKey": HOSTNAME, **term} if term is not None else term
    assert keeps_off_group(given, V2, HOSTNAME) is covers


@pytest.mark.parametrize(
    ("pod", "group", "left"),
    [
        (a_pod(), V2, FreeFields()),
        (a_pod(affinity=OWN_AFFINITY), V2, FreeFields(pin=False)),
        (a_pod(node_selector={ZONE: "a"}), V2, FreeFields(hostname=False)),
        (a_pod(affinity=anti_terms(FOREIGN)), V2, FreeFields(guards=frozenset())),
        (a_pod(affinity=anti_terms(FOREIGN, guard(V2))), V2, FreeFields(guards=frozenset({HOSTNAME}))),
        (
            a_pod(affinity=anti_terms({**COMPONENT, "topologyKey": ZONE}, None)),
            V2,
            FreeFields(guards=frozenset({ZONE})),
        ),
        (a_pod(affinity={**OWN_AFFINITY, **anti_terms(FOREIGN)}, node_selector={ZONE: "a"}), V1, FreeFields()),
    ],
    ids=["free", "node affinity", "nodeSelector", "foreign term", "our guard by hand", "by zone", "created once"],
)
def test_what_a_requesters_fields_leave_to_us_is_known_beforehand(pod: Any, group: Group, left: FreeFields) -> None:
    assert free_fields_of(pod, group) == left
