"""What is said to be done where there is no safe node: by what is in the way, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from builders import make_claim, make_node, make_nodes, make_placing, make_snapshot, running_members

from webhook.core import attaching, binding, interpod, keys, node_filters, ports, resources, spreading, volumes
from webhook.core.filtering import AND
from webhook.core.messages import WARNING_LIMIT
from webhook.core.model import Decision
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Requirement
from webhook.core.outcomes import Cause, Outcome
from webhook.core.placement import decide
from webhook.core.remedies import GENERIC, OBSTACLES, is_of_rule, remedy_for
from webhook.core.texts import text_of

ZONE = "topology.kubernetes.io/zone"
BY_ZONE = {"topology_key": ZONE}


def no_safe_node(*reasons: str, **fields: Any) -> Decision:
    """A decision whose nodes were passed over for these reasons."""
    passed_over = {f"n{number}": reason for number, reason in enumerate(reasons)}
    return Decision(Outcome.GUARDED, Cause.NO_SAFE_NODE, passed_over=passed_over, **fields)


def decided(placing: Any = None, **snapshot: Any) -> Decision:
    """What is decided; it must have found no safe node."""
    decision = decide(make_snapshot(**snapshot), placing or make_placing())
    assert decision.cause is Cause.NO_SAFE_NODE
    return decision


def said(decision: Decision) -> tuple[str, str, str]:
    text = text_of(decision)
    assert text is not None
    return text.short, text.why, text.remedy


CAN_TAKE_IT = "no node that can take it is within the cap of its group"
NONE_CAN = "no node can take it"
FULL = "every domain holds its share; add a node"


def test_full_domains_ask_for_a_node():
    decision = decided(nodes=make_nodes(2), pods=running_members("n1", "n2", first=1))

    assert said(decision) == (FULL, CAN_TAKE_IT, "Add a node.")


def test_a_node_that_is_full_is_not_to_be_given_what_it_lacks():
    full = "node n0 already holds 1 of at most 1 member(s)"
    lacking = f"{binding.NO_VOLUME_TO_BIND}{AND}{full}"

    assert said(no_safe_node(lacking, lacking, full, topology_key=keys.HOSTNAME)) == (
        FULL,
        CAN_TAKE_IT,
        "Add a node, with a free PersistentVolume of its StorageClass.",
    )
    assert said(no_safe_node(lacking, topology_key=keys.HOSTNAME))[1] == NONE_CAN


def test_the_decision_says_of_a_node_that_lacks_something_that_it_is_full_too():
    taken = [make_node("n1", unschedulable=True), make_node("n2")]
    decision = decided(nodes=taken, pods=running_members("n1", "n2", first=1))

    assert decision.passed_over["n1"].split(AND)[1] == "domain n1 already holds 1 of at most 1 member(s)"
    assert said(decision)[2] == "Add a node."


def test_who_is_in_the_way_is_named_first():
    guarded = "guarded member db-tikv-0 keeps others off until it is re-created: kubectl delete pod db-tikv-0"
    full = "node n0 already holds 1 of at most 1 member(s)"

    assert said(no_safe_node(full, full, guarded, topology_key=keys.HOSTNAME)) == (
        "a sibling is in the way; see its event",
        "db-tikv-0 of its group is in the way on the nodes that could take it",
        "kubectl delete pod db-tikv-0, which is in the way. Or: Add a node.",
    )


def test_full_zones_ask_for_a_node_with_another_zone():
    decision = no_safe_node("domain za already holds 1 of at most 1 member(s)", **BY_ZONE)

    assert said(decision) == (FULL, CAN_TAKE_IT, f"Add a node with a new value of {ZONE}.")


def test_a_mistyped_topology_key_is_said():
    decision = no_safe_node(*["node(s) had no label zonne"] * 3, topology_key="zonne")

    assert said(decision) == (
        "nodes lack the label of its topology key",
        NONE_CAN,
        "Give the nodes the label zonne, or correct the option topology-key.",
    )


def test_a_node_selector_without_a_match_is_said():
    decision = decided(make_placing(node_selector={"disk": "ssd"}))

    assert said(decision)[:2] == ("no node matches its nodeSelector or affinity", NONE_CAN)


def test_a_pod_that_is_larger_than_every_node_is_told_from_one_for_which_there_is_no_room():
    large = decided(make_placing(requests={"cpu": 65, "memory": 2**40 + 2**29}))
    full = decided(
        nodes=[
            make_node(f"n{number}", allocatable={"cpu": Decimal(4), "memory": Decimal(2**40), "pods": Decimal()})
            for number in range(3)
        ]
    )

    assert said(large)[0] == "it requests more than any node has; lower that"
    assert "it asks for 65 of cpu, more than any node has (" in large.detail
    assert "it asks for 1024Gi of memory, more than any node has (" in large.detail
    assert said(large)[2] == "Lower what it requests, or add a node that is large enough."
    assert "it asks for 1 of pods, more than any node has (0)" in full.detail


def test_no_room_asks_for_room():
    decision = no_safe_node("Insufficient cpu", "Insufficient memory", resources.TOO_MANY_PODS)

    assert said(decision) == (
        "no node has room for it; add one, or make room",
        NONE_CAN,
        "Make room on a node, or add one.",
    )


def test_a_class_that_is_not_there_is_said():
    claims = [replace(make_claim(f"tikv-db-tikv-{number}"), storage_class="local-nvmee") for number in range(3)]

    decision = decided(make_placing(claim_names=("tikv-db-tikv-0",)), claims=claims)

    assert said(decision)[:2] == ("its StorageClass is not there; see its claim", NONE_CAN)
    assert '"tikv-db-tikv-0" names a StorageClass that is not there ("local-nvmee")' in decision.detail
    # It holds for the pod, not for so and so many nodes.
    assert "; pod has unbound immediate PersistentVolumeClaims" in decision.detail


def test_there_are_no_nodes():
    assert said(decided(nodes=[])) == ("there are no nodes; add some", NONE_CAN, "Add nodes.")


def test_of_several_obstacles_the_most_frequent_ones_remedy_goes_first():
    full = "domain n1 already holds 1 of at most 1 member(s)"
    decision = no_safe_node(full, node_filters.UNSCHEDULABLE, node_filters.UNSCHEDULABLE, "Insufficient cpu", "else")

    short, why, remedy = said(decision)

    assert (short, why) == ("the nodes are cordoned; uncordon one", CAN_TAKE_IT)
    assert remedy == "Uncordon a node. Or: Make room on a node, or add one. Or: Add a node."


def test_nodes_that_changed_while_it_was_decided_have_no_remedy_of_their_own():
    assert said(no_safe_node())[0] == GENERIC.short
    assert said(no_safe_node("a reason of a later version"))[0] == GENERIC.short
    assert is_of_rule(no_safe_node("a reason of a later version"))


def test_an_affinity_that_matches_nothing_is_generic_and_named():
    nothing = NodeSelector((NodeSelectorTerm((Requirement("x", "In", ()),)),))
    decision = decided(make_placing(node_affinity=nothing))

    assert said(decision)[0] == "no node matches its nodeSelector or affinity"


REASONS = [
    *(
        value
        for module in (attaching, binding, interpod, node_filters, ports, resources, spreading, volumes)
        for name, value in sorted(vars(module).items())
        if name.isupper() and isinstance(value, str) and len(value.split()) > 1
    ),
    'persistentvolumeclaim "a" not found',
    'persistentvolumeclaim "a" is being deleted',
    'persistentvolumeclaim "a" bound to non-existent persistentvolume "b"',
    "node(s) had no label zone",
    "Insufficient cpu",
    "domain n1 already holds 1 of at most 1 member(s)",
    "domain n1 holds a member, and 1 pending without node, pin or guard by its key could join it (a):"
    " kubectl delete pod a",
    "guarded member a keeps others off k=v until it is re-created: kubectl delete pod a",
]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_the_filters_has_a_remedy_of_its_own(reason: str):
    assert remedy_for(no_safe_node(reason)).short != GENERIC.short


def test_the_volume_that_is_gone_is_told_from_the_claim_that_is():
    gone = 'persistentvolumeclaim "a" bound to non-existent persistentvolume "b"'

    assert remedy_for(no_safe_node(gone)).short == "its claim's volume is gone; restore it"
    assert remedy_for(no_safe_node('persistentvolumeclaim "a" not found')).short.startswith("its claim is missing")


def test_what_is_said_in_few_words_leaves_room_for_names():
    assert max(len(obstacle.remedy.short) for obstacle in OBSTACLES) <= WARNING_LIMIT - 72


def test_a_long_topology_key_is_cut():
    decision = no_safe_node("node(s) had no label x", topology_key=f"{'x' * 253}/{'y' * 63}")

    assert f"the label {'x' * 80}.., or" in remedy_for(decision).advice
    assert keys.HOSTNAME not in remedy_for(decision).advice
