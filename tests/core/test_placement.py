from __future__ import annotations

from dataclasses import replace

import pytest
from builders import (
    LOCAL_VOLUMES,
    ZONAL_NODES,
    ZONE,
    make_claim,
    make_desired,
    make_entry,
    make_group,
    make_node,
    make_nodes,
    make_placing,
    make_pod,
    make_room,
    make_snapshot,
    member,
    pinned_pod,
    running_members,
    running_pod,
)

from webhook.core import keys
from webhook.core.model import Decision
from webhook.core.objects import Taint
from webhook.core.outcomes import Cause, Outcome
from webhook.core.placement import decide

OTHERS = Taint("dedicated", "others", "NoSchedule")
CORDONED = "node(s) were unschedulable"


def decided(placing=None, **snapshot) -> Decision:
    return decide(make_snapshot(**{"volumes": LOCAL_VOLUMES} | snapshot), placing or make_placing())


def test_a_decision_says_everything_that_it_rests_on():
    nodes = [make_node("n1"), make_node("n2", unschedulable=True), make_node("n3")]

    assert decided(pods=running_members("n1"), nodes=nodes) == Decision(
        outcome=Outcome.PINNED,
        node="n3",
        domain="n3",
        replicas=3,
        cap=1,
        counts={"n1": 1},
        passed_over={"n1": "domain n1 already holds 1 of at most 1 member(s)", "n2": CORDONED},
        hostname="n3",
        detail="domain n3 holds 0 member(s), at most 1",
    )


def test_three_pods_created_together_go_to_three_nodes_however_empty_one_is():
    nodes = [make_node("n1", cpu=64), *make_nodes(6)[1:]]
    rooms = {node.name: make_room(cpu=6) for node in nodes[1:]}
    entries = []
    for ordinal in range(3):
        chosen = decided(make_placing(member(ordinal)), nodes=nodes, rooms=rooms, entries=entries)
        entries.append(make_entry(member(ordinal), chosen.node))

    assert chosen.outcome is Outcome.PINNED
    assert len({entry.node for entry in entries}) == 3
    assert entries[0].node == "n1"


@pytest.mark.parametrize("component", ["tikv", "pd"])
def test_a_set_of_one_is_untouched(component):
    group = make_group(component)

    assert decided(desired=make_desired(1, group=group), group=group) == Decision(
        outcome=Outcome.UNTOUCHED,
        cause=Cause.SET_OF_ONE,
        replicas=1,
        detail="a set of one has no other member to be kept apart from",
    )


@pytest.mark.parametrize("component", ["tikv", "pd"])
def test_without_replicas_a_second_member_in_a_domain_is_held_back(component):
    group = make_group(component)
    none = make_desired(0, group=group, members=None)
    pods = [running_pod(member(1, group), "n1", group=group)]

    placing = make_placing(member(0, group), group=group)

    assert decided(placing, desired=none, group=group, pods=pods, nodes=make_nodes(1)).outcome is Outcome.GUARDED
    assert decided(placing, desired=none, group=group, pods=pods, nodes=make_nodes(2)).node == "n2"


class TestNoSafeNode:
    def test_all_nodes_hold_a_member(self):
        found = decided(
            make_placing(member(3)),
            desired=make_desired(3),
            pods=running_members("n1", "n2", "n3", first=0),
            claims=[make_claim("tikv-db-tikv-3")],
        )

        assert (found.outcome, found.cause, found.node) == (Outcome.GUARDED, Cause.NO_SAFE_NODE, "")
        assert found.passed_over == {
            name: f"domain {name} already holds 1 of at most 1 member(s)" for name in ("n1", "n2", "n3")
        }
        assert found.detail == "3 replicas, at most 1 to a node; n1 holds 1, n2 holds 1, n3 holds 1"

    def test_with_fewer_nodes_than_copies_need_the_next_store_is_held_back_and_the_message_says_so(self):
        found = decided(pods=running_members("n1", "n2"), nodes=make_nodes(2))

        assert found.outcome is Outcome.GUARDED
        assert found.detail == (
            "3 replicas, at most 1 to a node; n1 holds 1, n2 holds 1; 2 of at least 3 nodes are in use: until there"
            " are 3, one store goes to each, and the next is held back"
        )

    def test_no_node_is_possible(self):
        found = decided(nodes=make_nodes(3, unschedulable=True))

        assert found.detail == "3 replicas, at most 1 to a node; 3 node(s) were unschedulable"

    def test_there_are_no_nodes(self):
        assert decided(nodes=[]).detail == "there are no nodes"

    def test_an_unusable_zone_is_named(self):
        nodes = [replace(node, unschedulable=node.labels[ZONE] == "za") for node in ZONAL_NODES]
        pods = running_members("zb1", "zc1")
        found = decided(desired=make_desired(5, topology_key=ZONE), nodes=nodes, pods=pods)

        assert found.outcome is Outcome.GUARDED
        assert found.detail == (
            "5 replicas, at most 1 to a zone; zb holds 1, zc holds 1; 2 of at least 3 zones are in use: until there are"
            " 3, one store goes to each, and the next is held back; zone za cannot be used (2 node(s) were"
            " unschedulable); 2 node(s) were unschedulable"
        )

    def test_a_long_list_is_cut(self):
        nodes, group = make_nodes(9), make_group("pd")
        pods = [running_pod(member(i, group), f"n{i}", group=group) for i in range(1, 10)]
        found = decided(
            make_placing(member(0, group), group=group),
            desired=make_desired(3, group=group, members=None),
            group=group,
            nodes=nodes,
            pods=pods,
        )

        assert found.detail.endswith("n1 holds 1, n2 holds 1, n3 holds 1, n4 holds 1, n5 holds 1, 4 more")

    def test_fewer_stores_than_copies_are_held_back_only_where_nothing_is_possible(self):
        found = decided(desired=make_desired(2), nodes=make_nodes(1, ready=False))

        assert (found.outcome, found.cap) == (Outcome.GUARDED, None)
        assert found.detail == "2 replicas, no cap; 1 node(s) were not ready"

    def test_a_quorum_is_not_told_of_stores(self):
        group = make_group("pd")
        pods = [running_pod(member(1, group), "n1", group=group)]
        placing = make_placing(member(0, group), group=group)
        found = decided(placing, desired=make_desired(3, group=group), group=group, pods=pods, nodes=make_nodes(1))

        assert found.detail == "3 replicas, at most 1 to a node; n1 holds 1"


