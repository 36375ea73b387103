"""The patch of one pod: pin, guard, annotations, at every depth of missing parent and beside what is there."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from core.pods import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    UNTOUCHED,
    V1,
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
from webhook.core.affinity import PatchError, patch_for
from webhook.core.decision_record import record_from
from webhook.core.model import Decision
from webhook.core.outcomes import Cause, Outcome

PIN_TERM = {"matchFields": [pinned_to("n1")]}
NO_PARENT_AFFINITIES = [
    pytest.param(None, id="no affinity"),
    pytest.param({}, id="affinity {}"),
    pytest.param({"nodeAffinity": None}, id="nodeAffinity null"),
    pytest.param({"nodeAffinity": {}}, id="nodeAffinity {}"),
    pytest.param({"nodeAffinity": {REQUIRED: None}}, id="required null"),
    pytest.param({"podAntiAffinity": None}, id="podAntiAffinity null"),
    pytest.param({"podAntiAffinity": {}}, id="podAntiAffinity {}"),
    pytest.param({"podAntiAffinity": {REQUIRED: None}}, id="anti-affinity null"),
    pytest.param({"podAntiAffinity": {REQUIRED: []}}, id="anti-affinity []"),
]
OUTCOMES_WITHOUT_OURS = [
    pytest.param(UNTOUCHED, id="set of one"),
    pytest.param(Decision(Outcome.UNTOUCHED, Cause.SKIP_OPTION), id="skip"),
    pytest.param(Decision(Outcome.UNTOUCHED, Cause.TIDB_SCHEDULER), id="tidb-scheduler"),
    pytest.param(Decision(Outcome.ADMITTED, Cause.API_TROUBLE), id="Admit"),
    pytest.param(WAITING, id="returned-waiting"),
]


@pytest.mark.parametrize("given", NO_PARENT_AFFINITIES)
def test_a_pod_without_required_node_affinity_gets_one_term_with_the_pin(given: Any) -> None:
    assert required_node_terms(patched(a_pod(affinity=given), a_pin())) == [PIN_TERM]


@pytest.mark.parametrize("given", NO_PARENT_AFFINITIES)
def test_a_pod_without_required_affinity_gets_both_halves_of_the_guard(given: Any) -> None:
    pod = patched(a_pod(affinity=given), a_guard())
    assert required_anti_terms(pod) == [guard()]
    assert required_node_terms(pod) == [{"matchExpressions": [exists()]}]
    assert annotations_of(pod)[keys.GUARD] == HOSTNAME


def test_an_affinity_that_is_null_is_as_good_as_none() -> None:
    pod = a_pod()
    pod["spec"]["affinity"] = None
    assert required_node_terms(patched(pod, a_pin())) == [PIN_TERM]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param(None, {}, id="missing"),
        pytest.param({}, {}, id="empty"),
        pytest.param({"a/b~c": "d", "~1": "x"}, {"a/b~c": "d", "~1": "x"}, id="keys with slash and tilde"),
    ],
)
def test_annotations_are_added_to_those_that_are_there(given: Any, kept: dict[str, str]) -> None:
    found = annotations_of(patched(a_pod(annotations=given), a_pin()))
    assert {key: found[key] for key in kept} == kept
    assert found.keys() == {*kept, keys.ASSIGNED_NODE, keys.DECISION}
    assert found[keys.ASSIGNED_NODE] == "n1"


def test_annotations_that_are_null_are_as_good_as_none() -> None:
    pod = a_pod()
    pod["metadata"]["annotations"] = None
    assert annotations_of(patched(pod, a_pin())).keys() == {keys.ASSIGNED_NODE, keys.DECISION}


def test_the_patch_of_a_bare_pod_is_two_additions() -> None:
    operations = patch_for(a_pod(), V1, a_pin(), "t").operations
    assert [(operation["op"], operation["path"]) for operation in operations] == [
        ("add", "/metadata/annotations"),
        ("add", "/spec/affinity"),
    ]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(
            [in_zone("a"), in_zone("b")],
            [{**in_zone("a"), **PIN_TERM}, {**in_zone("b"), **PIN_TERM}],
            id="every term",
        ),
        pytest.param(
            [{"matchFields": [pinned_to("n1")]}],
            [{"matchFields": [pinned_to("n1"), pinned_to("n1")]}],
            id="beside the user's own matchFields, even the same",
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}],
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}, pinned_to("n1")]}],
            id="beside another matchFields",
        ),
        pytest.param([{}, in_zone("a")], [{}, {**in_zone("a"), **PIN_TERM}], id="but not an empty term"),
        pytest.param([None, in_zone("a")], [None, {**in_zone("a"), **PIN_TERM}], id="nor a null term"),
        pytest.param(
            [{"matchFields": [], "matchExpressions": None}, in_zone("a")],
            [{"matchFields": [], "matchExpressions": None}, {**in_zone("a"), **PIN_TERM}],
            id="nor a term with empty lists",
        ),
        pytest.param(
            [{**in_zone("a"), "matchFields": None}], [{**in_zone("a"), **PIN_TERM}], id="where matchFields is null"
        ),
        pytest.param(
            [{**in_zone("a"), "new": {"x": 1}}], [{**in_zone("a"), "new": {"x": 1}, **PIN_TERM}], id="beside new fields"
        ),
    ],
)
def test_the_pin_goes_into_every_term_that_matches_anything(terms: list[Any], expected: list[Any]) -> None:
    assert required_node_terms(patched(a_pod(affinity=node_terms(*terms)), a_pin())) == expected


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(node_terms({}), id="one empty term"),
        pytest.param(node_terms({}, {"matchFields": []}, None), id="several empty terms"),
        pytest.param(node_terms(), id="no terms"),
        pytest.param({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": None}}}, id="terms null"),
        pytest.param({"nodeAffinity": {REQUIRED: {}}}, id="terms missing"),
    ],
)
@pytest.mark.parametrize("decision", [a_pin(), a_guard(), UNTOUCHED], ids=["pin", "guard", "untouched"])
def test_a_pod_that_matches_no_node_still_matches_none(given: Any, decision: Decision) -> None:
    pod = a_pod(affinity=given)
    result = patch_for(pod, V1, decision, "t")
    after = strictly_applied(pod, result)
    assert after["spec"]["affinity"]["nodeAffinity"] == given["nodeAffinity"]
    assert keys.ASSIGNED_NODE not in annotations_of(after)
    if decision.outcome is Outcome.PINNED:
        assert (result.outcome, result.decision.cause) == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
        assert "no term that matches" in result.decision.detail


def test_a_returning_pod_that_matches_no_node_is_reported_as_waiting() -> None:
    result = patch_for(a_pod(affinity=node_terms({})), V1, a_pin(outcome=Outcome.RETURNED), "t")
    assert result.outcome is Outcome.RETURNED_WAITING
    assert required_anti_terms(result.patched) == []


def test_everything_else_of_the_pod_is_kept() -> None:
    weighted = {"weight": 1, "preference": in_zone("a")}
    own_term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}, "namespaces": ["q"]}
    given = {
        "nodeAffinity": {PREFERRED: [weighted], REQUIRED: {"nodeSelectorTerms": [in_zone("a")], "new": [1]}},
        "podAffinity": {REQUIRED: [own_term]},
        "podAntiAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": own_term}], REQUIRED: [own_term]},
        "futureAffinity": {"x": [None, {}]},
    }
    spread = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
    pod = a_pod(affinity=given, node_selector={"disk": "ssd"}, topologySpreadConstraints=spread, unknown={"~": "/"})
    kept = copy.deepcopy(pod)
    after = patched(pod, a_pin(guard_too=True))
    assert pod == kept
    expected = copy.deepcopy(kept)
    expected["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] = [
        {"matchExpressions": [*in_zone("a")["matchExpressions"], exists()], "matchFields": [pinned_to("n1")]}
    ]
    expected["spec"]["affinity"]["podAntiAffinity"][REQUIRED].append(guard())
    expected["metadata"]["annotations"] = annotations_of(after)
    assert after == expected


@pytest.mark.parametrize("outcome", [Outcome.PINNED, Outcome.RETURNED], ids=str)
def test_the_record_on_the_pod_is_that_of_the_decision(outcome: Outcome) -> None:
    record = record_from(annotations_of(patched(a_pod(), a_pin(outcome=outcome), token="abc"))[keys.DECISION])
    assert record is not None
    assert (record.outcome, record.token, record.member, record.node) == (outcome, "abc", "db-tikv-0", "n1")


@pytest.mark.parametrize("decision", OUTCOMES_WITHOUT_OURS)
def test_a_pod_that_gets_neither_pin_nor_guard_gets_a_record_and_nothing_more(decision: Decision) -> None:
    pod = a_pod()
    after = patched(pod, decision, token=None)
    assert annotations_of(after).keys() == {keys.DECISION}
    assert json.loads(annotations_of(after)[keys.DECISION])["outcome"] == decision.outcome
    assert after["spec"] == pod["spec"]


@pytest.mark.parametrize(
    ("group", "decision"),
    [
        pytest.param(None, Decision(Outcome.UNTOUCHED, Cause.NOT_A_MEMBER), id="no member"),
        pytest.param(V1, Decision(Outcome.UNCHANGED), id="asked again"),
        pytest.param(V1, Decision(Outcome.DENIED, Cause.NO_SAFE_NODE), id="denied"),
    ],
)
def test_these_get_no_patch_at_all(group: Any, decision: Decision) -> None:
    pod = with_floor(a_pod())
    result = patch_for(pod, group, decision, None)
    assert (result.operations, result.patched, result.outcome) == ([], pod, decision.outcome)


# Called again; copied templates.


@pytest.mark.parametrize("fields", [[], [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]])
def test_a_stale_pin_is_replaced_where_it_stands(fields: list[Any]) -> None:
    stale = patched(a_pod(affinity=node_terms({"matchFields": fields, **in_zone("a")})), a_pin("n1"))
    terms = required_node_terms(stale)
    assert terms is not None
    terms[0]["matchFields"].append({"key": "metadata.name", "operator": "NotIn", "values": ["n8"]})
    result = patch_for(stale, V1, a_pin("n2"), "t2")
    place = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms/0/matchFields/{len(fields)}/values/0"
    assert {"op": "replace", "path": place, "value": "n2"} in result.operations
    assert len(result.operations) == 3
    assert annotations_of(strictly_applied(stale, result))[keys.ASSIGNED_NODE] == "n2"


@pytest.mark.parametrize("missing", [keys.DECISION, keys.ASSIGNED_NODE])
def test_either_annotation_tells_a_stale_pin(missing: str) -> None:
    stale = patched(a_pod(), a_pin("n1"))
    del stale["metadata"]["annotations"][missing]
    assert required_node_terms(patched(stale, a_pin("n2"))) == [{"matchFields": [pinned_to("n2")]}]


def test_a_stale_pin_beside_the_users_own_on_the_same_node_leaves_the_users() -> None:
    stale = patched(a_pod(affinity=node_terms({"matchFields": [pinned_to("n1")]})), a_pin("n1"))
    after = patched(stale, a_pin("n2"))
    assert required_node_terms(after) == [{"matchFields": [pinned_to("n1"), pinned_to("n2")]}]


def test_a_term_of_a_pin_alone_beside_other_terms_is_the_users() -> None:
    given = node_terms({"matchFields": [pinned_to("n1")]}, in_zone("a"))
    pod = a_pod(affinity=given, annotations={keys.ASSIGNED_NODE: "n1"})
    assert required_node_terms(patched(pod, UNTOUCHED)) == required_node_terms(pod)
    assert required_node_terms(patched(pod, a_pin("n2"))) == [
        {"matchFields": [pinned_to("n1"), pinned_to("n2")]},
        {**in_zone("a"), "matchFields": [pinned_to("n2")]},
    ]


@pytest.mark.parametrize("given", [None, node_terms(in_zone("a"))], ids=["no affinity", "own affinity"])
@pytest.mark.parametrize("decision", OUTCOMES_WITHOUT_OURS)
def test_a_stale_pin_goes_where_the_outcome_has_none(given: Any, decision: Decision) -> None:
    pod = a_pod(affinity=given)
    after = patched(patched(pod, a_pin("n1", guard_too=True)), decision, token=None)
    assert required_node_terms(after) == required_node_terms(pod)
    assert required_anti_terms(after) == []
    assert annotations_of(after).keys() == {keys.DECISION}


def test_a_pin_that_no_annotation_tells_of_is_the_users() -> None:
    pod = a_pod(affinity=node_terms({"matchFields": [pinned_to("n1")]}))
    assert required_node_terms(patched(pod, UNTOUCHED)) == [{"matchFields": [pinned_to("n1")]}]


def test_rubbish_in_our_annotations_is_replaced() -> None:
    pod = a_pod(annotations={keys.DECISION: "{", keys.ASSIGNED_NODE: "", keys.GUARD: "rubbish", "own": "x"})
    after = patched(pod, a_pin())
    assert record_from(annotations_of(after)[keys.DECISION]) is not None
    assert annotations_of(after).keys() == {keys.DECISION, keys.ASSIGNED_NODE, "own"}


# The guard.


def test_the_guard_is_appended_to_the_users_terms() -> None:
    own = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "other"}}}
    pod = a_pod(affinity=anti_terms(own) | node_terms({}, in_zone("a")))
    after = patched(pod, a_guard(topology_key=ZONE))
    assert required_anti_terms(after) == [own, guard(key=ZONE)]
    with_key = {"matchExpressions": [*in_zone("a")["matchExpressions"], exists(ZONE)]}
    assert required_node_terms(after) == [{}, with_key]


def test_a_guarded_pod_is_kept_off_domains_that_it_leaves_to_others_in_every_term() -> None:
    after = patched(a_pod(affinity=node_terms({}, in_zone("a"))), a_guard(avoids=("n1", "n2")))
    avoided = {"key": HOSTNAME, "operator": "NotIn", "values": ["n1", "n2"]}
    expected = {"matchExpressions": [*in_zone("a")["matchExpressions"], exists(), avoided]}
    assert required_node_terms(after) == [{}, expected]


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(a_pin(), [PIN_TERM], id="pinned"),
        pytest.param(a_guard(), [{"matchExpressions": [exists()]}], id="guarded without any"),
        pytest.param(UNTOUCHED, None, id="untouched"),
    ],
)
def test_the_domains_that_were_left_to_others_are_forgotten_with_the_next_answer(
    decision: Decision, expected: Any
) -> None:
    once = patched(a_pod(), a_guard(avoids=("n1",)))
    assert required_node_terms(patched(once, decision)) == expected


def test_a_users_own_exclusion_stays_though_it_equals_ours() -> None:
    own = {"key": HOSTNAME, "operator": "NotIn", "values": ["n1"]}
    once = patched(a_pod(affinity=node_terms({"matchExpressions": [own]})), a_guard(avoids=("n1",)))
    assert required_node_terms(once) == [{"matchExpressions": [own, exists(), own]}]
    assert required_node_terms(patched(once, UNTOUCHED)) == [{"matchExpressions": [own]}]


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(guard(), id="as we write it"),
        pytest.param({**guard(), "namespaces": ["prod"], "matchLabelKeys": []}, id="with its own namespace named"),
        pytest.param({**guard(), "namespaceSelector": None}, id="with a null"),
    ],
)
def test_no_guard_is_put_in_where_the_user_has_the_same_one(own: Any) -> None:
    pod = a_pod(affinity=anti_terms(own))
    after = patched(pod, a_guard())
    assert required_anti_terms(after) == [own]
    assert keys.GUARD not in annotations_of(after)
    assert required_node_terms(after) == [{"matchExpressions": [exists()]}]
    back = patched(after, UNTOUCHED)
    assert required_anti_terms(back) == [own]
    assert required_node_terms(back) is None


@pytest.mark.parametrize(
    "own",
    [
        pytest.param({**guard(), "namespaces": ["prod", "q"]}, id="more namespaces"),
        pytest.param({**guard(), "namespaceSelector": {}}, id="all namespaces"),
        pytest.param({**guard(), "mismatchLabelKeys": ["x"]}, id="narrowed by a label key"),
        pytest.param(guard(key=ZONE), id="another topology key"),
        pytest.param({"topologyKey": HOSTNAME, "labelSelector": None}, id="no selector"),
    ],
)
def test_a_term_that_is_not_equal_does_not_stand_for_the_guard(own: Any) -> None:
    assert required_anti_terms(patched(a_pod(affinity=anti_terms(own)), a_guard())) == [own, guard()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, [PIN_TERM], id="its node affinity becomes the pin's"),
        pytest.param(node_terms(in_zone("a")), [{**in_zone("a"), **PIN_TERM}], id="beside the user's"),
        pytest.param(
            node_terms({"matchExpressions": [exists()]}),
            [{"matchExpressions": [exists()], **PIN_TERM}],
            id="the user's own Exists stays",
        ),
    ],
)
def test_the_floors_guard_is_turned_into_a_pin(given: Any, expected: list[Any]) -> None:
    after = patched(with_floor(a_pod(affinity=given)), a_pin("n1", topology_key=ZONE))
    assert required_node_terms(after) == expected
    assert required_anti_terms(after) == []
    assert annotations_of(after).keys() == {keys.ASSIGNED_NODE, keys.DECISION}


@pytest.mark.parametrize("decision", OUTCOMES_WITHOUT_OURS)
@pytest.mark.parametrize(
    "given", [None, anti_terms(guard(key=ZONE)) | node_terms(in_zone("a"), {})], ids=["none", "own"]
)
def test_the_floors_guard_goes_without_a_trace(given: Any, decision: Decision) -> None:
    pod = a_pod(affinity=given)
    after = patched(with_floor(pod), decision, token=None)
    assert required_node_terms(after) == required_node_terms(pod)
    assert required_anti_terms(after) == required_anti_terms(pod)


def test_a_floor_that_is_ours_already_is_left_as_it_is() -> None:
    floored = with_floor(a_pod())
    operations = patch_for(floored, V1, a_guard(), None).operations
    assert [operation["path"] for operation in operations] == ["/metadata/annotations/tidb-ha-webhook.io~1decision"]


def test_a_guard_by_another_key_replaces_the_floors_in_place() -> None:
    floored = with_floor(a_pod(affinity=node_terms(in_zone("a"))))
    floored["spec"]["affinity"]["podAntiAffinity"][REQUIRED].append({"topologyKey": "x", "labelSelector": {}})
    after = patched(floored, a_guard(topology_key=ZONE))
    assert required_anti_terms(after) == [guard(key=ZONE), {"topologyKey": "x", "labelSelector": {}}]
    assert required_node_terms(after) == [{"matchExpressions": [*in_zone("a")["matchExpressions"], exists(ZONE)]}]
    assert annotations_of(after)[keys.GUARD] == ZONE


def test_the_floors_guard_goes_where_the_user_has_one_by_our_key() -> None:
    floored = with_floor(a_pod(affinity=anti_terms(guard(key=ZONE))))
    after = patched(floored, a_guard(topology_key=ZONE))
    assert required_anti_terms(after) == [guard(key=ZONE)]
    assert keys.GUARD not in annotations_of(after)


def test_a_term_without_the_annotation_is_not_ours_to_remove() -> None:
    pod = a_pod(affinity=anti_terms(guard()) | node_terms({"matchExpressions": [exists()]}))
    after = patched(pod, a_pin())
    assert required_anti_terms(after) == [guard()]
    assert required_node_terms(after) == [{"matchExpressions": [exists()], **PIN_TERM}]


def test_an_annotation_without_the_term_removes_nothing_but_itself() -> None:
    own = {**guard(), "mismatchLabelKeys": ["x"]}
    after = patched(a_pod(affinity=anti_terms(own), annotations={keys.GUARD: HOSTNAME}), a_pin())
    assert required_anti_terms(after) == [own]
    assert keys.GUARD not in annotations_of(after)


def test_a_pod_may_be_pinned_and_guarded() -> None:
    after = patched(a_pod(), a_pin(guard_too=True))
    assert required_node_terms(after) == [{"matchExpressions": [exists()], "matchFields": [pinned_to("n1")]}]
    assert required_anti_terms(after) == [guard()]
    assert annotations_of(after).keys() == {keys.ASSIGNED_NODE, keys.DECISION, keys.GUARD}


# What must not be sent.


def test_a_pin_to_no_node_is_an_error() -> None:
    with pytest.raises(PatchError, match="pinned names no node"):
        patch_for(a_pod(), V1, a_pin(""), "t")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(affinity="x"), id="affinity is a string"),
        pytest.param(a_pod(affinity={"nodeAffinity": []}), id="nodeAffinity is a list"),
        pytest.param(a_pod(annotations=[]), id="annotations are a list"),
    ],
)
def test_a_pod_of_impossible_shape_is_an_error_and_no_crash(pod: Any) -> None:
    with pytest.raises(PatchError, match="is not an object"):
        patch_for(pod, V1, a_pin(), "t")


def spoilt(after: dict[str, Any], kind: str) -> dict[str, Any]:
    spec = after["spec"]
    match kind:
        case "widened":
            spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"].append(in_zone("z"))
        case "unpinned":
            del spec["affinity"]["nodeAffinity"]
        case "another field":
            spec["hostNetwork"] = True
        case "unguarded":
            del spec["affinity"]["podAntiAffinity"]
        case "any node":
            del spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]
        case "another host":
            spec["nodeSelector"] = {HOSTNAME: "host-n2"}
    return after


def test_the_check_before_answering_finds_a_domain_that_is_not_left_alone() -> None:
    pod, decision = a_pod(), a_guard(avoids=("n1",))
    plan = affinity._planned(pod, V1, decision)
    wrong = patched(pod, decision)
    del wrong["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"][1]
    with pytest.raises(PatchError, match="lets the pod into n1"):
        affinity._check(pod, wrong, wrong, V1, plan)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("widened", "changes more"),
        ("another field", "changes more"),
        ("unpinned", "does not pin the pod to n1"),
        ("unguarded", "does not keep the pod off its group"),
        ("any node", "onto nodes without"),
    ],
)
def test_the_check_before_answering_finds_a_patched_pod_that_is_wrong(kind: str, error: str) -> None:
    pod, decision = a_pod(), a_pin(guard_too=True)
    plan = affinity._planned(pod, V1, decision)
    wrong = spoilt(patched(pod, decision), kind)
    with pytest.raises(PatchError, match=error):
        affinity._check(pod, wrong, wrong, V1, plan)


def test_the_check_before_answering_finds_a_patch_that_gives_another_pod() -> None:
    with pytest.raises(PatchError, match="does not give the pod"):
        affinity._check(a_pod(), a_pod(), a_pod(x=1), V1, affinity._planned(a_pod(), V1, UNTOUCHED))


def test_a_value_that_is_in_the_manifest_twice_is_changed_in_one_place_only() -> None:
    shared: dict[str, Any] = {}
    pod = a_pod(affinity={"nodeAffinity": shared, "podAntiAffinity": shared}, unknown=shared)
    after = patched(pod, a_pin())
    assert shared == {}
    assert after["spec"]["affinity"]["podAntiAffinity"] == {}
    assert after["spec"]["unknown"] == {}


@pytest.mark.parametrize("manifest", [{"kind": "Pod"}, {"metadata": None, "spec": []}], ids=["no parts", "odd parts"])
def test_a_manifest_that_is_no_pod_is_an_error_and_no_crash(manifest: Any) -> None:
    with pytest.raises(PatchError):
        patch_for(manifest, V1, a_pin(), "t")
