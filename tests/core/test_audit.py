"""The audit of one group: its places, its margins, and what losing nodes would leave, against brute force."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from builders import (
    ZONAL_NODES,
    ZONE,
    bound_claim,
    guarded_pod,
    label_in,
    make_desired,
    make_entry,
    make_group,
    make_node,
    make_nodes,
    make_pod,
    make_snapshot,
    make_volume,
    member,
    pinned_pod,
    pinned_to,
    running_members,
    running_pod,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.audit import audit, losing
from webhook.core.audited import Isolation, Survival, isolated_keys
from webhook.core.findings import FindingKind, findings, loss_text, survival_text
from webhook.core.model import Family, Snapshot
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Requirement, Taint

PD = make_group("pd")
BY_HOST = isolated_keys(["host"])
BY_ZONE = isolated_keys(["zone", "rack"])
RACK = "rack"


def members(*nodes, group=None):
    return running_members(*nodes, first=0, group=group)


def set_of(*nodes, group=None, replicas=None, **changes) -> Snapshot:
    """A set whose members run on these nodes."""
    desired = make_desired(replicas or len(nodes), group=group)
    return make_snapshot(**{"group": group, "desired": desired, "pods": members(*nodes, group=group)} | changes)


def kinds(audited, *, breaches=False):
    return [finding.kind.value for finding in findings(audited) if finding.breach or not breaches]


def text_of(audited, kind):
    return next(finding.text for finding in findings(audited) if finding.kind is kind)


def record(name, node, **fields):
    found = {"v": 1, "member": name, "outcome": "pinned", "node": node, "domain": node, "topologyKey": keys.HOSTNAME}
    return {keys.DECISION: json.dumps(found | fields)}


# ---- places


def test_members_apart_are_no_breach_and_survive_the_loss_of_a_node():
    found = audit(set_of("n1", "n2", "n3"))

    assert (found.cap, dict(found.counts), dict(found.stacked)) == (1, {"n1": 1, "n2": 1, "n3": 1}, {})
    assert found.now is Survival.SURVIVES
    assert survival_text(found) == "survives the loss of 1 node"
    assert kinds(found, breaches=True) == []


@pytest.mark.parametrize(
    ("nodes", "group", "stacked"),
    [
        (("n1", "n1", "n2"), None, {"n1": 2}),
        (("n1", "n1", "n1"), None, {"n1": 3}),
        (("n1", "n1", "n2"), PD, {"n1": 2}),
        (("n1", "n1", "n2", "n2", "n3"), PD, {}),
        (("n1", "n1", "n2", "n2"), None, {"n1": 2, "n2": 2}),
        (("n1", "n1", "n2", "n2", "n3"), None, {}),
        (("n1", "n1"), None, {}),
    ],
)
def test_a_domain_above_the_cap_is_stacked(nodes, group, stacked):
    assert dict(audit(set_of(*nodes, group=group)).stacked) == stacked


def test_what_is_stacked_is_named_with_its_members():
    assert text_of(audit(set_of("n1", "n2", "n1")), FindingKind.STACKED) == (
        "node n1 holds 2 members (db-tikv-0, db-tikv-2), at most 1 may be there"
    )


def test_a_member_that_waits_with_a_pin_or_will_return_to_its_data_counts_where_that_is():
    pods = [running_pod("db-tikv-0", "n1"), pinned_pod("db-tikv-1", "n1")]
    there = set_of(
        "n1", replicas=3, pods=pods, claims=[bound_claim("v2", 2)], volumes=[make_volume("v2", keys.HOSTNAME, "n1")]
    )

    assert dict(audit(there).stacked) == {"n1": 3}


def test_answers_in_flight_are_left_to_the_next_audit():
    assert dict(audit(set_of("n1", replicas=3, entries=[make_entry("db-tikv-1", "n1")])).counts) == {"n1": 1}


def test_a_member_whose_node_is_gone_is_unknown_and_one_without_the_label_is_named():
    pods = [running_pod("db-tikv-0", "gone"), running_pod("db-tikv-1", "bare"), running_pod("db-tikv-2", "n3")]
    nodes = [make_node("n3"), make_node("bare", labels={})]
    found = audit(set_of(pods=pods, nodes=nodes, replicas=3))

    assert found.unknown == ("db-tikv-0",)
    assert found.unlabelled == {"db-tikv-1": "bare"}
    assert {"UnknownDomain", "NoTopologyLabel"} <= set(kinds(found, breaches=True))
    assert [one.domain for one in found.members] == [None, "", "n3"]


def test_members_that_never_passed_us_and_guarded_ones_that_run_are_named():
    pods = [
        running_pod("db-tikv-0", "n1", annotations=record("db-tikv-0", "n1")),
        running_pod("db-tikv-1", "n2", annotations=record("db-tikv-7", "n2")),
        guarded_pod("db-tikv-2", node_name="n3", phase="Running", ready=True),
    ]
    found = audit(set_of(pods=pods, replicas=3))

    assert found.never_passed == ("db-tikv-1", "db-tikv-2")
    assert found.guarded_running == ("db-tikv-2",)
    assert kinds(found) == ["GuardedRunning", "NeverPassed"]


def test_finished_pods_are_no_members_and_undesired_ones_count_nowhere():
    pods = [*members("n1", "n2", "n3"), running_pod("db-tikv-3", "n1"), running_pod("db-tikv-4", "n1", phase="Failed")]
    found = audit(set_of(pods=pods, replicas=3))

    assert [one.desired for one in found.members] == [True, True, True, False]
    assert found.counts == {"n1": 1, "n2": 1, "n3": 1}
    assert losing(found, ["n1"]).members == ("db-tikv-0",)


def test_a_group_that_is_left_alone_by_option_has_no_breach():
    desired = make_desired(3, skip=True, problems=("annotation x is wrong",))
    found = audit(set_of("n1", "n1", "n1", desired=desired))

    assert kinds(found, breaches=True) == []
    assert {"Stacked", "OptionProblem"} <= set(kinds(found))


@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_sets_too_small_to_lose_a_member_are_no_breach_for_that(replicas):
    found = audit(set_of(*["n1", "n2"][:replicas], replicas=replicas))

    assert kinds(found, breaches=True) == []
    assert found.margin.survives == 0


def test_an_empty_snapshot_is_audited():
    empty = replace(make_snapshot(desired=make_desired(3), nodes=()), claims=())
    found = audit(empty)

    assert (found.missing, found.now) == (3, Survival.BREAKS)
    assert survival_text(found) == "0 of 3 run: a majority of some data's copies may be lost already"
    assert text_of(found, FindingKind.NOT_RUNNING) == "not running: 3 without a pod"


# ---- the cap where our own pin is on the pods


def eligible_snapshot(node_affinity=None, node_selector=None, nodes=5, **fields):
    """Five stores in five copies on three nodes, each pinned by us."""
    pods = [
        running_pod(
            member(i),
            f"n{i % 3 + 1}",
            node_affinity=node_affinity or pinned_to(f"n{i % 3 + 1}"),
            node_selector=node_selector or {},
            annotations=record(member(i), f"n{i % 3 + 1}", **fields),
        )
        for i in range(5)
    ]
    return make_snapshot(desired=make_desired(5, copies=5), pods=pods, nodes=make_nodes(nodes))


def with_own_terms(node):
    term = NodeSelectorTerm(
        match_expressions=(Requirement("disk", "In", ("ssd",)),),
        match_fields=(Requirement("metadata.name", "In", (node,)),),
    )
    return NodeSelector((term,))


def test_domains_that_a_member_could_use_count_though_each_is_pinned():
    assert audit(eligible_snapshot()).cap == 1
    assert audit(eligible_snapshot(nodes=3)).cap == 2


def test_what_the_user_requires_still_decides_which_domains_count():
    assert audit(eligible_snapshot(node_affinity=with_own_terms("n1"))).cap == 2
    assert audit(eligible_snapshot(node_selector={"disk": "ssd"})).cap == 2


def test_a_pin_by_node_selector_is_no_requirement_of_the_users():
    pinned = eligible_snapshot(
        node_affinity=label_in("kubernetes.io/hostname", "n1", "n2", "n3", "n4", "n5"),
        node_selector={keys.HOSTNAME: "n1"},
        hostname="n1",
    )
    assert audit(pinned).cap == 1


def test_nodes_that_are_for_others_are_no_domains():
    ours = eligible_snapshot(nodes=3)
    theirs = [make_node(name, taints=(Taint("dedicated", "others", "NoSchedule"),)) for name in ("n4", "n5")]
    assert audit(replace(ours, nodes=(*ours.nodes, *theirs))).cap == 2


def test_min_domains_and_quorums_need_no_eligible_domains():
    assert audit(make_snapshot(desired=make_desired(6, min_domains=2), pods=members("n1", "n1", "n2"))).cap == 3
    assert audit(set_of("n1", "n2", "n3", group=PD)).cap == 1


# ---- margins


@pytest.mark.parametrize(
    ("snapshot", "isolated_by", "said"),
    [
        (set_of("n1", "n2", "n3", group=PD), None, "survives the loss of 1 node"),
        (set_of("n1", "n2", group=PD, replicas=3), None, "survives the loss of 0 nodes"),
        (set_of("n1", group=PD, replicas=3), None, "1 of 3 run: its quorum may be lost already"),
        (set_of(*("n1", "n2", "n3") * 3), None, "survives the loss of 0 nodes (1 if PD isolates by host: not checked)"),
        (set_of(*("n1", "n2", "n3") * 3), BY_HOST, "survives the loss of 1 node (since PD isolates by host)"),
        (
            set_of(*("n1", "n2", "n3") * 3),
            isolated_keys([]),
            "survives the loss of 0 nodes (1 if PD isolates by host: its location-labels do not name it)",
        ),
        (
            set_of("za1", "za2", "zb1", "zb2", "zc1", "zc2", nodes=ZONAL_NODES),
            None,
            "survives the loss of 1 node, of 0 zones (1 if PD isolates by zone: not checked)",
        ),
        (
            set_of("za1", "za2", "zb1", "zb2", "zc1", "zc2", nodes=ZONAL_NODES),
            BY_ZONE,
            "survives the loss of 1 node, of 1 zone (since PD isolates by zone)",
        ),
        (
            set_of("za1", "za1", "zb1", "zb1", "zc1", "zc1", nodes=ZONAL_NODES),
            BY_ZONE,
            "survives the loss of 1 node (since PD isolates by zone), of 1 zone (since PD isolates by zone)",
        ),
    ],
)
def test_the_margin_is_said_with_its_condition(snapshot, isolated_by, said):
    assert survival_text(audit(snapshot, isolated_by)) == said


def test_a_zone_isolates_its_hosts_only_if_each_is_in_one():
    nodes = [make_node("n1", zone="za"), make_node("n2", zone="zb"), make_node("n3")]
    found = audit(set_of(*("n1", "n2", "n3") * 3, nodes=nodes), BY_ZONE)

    assert found.margins[0].isolation is Isolation.NOT_CONFIGURED
    assert "NoMargin" in kinds(found, breaches=True)


def test_a_generic_sets_copies_are_not_pds():
    group = make_group(family=Family.GENERIC)
    found = audit(set_of(*("n1", "n2", "n3") * 3, group=group))

    assert "1 if copies are kept apart by host: not checked" in survival_text(found)


def test_a_member_that_is_going_or_is_not_ready_is_lost_already():
    for change in ({"deleting": True}, {"ready": False}):
        pods = [running_pod("db-tikv-0", "n1", **change), *members("n1", "n2", "n3")[1:]]
        found = audit(set_of(pods=pods, replicas=3))
        assert found.not_running == ("db-tikv-0",)
        assert kinds(found, breaches=True) == ["NoMargin"]


def test_what_runs_may_be_enough_only_if_copies_are_kept_apart():
    pods = [running_pod(member(i), f"n{i % 3 + 1}", ready=i % 3 > 0) for i in range(9)]

    assert audit(set_of(pods=pods, replicas=9)).now is Survival.IF_ISOLATED
    assert audit(set_of(pods=pods, replicas=9), BY_HOST).now is Survival.SURVIVES
    assert audit(set_of(pods=pods, replicas=9), frozenset()).now is Survival.BREAKS
    assert survival_text(audit(set_of(pods=pods, replicas=9))).startswith("6 of 9 run: enough if copies are kept apart")
    assert survival_text(audit(set_of(pods=pods, replicas=9), BY_HOST)) == "survives the loss of 0 nodes"


def test_a_margin_by_the_groups_own_key_is_there_too():
    nodes = [make_node(f"n{i}", labels={keys.HOSTNAME: f"n{i}", RACK: f"r{i}"}) for i in (1, 2, 3)]
    desired = make_desired(3, topology_key=RACK)
    found = audit(make_snapshot(desired=desired, nodes=nodes, pods=members("n1", "n2", "n3")))

    assert found.levels == (keys.HOSTNAME, ZONE, RACK)
    assert (found.topology_key, found.margin.survives) == (RACK, 1)
    assert survival_text(found) == "survives the loss of 1 node, of 1 rack"


def test_pds_location_labels_name_topology_keys():
    assert isolated_keys(None) is None
    assert isolated_keys(["zone", "rack", "host"]) == {ZONE, RACK, keys.HOSTNAME}


# ---- losing nodes


@pytest.mark.parametrize(
    ("nodes", "lost", "isolated_by", "said"),
    [
        ("n1 n2 n3", ["n4"], None, "no member of it is there"),
        ("n1 n2 n3", ["n1"], None, "loses 1 member (db-tikv-0): survives"),
        (
            "n1 n2 n3",
            ["n1", "n2"],
            None,
            "loses 2 members (db-tikv-0, db-tikv-1): a majority of some data's copies may be lost:"
            " 3 of 3 run now and 1 then, and whichever they are, 1 may be missing",
        ),
        (
            "n1 n2 n3 n1 n2 n3",
            ["n1"],
            None,
            "loses 2 members (db-tikv-0, db-tikv-3): survives if PD isolates by host: not checked",
        ),
        (
            "n1 n2 n3 n1 n2 n3",
            ["n1"],
            BY_HOST,
            "loses 2 members (db-tikv-0, db-tikv-3): survives, since PD isolates by host",
        ),
        (
            "n1 n1 n1 n1 n1 n1 n1",
            ["n1"],
            None,
            "loses 7 members (db-tikv-0, db-tikv-1, db-tikv-2, db-tikv-3, db-tikv-4 and 2 more):"
            " a majority of some data's copies may be lost: 7 of 7 run now and 0 then, and whichever they are,"
            " 1 may be missing",
        ),
    ],
)
def test_losing_nodes_is_said(nodes, lost, isolated_by, said):
    found = audit(set_of(*nodes.split()), isolated_by)
    assert loss_text(found, losing(found, lost)) == said


def test_losing_both_hosts_of_a_zone_survives_if_pd_isolates_by_zone():
    found = audit(set_of("za1", "za2", "zb1", "zb2", "zc1", "zc2", nodes=ZONAL_NODES), BY_ZONE)
    loss = losing(found, ["za1", "za2"])

    assert (loss.survival, loss.isolated_by) == (Survival.SURVIVES, ZONE)


@st.composite
def groups(draw):
    """A group on up to six nodes in up to three zones, some members down or absent."""
    zones = draw(st.lists(st.sampled_from(["za", "zb", "zc", ""]), min_size=1, max_size=6))
    nodes = [make_node(f"n{i}", zone=zone) for i, zone in enumerate(zones)]
    group = draw(st.sampled_from([PD, make_group()]))
    places = draw(st.lists(st.tuples(st.integers(0, len(nodes) - 1), st.booleans(), st.booleans()), max_size=6))
    pods = [
        running_pod(member(i, group), f"n{place}", group=group, ready=ready or other)
        for i, (place, ready, other) in enumerate(places)
    ]
    replicas = len(pods) + draw(st.integers(0, 1))
    desired = make_desired(replicas, group=group, copies=draw(st.sampled_from([3, 5])))
    return make_snapshot(group=group, nodes=nodes, desired=desired, pods=pods)


def left_after(snapshot, lost):
    """The snapshot once the nodes are gone."""
    return replace(snapshot, nodes=tuple(node for node in snapshot.nodes if node.name not in lost))


@settings(max_examples=200)
@given(groups(), st.sets(st.integers(0, 5)))
def test_a_quorum_or_a_minority_of_stores_is_lost_exactly_when_removing_the_nodes_loses_it(snapshot, numbers):
    lost = [f"n{number}" for number in numbers]
    found = audit(snapshot, frozenset())
    running = [pod for pod in snapshot.pods if pod.ready and pod.node_name not in lost]
    total = max(len(snapshot.pods), snapshot.desired.replicas)
    if snapshot.group is PD or found.copies == 0:
        lives = len(running) > total // 2 or total == 0
    else:
        lives = total - len(running) <= (min(total, snapshot.desired.options.copies) - 1) // 2 or total == 0

    loss = losing(found, lost)
    assert (loss.survival is Survival.SURVIVES) == lives
    assert loss.members == tuple(sorted(pod.name for pod in snapshot.pods if pod.ready and pod.node_name in lost))


@settings(max_examples=150)
@given(
    groups(), st.sampled_from([None, frozenset(), BY_HOST, isolated_keys(["zone"]), isolated_keys(["zone", "host"])])
)
def test_a_margin_of_domains_is_survived_whichever_they_are(snapshot, isolated_by):
    found = audit(snapshot, isolated_by)
    for margin in found.margins[:2]:
        places = {}
        for node in snapshot.nodes:
            value = node.labels.get(margin.topology_key)
            if value and any(one.node == node.name and one.running for one in found.members):
                places.setdefault(value, []).append(node.name)
        verdicts = Counter(
            losing(found, [name for value in chosen for name in places[value]]).survival
            for chosen in combinations(places, min(margin.survives, len(places)))
        )
        if margin.survives:
            assert set(verdicts) == {Survival.SURVIVES}


@settings(max_examples=150)
@given(groups(), st.sets(st.integers(0, 5)))
def test_whatever_is_survived_for_certain_is_survived_however_pd_isolates(snapshot, numbers):
    lost = [f"n{number}" for number in numbers]
    certain = losing(audit(snapshot, frozenset()), lost).survival
    by_host = losing(audit(snapshot, BY_HOST), lost).survival
    unknown = losing(audit(snapshot), lost).survival

    assert certain is not Survival.SURVIVES or by_host is unknown is certain
    assert by_host is not Survival.SURVIVES or unknown is not Survival.BREAKS


@settings(max_examples=150)
@given(groups(), st.randoms())
def test_the_order_of_what_is_listed_changes_nothing(snapshot, random):
    pods, nodes = list(snapshot.pods), list(snapshot.nodes)
    random.shuffle(pods)
    random.shuffle(nodes)
    assert audit(replace(snapshot, pods=tuple(pods), nodes=tuple(nodes))) == audit(snapshot)


def test_pods_without_a_node_and_claims_that_are_missing_are_no_trouble():
    waiting = make_pod("db-tikv-0", claim_names=("nothing",))
    found = audit(replace(set_of(pods=[waiting], replicas=3), claims=()))

    assert [one.domain for one in found.members] == [""]
    assert found.unlabelled == {}