class TestNoCap:
    def test_two_stores_are_spread_where_they_can_be(self):
        assert decided(desired=make_desired(2), pods=running_members("n1"), nodes=make_nodes(2)).node == "n2"

    def test_two_stores_share_a_node_where_they_must(self):
        found = decided(desired=make_desired(2), pods=running_members("n1"), nodes=make_nodes(1))

        assert (found.outcome, found.node, found.cap) == (Outcome.PINNED, "n1", None)
        assert found.detail == "domain n1 holds 1 member(s), no cap"

    def test_a_member_that_cannot_be_located_holds_nobody_back(self):
        assert decided(desired=make_desired(2), pods=running_members("n9")).outcome is Outcome.PINNED

    def test_open_members_hold_nobody_back(self):
        found = decided(desired=make_desired(2), pods=[make_pod(member(1))])

        assert (found.outcome, found.guard_too) == (Outcome.PINNED, False)


class TestMinDomains:
    @pytest.mark.parametrize(("component", "replicas", "expected"), [("tikv", 4, 2), ("pd", 3, 2), ("pd", 5, 3)])
    def test_two_nodes_take_all(self, component, replicas, expected):
        group = make_group(component)
        desired = make_desired(replicas, group=group, min_domains=2)
        entries = []
        for ordinal in range(replicas):
            placing = make_placing(member(ordinal, group), group=group)
            found = decided(placing, desired=desired, group=group, nodes=make_nodes(2), entries=entries)
            entries.append(make_entry(placing.pod.name, found.node))

        assert found.outcome is Outcome.PINNED
        assert max([entry.node for entry in entries].count(node) for node in ("n1", "n2")) == expected


class TestDomainsThereAre:
    """D: the domains in use, and those that the pod could use some day."""

    FIVE_COPIES = make_desired(5, copies=5)

    def test_those_in_use_are_domains_though_the_pod_may_not_use_them(self):
        nodes = [*make_nodes(3), *(make_node(name, taints=(OTHERS,)) for name in ("n4", "n5"))]
        pods = running_members("n1", "n4", "n5")

        # k = 5 of n1 to n5: the two tainted ones are in use, so two more are to be used before any takes two.
        assert decided(desired=self.FIVE_COPIES, nodes=nodes, pods=pods).cap == 1
        # k = 3 of n1 to n3.
        assert decided(desired=self.FIVE_COPIES, nodes=nodes, pods=running_members("n1", "n2", "n3")).cap == 2

    def test_those_that_are_down_for_a_while_are_domains(self):
        nodes = [*make_nodes(3), make_node("n4", unschedulable=True), make_node("n5", ready=False)]

        assert decided(desired=self.FIVE_COPIES, nodes=nodes, pods=running_members("n1", "n2", "n3")).cap == 1


