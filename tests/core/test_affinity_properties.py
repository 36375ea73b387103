"""What holds for every pod: never widened, idempotent, others' fields untouched, nothing of ours left behind.

Node selectors are judged by an evaluator of the tests' own, with the scheduler's semantics.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from core.pods import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    V1,
    V2,
    ZONE,
    a_pod,
    allowed,
    annotations_of,
    guard,
    required_anti_terms,
    required_node_terms,
    strictly_applied,
    with_floor,
)
from hypothesis import event, given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.affinity import patch_for
from webhook.core.model import Decision
from webhook.core.outcomes import Cause, Outcome

NAMES = ("n1", "n2", "n3")
NODES = {
    "n1": {HOSTNAME: "host-n1", ZONE: "a"},
    "n2": {HOSTNAME: "host-n2", ZONE: "b", "disk": "ssd"},
    "n3": {HOSTNAME: "host-n3", "disk": "hdd"},
    "n4": {ZONE: "a", "disk": "ssd"},
    "n5": {},
}

_junk = st.none() | st.just({})
_in_or_not = st.sampled_from(["In", "NotIn"])
_expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from([ZONE, "disk", HOSTNAME]),
        "operator": _in_or_not,
        "values": st.lists(st.sampled_from("ab")),
    }
) | st.fixed_dictionaries(
    {"key": st.sampled_from([ZONE, "disk", HOSTNAME]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
)
_fields = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": _in_or_not, "values": st.sampled_from(NAMES).map(lambda name: [name])}
)
_terms = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.none() | st.lists(_expressions, max_size=2),
        "matchFields": st.none() | st.lists(_fields, max_size=2),
    },
)
_anti_terms = st.sampled_from(
    [
        guard(V1),
        guard(V2),
        guard(V1, ZONE),
        {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"pingcap.com/component": "tikv"}}},
        {"topologyKey": ZONE, "labelSelector": {}, "namespaces": ["q"]},
    ]
)
_required_nodes = st.none() | st.fixed_dictionaries(
    {}, optional={"nodeSelectorTerms": st.none() | st.lists(_terms, max_size=3)}
)
_required_pods = st.none() | st.lists(_anti_terms, max_size=2)
_affinities = st.fixed_dictionaries(
    {
        "nodeAffinity": st.fixed_dictionaries({REQUIRED: _required_nodes, PREFERRED: _junk}) | _junk,
        "podAntiAffinity": st.fixed_dictionaries({REQUIRED: _required_pods, PREFERRED: _junk}) | _junk,
    },
    optional={"podAffinity": _junk, "newAffinity": _junk},
)


@st.composite
def requested_pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod as its requester made it: nothing of ours in it."""
    pod = a_pod(unknown=draw(_junk))
    if draw(st.integers(0, 4)):
        pod["spec"]["affinity"] = draw(_affinities)
    if draw(st.booleans()):
        pod["spec"]["nodeSelector"] = draw(st.sampled_from([None, {}, {"disk": "ssd"}, {ZONE: "a"}]))
    if draw(st.booleans()):
        pod["metadata"]["annotations"] = draw(st.sampled_from([None, {}, {"a/b~c": "x"}]))
    return pod


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    outcome = draw(st.sampled_from([o for o in Outcome if o not in (Outcome.DENIED, Outcome.UNCHANGED)]))
    pinning = outcome in (Outcome.PINNED, Outcome.RETURNED)
    node = draw(st.sampled_from(NAMES)) if pinning else ""
    return Decision(
        outcome,
        draw(st.sampled_from(Cause)),
        node=node,
        topology_key=draw(st.sampled_from([HOSTNAME, ZONE])),
        guard_too=outcome is Outcome.PINNED and draw(st.booleans()),
        hostname=draw(st.sampled_from(["", f"host-{node}"])) if pinning else "",
        avoids=draw(st.sampled_from([(), ("host-n1",), ("a", "host-n2")])),
    )


