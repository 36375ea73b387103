"""Topology spread constraints that forbid."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import (
    ZONAL_NODES,
    ZONE,
    by_node,
    make_entry,
    make_group,
    make_node,
    make_placing,
    make_snapshot,
    member,
    pod_on,
    reasons_for,
)

from webhook.core.objects import LabelSelector, Requirement, SpreadConstraint, Taint, Toleration

OWN = LabelSelector(dict(make_group().selector))
WEB = LabelSelector({"app": "web"})
SKEWED = "node(s) didn't match pod topology spread constraints"
PIN_SKEWS = "node(s) didn't match pod topology spread constraints once pinned (minDomains)"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def siblings(*nodes: str, **changes):
    return [pod_on(node, f"s{i}", labels=OWN.match_labels, **changes) for i, node in enumerate(nodes)]


def zones(*pods, nodes=ZONAL_NODES, entries=(), constraints=None, placing=None, **constraint):
    """The zones that are refused, with their one reason."""
    spread = constraints or (SpreadConstraint(**{"topology_key": ZONE, "max_skew": 1, "selector": OWN} | constraint),)
    snapshot = replace(make_snapshot(nodes=nodes, entries=entries), placed_pods=by_node(*pods))
    found = reasons_for(snapshot, make_placing(spread=spread, **(placing or {})))
    return {name[:2]: reason for name, reason in found.items()}


def test_a_domain_may_hold_no_more_than_the_skew_above_the_emptiest():
    assert zones() == {}
    assert zones(*siblings("za1")) == {"za": SKEWED}
    assert zones(*siblings("za1", "zb1", "zc1")) == {}
    assert zones(*siblings("za1"), max_skew=2) == {}
    assert zones(*siblings("za1", "za2", "zb1")) == {"za": SKEWED, "zb": SKEWED}


def test_a_pod_that_is_not_counted_itself_adds_nothing():
    web = [pod_on("za1")]

    assert zones(*web, selector=WEB) == {}
    assert zones(*web, pod_on("za2"), selector=WEB) == {"za": SKEWED}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"deleting": True}, id="going away"),
        pytest.param({"namespace": "other"}, id="of another namespace"),
    ],
)
def test_who_is_not_counted(changes):
    assert zones(*siblings("za1", **changes)) == {}


def test_a_selector_that_selects_everybody_counts_nobody_as_in_the_scheduler():
    assert zones(*siblings("za1", "za2"), selector=LabelSelector()) == {}


def test_no_selector_counts_nobody():
    assert zones(*siblings("za1", "za2"), selector=None) == {}


def test_members_in_flight_are_counted():
    entries = [make_entry(member(1), "za1"), make_entry(member(2), "zb2")]

    assert zones(entries=entries) == {"za": SKEWED, "zb": SKEWED}


def test_with_fewer_domains_than_asked_for_the_emptiest_counts_as_empty():
    pods = siblings("za1", "zb1", "zc1")

    assert zones(*pods, min_domains=3, honors_affinity=False) == {}
    assert zones(*pods, min_domains=4) == {"za": SKEWED, "zb": SKEWED, "zc": SKEWED}


def test_our_own_pin_leaves_a_constraint_one_domain_which_is_fewer_than_it_asks_for():
    """Seen with the default scheduler: the node beside which the pod would have been was not possible once pinned."""
    pods = siblings("za1", "zb1", "zc1")

    # On the other node of each zone the scheduler counts nobody, as the pin leaves it that node alone.
    assert zones(*pods, min_domains=3) == {"za": PIN_SKEWS, "zb": PIN_SKEWS, "zc": PIN_SKEWS}
    assert zones(*pods, min_domains=3, max_skew=2) == {}
    assert (
        zones(*siblings("za2", "zb2", "zc2"), nodes=[n for n in ZONAL_NODES if n.name.endswith("1")], min_domains=3)
        == {}
    )


def test_a_node_without_the_label_is_not_possible_and_no_domain():
    bare = make_node("xx1")

    assert zones(nodes=(*ZONAL_NODES, bare)) == {"xx": NO_LABEL}


def test_a_node_must_have_the_labels_of_all_constraints_to_count_for_one():
    racks = tuple(
        replace(node, labels={**node.labels, "rack": "r1"}) if node.name != "zc2" else node for node in ZONAL_NODES
    )
    constraints = (SpreadConstraint(ZONE, 1, OWN), SpreadConstraint("rack", 9, OWN))

    # The pods on zc2 are not seen, so zc is as empty as the others.
    found = zones(*siblings("zc2", "zc2"), nodes=racks, constraints=constraints)
    assert found == {"zc": NO_LABEL}


SPARE = {"node_selector": {"kind": "tikv"}}
KINDS = tuple(
    replace(node, labels={**node.labels, "kind": "web" if node.name.startswith("zc") else "tikv"})
    for node in ZONAL_NODES
)
TAINTED = tuple(
    replace(node, taints=(Taint("for", "web", "NoSchedule"),) if node.name.startswith("zc") else ())
    for node in ZONAL_NODES
)
MISMATCH = "node(s) didn't match Pod's node affinity/selector"
UNTOLERATED = "node(s) had untolerated taint(s)"


def test_nodes_that_the_pod_cannot_select_are_no_domains_unless_they_are_asked_for():
    pods = siblings("za1", "zb1")

    assert zones(*pods, nodes=KINDS, placing=SPARE) == {"zc": MISMATCH}
    assert zones(*pods, nodes=KINDS, placing=SPARE, honors_affinity=False) == {
        "za": SKEWED,
        "zb": SKEWED,
        "zc": MISMATCH,
    }


def test_tainted_nodes_are_domains_unless_they_are_not_asked_for():
    pods = siblings("za1", "zb1")

    assert zones(*pods, nodes=TAINTED) == {"za": SKEWED, "zb": SKEWED, "zc": UNTOLERATED}
    assert zones(*pods, nodes=TAINTED, honors_taints=True) == {"zc": UNTOLERATED}
    assert zones(*pods, nodes=TAINTED, honors_taints=True, placing={"tolerations": (Toleration("", "Exists"),)}) == {
        "za": SKEWED,
        "zb": SKEWED,
    }


def test_every_constraint_must_hold():
    constraints = (SpreadConstraint(ZONE, 9, OWN), SpreadConstraint("kubernetes.io/hostname", 1, OWN))
    snapshot = replace(make_snapshot(nodes=ZONAL_NODES), placed_pods=by_node(*siblings("za1")))

    assert reasons_for(snapshot, make_placing(spread=constraints)) == {"za1": SKEWED}


def test_a_selector_that_cannot_be_used_keeps_the_pod_off_every_node():
    broken = LabelSelector(match_expressions=(Requirement("app", "Like", ("web",)),))

    found = zones(selector=broken)

    assert found == dict.fromkeys(
        ("za", "zb", "zc"), "a topology spread constraint cannot be used: its label selector is not valid"
    )