class TestUnknownDomain:
    def test_a_member_that_cannot_be_located_holds_the_next_one_back(self):
        nodes = [*make_nodes(2), make_node("n3", unschedulable=True)]
        found = decided(pods=running_members("n9"), nodes=nodes)

        assert (found.outcome, found.cause) == (Outcome.GUARDED, Cause.UNKNOWN_DOMAIN)
        assert "the node of db-tikv-1 is not known" in found.detail
        doubtful = "its node may hold db-tikv-1, whose node is not known"
        assert found.passed_over == {"n1": doubtful, "n2": doubtful, "n3": CORDONED}

    def test_a_member_on_a_node_without_the_label_holds_nobody_back_but_is_told(self):
        nodes = [*make_nodes(2), make_node("n3", labels={})]
        found = decided(
            pods=running_members("n3"), nodes=nodes, desired=make_desired(problems=("copies: 'x' is no number",))
        )

        assert found.outcome is Outcome.PINNED
        assert found.passed_over == {"n3": "node(s) had no label kubernetes.io/hostname"}
        assert found.problems == (
            "copies: 'x' is no number",
            "db-tikv-1 is on node n3, which has no label kubernetes.io/hostname: it counts in no domain",
        )


ZONAL = {"desired": make_desired(6, topology_key=ZONE), "nodes": ZONAL_NODES}


class TestSecondLevel:
    """Kept apart by zone: no host takes two while another of the zone has none."""

    def test_a_free_host_goes_before_a_taken_one(self):
        pods = running_members("za1", "zb1", "zb2", "zc1", "zc2")
        found = decided(pods=pods, **ZONAL)

        assert (found.node, found.domain) == ("za2", "za")
        assert found.passed_over["za1"] == "node already holds a member, and another node in za does not"

    def test_entries_take_hosts_too(self):
        entries = [make_entry(member(1), "za1", domain="za", topology_key=ZONE)]
        pods = running_members("zb1", "zb2", "zc1", "zc2", first=2)

        assert decided(pods=pods, entries=entries, **ZONAL).node == "za2"

    def test_a_taken_host_is_possible_where_no_other_is(self):
        nodes = [replace(node, ready=node.name != "za2") for node in ZONAL_NODES]
        pods = running_members("za1", "zb1", "zb2", "zc1", "zc2")

        assert decided(pods=pods, desired=ZONAL["desired"], nodes=nodes).node == "za1"

    def test_the_zone_s_cap_goes_before_its_hosts(self):
        found = decided(pods=running_members("za1"), desired=make_desired(3, topology_key=ZONE), nodes=ZONAL_NODES)

        assert found.domain in ("zb", "zc")
        assert found.passed_over["za2"] == "domain za already holds 1 of at most 1 member(s)"

    def test_a_node_without_the_zone_is_never_chosen(self):
        nodes = [make_node("bare", cpu=64), *ZONAL_NODES]
        found = decided(desired=make_desired(3, topology_key=ZONE), nodes=nodes)

        assert found.node != "bare"
        assert found.passed_over["bare"] == f"node(s) had no label {ZONE}"


def test_a_hostname_label_that_two_nodes_share_is_not_offered():
    nodes = [make_node("n1"), make_node("n2", labels={keys.HOSTNAME: "n1"})]

    assert decided(nodes=nodes).hostname == ""


def test_the_hostname_is_that_of_the_label_not_of_the_node():
    assert decided(nodes=[make_node("n1.example", labels={keys.HOSTNAME: "n1"})]).hostname == "n1"


def test_a_pinned_sibling_that_is_not_scheduled_yet_counts():
    found = decided(pods=[pinned_pod(member(1), "n1"), pinned_pod(member(2), "n2")])

    assert found.node == "n3"


def test_a_member_with_two_answers_in_flight_does_not_let_stores_double_up_on_two_nodes():
    """The node of the first answer was cordoned before the pod came, so another was given; only one of them counts."""
    found = decided(
        placing=make_placing(member(2)),
        desired=make_desired(4),
        nodes=[make_node("n1"), make_node("n2"), make_node("n3", unschedulable=True)],
        pods=[running_pod(member(0), "n1")],
        entries=[make_entry(member(1), "n3", token="token0001"), make_entry(member(1), "n2", token="token0002")],
    )

    assert (found.outcome, found.cap) == (Outcome.GUARDED, 1)
    assert "2 of at least 3 nodes are in use" in found.detail


def test_finished_pods_do_not_use_up_the_cap():
    pods = [*running_members("n1", "n2"), make_pod(member(3), node_name="n3", phase="Failed")]

    assert decided(pods=pods).node == "n3"


def test_min_domains_that_gives_the_quorum_away_is_said_with_the_decision():
    group = make_group("pd")
    desired = make_desired(3, group=group, min_domains=2)

    found = decided(desired=desired, group=group)

    assert found.cap == 2
    assert found.problems == (
        "min-domains 2 lets one domain hold 2 of 3 members, and so the quorum of pd: "
        "write tikv.min-domains if only TiKV is meant",
    )
    assert decided(desired=make_desired(3, min_domains=2)).problems == ()