@st.composite
def handed_on(draw: st.DrawFn, group: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A requester's pod, and what reaches us: perhaps with the floor's guard, or with an old answer of ours."""
    requested = draw(requested_pods())
    given = json.loads(json.dumps(requested))
    if draw(st.booleans()) and not looks_like_the_floors(requested, group):
        given = with_floor(given, group)
    for _ in range(draw(st.integers(0, 2))):
        result = patch_for(given, group, draw(decisions()), "old")
        given = strictly_applied(given, result)
    return requested, given


def looks_like_the_floors(pod: dict[str, Any], group: Any) -> bool:
    """Whether a v2 requester's own node affinity is exactly what the floor would have put in: a stated limit."""
    floors = with_floor(a_pod(), group)
    return group is V2 and [
        {k: v for k, v in (term or {}).items() if v} for term in required_node_terms(pod) or []
    ] == required_node_terms(floors)


GROUPS = pytest.mark.parametrize("group", [V1, V2], ids=["v1", "v2"])
PROPERTY = settings(max_examples=120, deadline=None)


@GROUPS
@PROPERTY
@given(data=st.data())
def test_the_pod_may_go_nowhere_that_its_requester_did_not_let_it_go(group: Any, data: st.DataObject) -> None:
    requested, pod = data.draw(handed_on(group))
    result = patch_for(pod, group, data.draw(decisions()), "t")
    event(f"{result.outcome} {result.refused}")
    before, after = allowed(requested, NODES), allowed(strictly_applied(pod, result), NODES)
    assert after <= before
    if result.outcome in (Outcome.PINNED, Outcome.RETURNED):
        assert after == before & {result.decision.node} - unguarded(result.decision)


def unguarded(decision: Decision) -> set[str]:
    """The nodes that a pod which is guarded too must not go to: those without the topology key."""
    without = {name for name, labels in NODES.items() if decision.topology_key not in labels}
    return without if decision.guard_too else set()


@GROUPS
@PROPERTY
@given(data=st.data())
def test_an_answer_fed_back_gives_no_patch(group: Any, data: st.DataObject) -> None:
    _, pod = data.draw(handed_on(group))
    decision = data.draw(decisions())
    once = patch_for(pod, group, decision, "t")
    again = patch_for(once.patched, group, decision, "t")
    assert again.operations == []
    assert (again.decision, again.refused) == (once.decision, once.refused)


@GROUPS
@PROPERTY
@given(data=st.data())
def test_what_is_not_ours_survives(group: Any, data: st.DataObject) -> None:
    requested, pod = data.draw(handed_on(group))
    kept = json.loads(json.dumps(pod))
    after = patch_for(pod, group, data.draw(decisions()), "t").patched
    assert pod == kept
    assert without_our_paths(after) == without_our_paths(requested)
    for term in required_anti_terms(requested):
        assert term in required_anti_terms(after)


def without_our_paths(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without the places that we may write to, and without their parents where they are empty then."""
    pod = json.loads(json.dumps(pod))
    ours = (keys.ASSIGNED_NODE, keys.DECISION, keys.GUARD)
    foreign = {key: value for key, value in annotations_of(pod).items() if key not in ours}
    pod["metadata"].pop("annotations", None)
    selector = {key: value for key, value in (pod["spec"].pop("nodeSelector", None) or {}).items() if key != HOSTNAME}
    spec_affinity = pod["spec"].pop("affinity", None) or {}
    for kind in ("nodeAffinity", "podAntiAffinity"):
        rest = {key: value for key, value in (spec_affinity.pop(kind, None) or {}).items() if key != REQUIRED}
        spec_affinity |= {kind: rest} if rest else {}
    return pod | {"foreign": foreign, "selector": selector, "rest": spec_affinity}


@GROUPS
@PROPERTY
@given(data=st.data())
def test_an_outcome_without_pin_and_guard_leaves_the_requesters_pod(group: Any, data: st.DataObject) -> None:
    requested, pod = data.draw(handed_on(group))
    after = patch_for(pod, group, Decision(Outcome.UNTOUCHED, Cause.SKIP_OPTION), None).patched
    assert allowed(after, NODES) == allowed(requested, NODES)
    assert (required_node_terms(after) is None) == (required_node_terms(requested) is None)
    assert required_anti_terms(after) == required_anti_terms(requested)
    assert keys.ASSIGNED_NODE not in annotations_of(after)
    assert keys.GUARD not in annotations_of(after)


@PROPERTY
@given(data=st.data())
def test_fields_that_a_v2_requester_set_are_never_changed(data: st.DataObject) -> None:
    requested, pod = data.draw(handed_on(V2))
    after = patch_for(pod, V2, data.draw(decisions()), "t").patched
    if required_node_terms(requested) is not None:
        assert required_node_terms(after) == required_node_terms(requested)
    if required_anti_terms(requested):
        assert required_anti_terms(after) == required_anti_terms(requested)
    if requested["spec"].get("nodeSelector"):
        assert after["spec"]["nodeSelector"] == requested["spec"]["nodeSelector"]
