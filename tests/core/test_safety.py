"""Open members and guarded members: what the cap alone does not say."""

from __future__ import annotations

from dataclasses import replace

from builders import (
    LOCAL_VOLUMES,
    ZONAL_NODES,
    ZONE,
    bound_claim,
    guarded_pod,
    make_desired,
    make_nodes,
    make_placing,
    make_pod,
    make_snapshot,
    member,
    running_members,
    running_pod,
)

from webhook.core.free_fields import FreeFields
from webhook.core.model import Decision
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide


def decided(placing=None, **snapshot) -> Decision:
    return decide(make_snapshot(**{"volumes": LOCAL_VOLUMES} | snapshot), placing or make_placing())


def test_the_new_pod_is_guarded_too_where_the_cap_would_not_bear_them():
    found = decided(pods=[make_pod(member(1)), *running_members("n2", first=2)])

    assert (found.outcome, found.guard_too) == (Outcome.PINNED, True)
    assert found.domain in ("n1", "n3")
    assert found.detail.endswith("at most 1; guarded too, since db-tikv-1 could join it")


def test_guarded_ones_need_nothing():
    found = decided(pods=[guarded_pod(member(1)), *running_members("n2", first=2)])

    assert (found.outcome, found.guard_too) == (Outcome.PINNED, False)


def test_nothing_is_needed_where_the_cap_bears_them():
    desired = make_desired(6)
    pods = [make_pod(member(1)), *running_members("n1", "n2", "n3", first=2)]
    found = decided(desired=desired, pods=pods, nodes=make_nodes(4))

    assert (found.outcome, found.node, found.cap, found.guard_too) == (Outcome.PINNED, "n4", 2, False)


def test_a_domain_with_a_member_is_not_possible_with_the_guard():
    desired = make_desired(6)
    pods = [make_pod(member(1)), *running_members("n1", "n2", "n3", first=2)]
    found = decided(desired=desired, pods=pods, nodes=make_nodes(3))

    assert found.outcome is Outcome.GUARDED
    assert found.passed_over["n1"] == (
        "domain n1 holds a member, and 1 pending without node, pin or guard by its key could join it (db-tikv-1):"
        " kubectl delete pod db-tikv-1"
    )
    assert "could join it" in found.detail


def test_a_pod_that_does_not_count_stands_in_the_guard_s_way_just_as_well():
    nodes = make_nodes(2)
    pods = [make_pod(member(1)), running_pod(member(7), "n1")]

    assert decided(pods=pods, nodes=nodes).node == "n2"
    assert decided(pods=pods, nodes=nodes[:1]).outcome is Outcome.GUARDED


def test_one_that_counts_in_the_domain_already_is_not_counted_twice():
    desired = make_desired(6)
    pods = [make_pod(member(1), nominated_node_name="n1"), *running_members("n2", "n3", first=2)]
    found = decided(desired=desired, pods=pods, nodes=make_nodes(1) + make_nodes(3)[1:])

    assert (found.cap, found.node, found.guard_too) == (2, "n1", False)


def test_a_running_guarded_member_makes_its_domain_not_possible():
    desired = make_desired(6)
    pods = [guarded_pod(member(1), node_name="n1"), *running_members("n2", "n3", "n2", "n3", first=2)]
    found = decided(desired=desired, pods=pods)

    assert found.outcome is Outcome.GUARDED
    assert found.passed_over["n1"] == (
        "guarded member db-tikv-1 keeps others off kubernetes.io/hostname=n1 until it is re-created:"
        " kubectl delete pod db-tikv-1"
    )


def test_who_waits_for_it_is_kept_off_its_domain_too_and_told_so():
    pods = [guarded_pod(member(1), node_name="n1"), *running_members("n2", "n3", "n2", "n3", first=2)]
    found = decided(desired=make_desired(6), pods=pods)

    assert found.avoids == ("n1",)
    assert found.detail.endswith("it leaves n1 to db-tikv-1: kubectl delete pod db-tikv-1, and then this one")


def test_a_full_domain_needs_not_be_left_alone_nor_one_by_another_key():
    assert decided(pods=[guarded_pod(member(1), node_name="n1")], nodes=make_nodes(1)).avoids == ()
    by_zone = guarded_pod(member(1), node_name="za1", topology_key=ZONE)
    found = decided(desired=make_desired(6), pods=[by_zone], nodes=ZONAL_NODES[:2])
    assert (found.outcome, found.avoids) == (Outcome.GUARDED, ())


def test_a_pod_whose_node_affinity_is_its_requesters_is_not_said_to_leave_any_alone():
    pods = [guarded_pod(member(1), node_name="n1"), *running_members("n2", "n3", "n2", "n3", first=2)]
    placing = replace(make_placing(), free_fields=FreeFields(pin=False))
    found = decided(placing, desired=make_desired(6), pods=pods)

    assert (found.outcome, found.avoids) == (Outcome.GUARDED, ())
    assert "it leaves" not in found.detail


def test_only_the_first_few_domains_are_left_alone():
    pods = [guarded_pod(member(i), node_name=f"n{i}") for i in range(1, 10)]
    found = decided(desired=make_desired(30), pods=pods, nodes=make_nodes(9))

    assert (found.outcome, found.cap) == (Outcome.GUARDED, 10)
    assert found.avoids == tuple(f"n{i}" for i in range(1, 9))


def test_its_domain_is_passed_over_for_another():
    pods = [guarded_pod(member(1), node_name="n1"), *running_members("n2", "n3", "n3", first=2)]

    assert decided(desired=make_desired(6), pods=pods).node == "n2"


def test_in_a_full_domain_the_cap_is_the_reason():
    found = decided(pods=[guarded_pod(member(1), node_name="n1")])

    assert found.passed_over == {"n1": "domain n1 already holds 1 of at most 1 member(s)"}


def test_a_guard_by_host_leaves_the_zone_s_other_hosts():
    pods = [guarded_pod(member(1), node_name="za1"), *running_members("zb1", "zc1", "zb2", "zc2", first=2)]
    found = decided(desired=make_desired(6, topology_key=ZONE), pods=pods, nodes=ZONAL_NODES)

    assert found.node == "za2"
    assert found.passed_over["za1"].startswith("guarded member db-tikv-1")


def test_it_keeps_even_a_returning_member_out():
    pods = [guarded_pod(member(1), node_name="n1")]
    found = decided(pods=pods, claims=[bound_claim("on-n1")])

    assert (found.outcome, found.domain) == (Outcome.RETURNED_WAITING, "n1")
    assert "kubectl delete pod db-tikv-1" in found.detail
