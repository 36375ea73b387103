"""Who counts: every paragraph of section 5 of docs/design.md is a row of a table here.

The pod to be placed is db-tikv-0, of five stores, on nodes n1, n2, n3.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from builders import (
    LOCAL_VOLUMES,
    ZONE,
    guard_term,
    guarded_pod,
    label_in,
    make_claim,
    make_desired,
    make_entry,
    make_group,
    make_node,
    make_nodes,
    make_placing,
    make_pod,
    make_snapshot,
    make_volume,
    pinned_pod,
    running_pod,
)

from webhook.core import keys
from webhook.core.counting import Census, guard_key, take_census
from webhook.core.objects import EMPTY, LabelSelector, Pod, PodAffinityTerm
from webhook.core.volumes import NodeIndex
from webhook.core.whereabouts import Whereabouts

LOCAL = tuple(make_volume(f"on-n{number}", keys.HOSTNAME, f"n{number}") for number in (1, 2, 3))
REGIONAL = make_volume("regional", keys.HOSTNAME, "n1", "n2")
FAR = make_volume("on-n9", keys.HOSTNAME, "n9")
PLACING = make_placing("db-tikv-0")


def census(*, placing=PLACING, **changes) -> Census:
    snapshot = make_snapshot(
        **{
            "desired": make_desired(5),
            "volumes": (*LOCAL, REGIONAL, FAR),
        }
        | changes
    )
    return take_census(Whereabouts.of(snapshot, NodeIndex(snapshot.nodes)), placing)


def counts(found: Census) -> dict[str, set[str]]:
    """Ordinals by domain."""
    return {domain: {name.rpartition("-")[2] for name in names} for domain, names in found.members.items()}


def bound(ordinal: int, volume: str, **changes):
    return make_claim(f"tikv-db-tikv-{ordinal}", volume_name=volume, **changes)


def record(member: str, node: str, domain: str, **changes: object) -> dict[str, str]:
    fields = {"v": 1, "member": member, "outcome": "pinned", "node": node, "domain": domain}
    return {keys.DECISION: json.dumps(fields | {"topologyKey": keys.HOSTNAME} | changes)}


def failed(uid: str = "") -> object:
    return make_desired(5, failure_members={"db-tikv-1": uid})


TIKV_1 = running_pod("db-tikv-1", "n1")

PODS = [
    pytest.param([TIKV_1], {"n1": {"1"}}, id="a running member, at its node"),
    pytest.param([replace(TIKV_1, ready=False)], {"n1": {"1"}}, id="one that is not Ready"),
    pytest.param([replace(TIKV_1, deleting=True)], {"n1": {"1"}}, id="a terminating one, while it is there"),
    pytest.param([replace(TIKV_1, phase="Failed")], {}, id="not a failed pod"),
    pytest.param([replace(TIKV_1, phase="Succeeded")], {}, id="nor one that has ended"),
    pytest.param([running_pod("db-tikv-7", "n1")], {}, id="not an ordinal that is no longer desired"),
    pytest.param([running_pod("db-tikv-0", "n1")], {}, id="not the pod itself"),
    pytest.param([pinned_pod("db-tikv-1", "n2")], {"n2": {"1"}}, id="a pending one, where its spec pins it"),
    pytest.param(
        [make_pod("db-tikv-1", node_selector={keys.HOSTNAME: "n2"})], {"n2": {"1"}}, id="pinned by the hostname label"
    ),
    pytest.param(
        [make_pod("db-tikv-1", node_selector={keys.HOSTNAME: "n9"})],
        {"n9": {"1"}},
        id="pinned to a hostname that is gone: still that domain",
    ),
    pytest.param([make_pod("db-tikv-1", nominated_node_name="n3")], {"n3": {"1"}}, id="where it is nominated"),
    pytest.param(
        [pinned_pod("db-tikv-1", "n2", nominated_node_name="n3")], {"n2": {"1"}}, id="the pin goes before nomination"
    ),
    pytest.param(
        [running_pod("db-tikv-1", "n1", nominated_node_name="n3", node_affinity=label_in("disk", "ssd"))],
        {"n1": {"1"}},
        id="the node goes before everything",
    ),
    pytest.param([make_pod("db-tikv-1", nominated_node_name="n9")], {}, id="a nomination to a node that is gone"),
    pytest.param([make_pod("db-tikv-1")], {}, id="an open member: nowhere"),
    pytest.param(
        [TIKV_1, running_pod("db-tikv-2", "n1"), running_pod("db-tikv-3", "n2")],
        {"n1": {"1", "2"}, "n2": {"3"}},
        id="several",
    ),
]


@pytest.mark.parametrize(("pods", "expected"), PODS)
def test_a_visible_pod_counts_where_it_is_or_must_go(pods, expected):
    found = census(pods=pods)

    assert (counts(found), found.unknown) == (expected, ())


ENTRIES = [
    pytest.param([], [make_entry("db-tikv-1", "n2")], {"n2": {"1"}}, id="a member that is not visible"),
    pytest.param([TIKV_1], [make_entry("db-tikv-1", "n2")], {"n1": {"1"}, "n2": {"1"}}, id="at both places"),
    pytest.param([TIKV_1], [make_entry("db-tikv-1", "n1")], {"n1": {"1"}}, id="at most once in a domain"),
    pytest.param(
        [],
        [make_entry("db-tikv-1", "n2"), make_entry("db-tikv-1", "n3", token="later")],
        {"n2": {"1"}, "n3": {"1"}},
        id="each of two entries",
    ),
    pytest.param([], [make_entry("db-tikv-0", "n2")], {}, id="not the pod's own"),
    pytest.param([], [make_entry("db-tikv-7", "n2")], {"n2": {"7"}}, id="of an ordinal that is no longer desired"),
    pytest.param(
        [running_pod("db-tikv-7", "n1")], [make_entry("db-tikv-7", "n2")], {"n2": {"7"}}, id="though its pod does not"
    ),
    pytest.param(
        [replace(TIKV_1, phase="Failed")], [make_entry("db-tikv-1", "n2")], {"n2": {"1"}}, id="beside a finished pod"
    ),
    pytest.param(
        [], [make_entry("db-tikv-1", "", domain="n2")], {"n2": {"1"}}, id="of a member that returns to a domain"
    ),
    pytest.param(
        [], [make_entry("db-tikv-1", "n9")], {"n9": {"1"}}, id="its own domain, though the node is gone since"
    ),
    pytest.param(
        [],
        [make_entry("db-tikv-1", "n2", domain="zb", topology_key=ZONE)],
        {"n2": {"1"}},
        id="by another key: its node's label",
    ),
    pytest.param(
        [pinned_pod("db-tikv-1", "n1", annotations=record("db-tikv-1", "n1", "n1", token="t1"))],
        [make_entry("db-tikv-1", "n2", token="t1")],
        {"n1": {"1"}},
        id="not one whose token the visible pod carries: it is over",
    ),
    pytest.param(
        [pinned_pod("db-tikv-1", "n1", annotations=record("db-tikv-1", "n1", "n1", token="t1"))],
        [make_entry("db-tikv-1", "n2", token="t2")],
        {"n1": {"1"}, "n2": {"1"}},
        id="but one with another token",
    ),
    pytest.param(
        [pinned_pod("db-tikv-1", "n1", annotations=record("db-tikv-4", "n1", "n1", token="t1"))],
        [make_entry("db-tikv-1", "n2", token="t1")],
        {"n1": {"1"}, "n2": {"1"}},
        id="a record under another name carries nothing",
    ),
]


@pytest.mark.parametrize(("pods", "entries", "expected"), ENTRIES)
def test_a_live_entry_counts_where_its_answer_may_put_the_pod(pods, entries, expected):
    found = census(pods=pods, entries=entries)

    assert counts(found) == expected
    assert found.unknown == ()


FAILURES = [
    pytest.param(TIKV_1, failed(), "", {"n1": {"1"}}, id="Ready again: it counts"),
    pytest.param(replace(TIKV_1, ready=False), failed(), "", {}, id="not Ready, no claim uid on record"),
    pytest.param(replace(TIKV_1, ready=False), failed("old"), "old", {}, id="with the claim that it failed with"),
    pytest.param(
        replace(TIKV_1, ready=False), failed("old"), "new", {"n1": {"1"}}, id="on another claim: a new member"
    ),
    pytest.param(pinned_pod("db-tikv-1", "n2"), failed("old"), "old", {}, id="pending"),
]


@pytest.mark.parametrize(("pod", "desired", "uid", "expected"), FAILURES)
def test_a_failed_member_counts_only_when_it_is_back(pod, desired, uid, expected):
    claims = [make_claim("tikv-db-tikv-1", uid=uid)]

    assert counts(census(pods=[pod], desired=desired, claims=claims)) == expected


def test_the_entries_of_a_failed_member_count():
    found = census(pods=[replace(TIKV_1, ready=False)], desired=failed(), entries=[make_entry("db-tikv-1", "n2")])

    assert counts(found) == {"n2": {"1"}}


RETURNING = [
    pytest.param([], [bound(1, "on-n2")], {"n2": {"1"}}, id="no pod at all"),
    pytest.param([make_pod("db-tikv-1")], [bound(1, "on-n2")], {"n2": {"1"}}, id="pending"),
    pytest.param(
        [make_pod("db-tikv-1", deleting=True)], [bound(1, "on-n2")], {"n2": {"1"}}, id="pending and terminating"
    ),
    pytest.param([replace(TIKV_1, phase="Failed")], [bound(1, "on-n1")], {"n1": {"1"}}, id="finished: it comes back"),
    pytest.param([], [bound(1, "regional")], {}, id="volumes that allow several domains"),
    pytest.param([], [make_claim("tikv-db-tikv-1", volume_name="on-n2", phase="Pending")], {}, id="not bound yet"),
    pytest.param([], [bound(1, "on-n9")], {"n9": {"1"}}, id="its node is gone: still that domain"),
    pytest.param([], [bound(7, "on-n2")], {}, id="not an ordinal that is no longer desired"),
    pytest.param([make_pod("db-tikv-7")], [bound(7, "on-n2")], {}, id="nor its pending pod"),
    pytest.param([], [bound(0, "on-n2")], {}, id="not the pod itself"),
    pytest.param(
        [TIKV_1], [bound(1, "on-n2")], {"n1": {"1"}}, id="not one that has a node: where it is is where it is"
    ),
    pytest.param(
        [pinned_pod("db-tikv-1", "n1")], [bound(1, "on-n2")], {"n1": {"1"}, "n2": {"1"}}, id="pinned elsewhere: both"
    ),
    pytest.param(
        [],
        [make_claim("wal-db-tikv-1"), make_claim("wal-tikv-db-tikv-1", volume_name="on-n3")],
        {"n3": {"1"}},
        id="any of its claims",
    ),
    pytest.param([], [make_claim("tikv-other-db-tikv-11", volume_name="on-n2")], {}, id="not by a longer number"),
]


@pytest.mark.parametrize(("pods", "claims", "expected"), RETURNING)
def test_a_member_without_a_node_counts_where_its_data_waits(pods, claims, expected):
    assert counts(census(pods=pods, claims=claims)) == expected


@pytest.mark.parametrize("pods", [[], [make_pod("db-tikv-1")], [replace(TIKV_1, phase="Failed")]])
def test_a_failed_member_does_not_return(pods):
    found = census(pods=pods, desired=failed(), claims=[bound(1, "on-n2")])

    assert counts(found) == {}


def test_where_names_are_random_every_visible_pod_is_desired():
    nameless = make_desired(5, members=None)
    pods = [running_pod("db-tikv-x7ab2c", "n1"), make_pod("db-tikv-9k2l1m", phase="Failed")]

    found = census(pods=pods, desired=nameless, claims=[make_claim("tikv-db-tikv-9k2l1m", volume_name="on-n2")])

    assert found.members == {"n1": {"db-tikv-x7ab2c"}, "n2": {"db-tikv-9k2l1m"}}


GONE = [
    pytest.param(EMPTY, [], None, id="nothing names it"),
    pytest.param(record("db-tikv-1", "n9", "n9"), [], "n9", id="its record"),
    pytest.param(record("db-tikv-1", "n9", "zb", topologyKey=ZONE), [], None, id="not a record by another key"),
    pytest.param(record("db-tikv-1", "n8", "n8"), [], None, id="not a record for another node"),
    pytest.param(record("db-tikv-2", "n9", "n9"), [], None, id="not a record of another member"),
    pytest.param({keys.DECISION: "{"}, [], None, id="not an unreadable record"),
    pytest.param(record("db-tikv-1", "n9", ""), [], None, id="not a record without a domain"),
    pytest.param(EMPTY, [bound(1, "on-n9")], "n9", id="else its volume"),
    pytest.param(record("db-tikv-1", "n9", "h9"), [bound(1, "on-n9")], "h9", id="the record goes first"),
    pytest.param(EMPTY, [bound(1, "regional")], None, id="not a volume that allows several"),
]


@pytest.mark.parametrize(("annotations", "claims", "expected"), GONE)
@pytest.mark.parametrize("pending", [False, True], ids=["bound to it", "pinned to it"])
def test_a_member_whose_node_is_gone_counts_where_it_is_known_to_be(annotations, claims, expected, pending):
    pod = pinned_pod("db-tikv-1", "n9") if pending else running_pod("db-tikv-1", "n9")
    found = census(pods=[replace(pod, annotations=annotations)], claims=claims)

    if expected is None:
        assert (counts(found), found.unknown) == ({}, ("db-tikv-1",))
    else:
        assert (expected in found.members, found.unknown) == (True, ())


def test_a_v2_pin_to_a_host_that_is_gone_is_found_by_its_record():
    annotations = record("db-tikv-1", "n9", "zb", topologyKey=ZONE, hostname="host-9")
    pod = make_pod("db-tikv-1", node_selector={keys.HOSTNAME: "host-9"}, annotations=annotations)

    found = census(pods=[pod], desired=make_desired(5, topology_key=ZONE), nodes=[make_node("n1", zone="za")])

    assert counts(found) == {"zb": {"1"}}


def test_a_hostname_that_two_nodes_share_is_no_pin_by_zone():
    nodes = [make_node(name, labels={keys.HOSTNAME: "same", ZONE: zone}) for name, zone in (("n1", "za"), ("n2", "zb"))]
    pod = make_pod("db-tikv-1", node_selector={keys.HOSTNAME: "same"})

    by_zone = census(pods=[pod], nodes=nodes, desired=make_desired(5, topology_key=ZONE))
    by_host = census(pods=[pod], nodes=nodes)

    assert (counts(by_zone), by_zone.open_members) == ({}, {"db-tikv-1"})
    assert (counts(by_host), by_host.open_members) == ({"same": {"1"}}, set())


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(make_entry("db-tikv-1", "n9", domain="zb", topology_key=ZONE), id="node gone"),
        pytest.param(make_entry("db-tikv-1", "", domain="zb", topology_key=ZONE), id="no node"),
        pytest.param(make_entry("db-tikv-1", "bare", domain="zb", topology_key=ZONE), id="node without the label"),
        pytest.param(make_entry("db-tikv-1", "n9", domain=""), id="no domain"),
    ],
)
def test_an_entry_by_another_key_whose_node_says_nothing_is_unknown(entry):
    found = census(entries=[entry], nodes=[*make_nodes(3), make_node("bare", labels={})])

    assert (counts(found), found.unknown) == ({}, ("db-tikv-1",))


def test_a_member_on_a_node_without_the_label_is_in_no_domain_and_is_told():
    found = census(pods=[running_pod("db-tikv-1", "bare")], nodes=[*make_nodes(2), make_node("bare", labels={})])

    assert (counts(found), found.unknown) == ({}, ())
    assert found.problems == (
        "db-tikv-1 is on node bare, which has no label kubernetes.io/hostname: it counts in no domain",
    )


def test_a_label_that_went_after_the_decision_is_not_forgotten():
    pod = running_pod("db-tikv-1", "bare", annotations=record("db-tikv-1", "bare", "bare"))

    assert counts(census(pods=[pod], nodes=[make_node("bare", labels={})])) == {"bare": {"1"}}


def test_domains_in_use_are_those_of_all_nodes_also_those_the_pod_may_not_use():
    nodes = [make_node("n1", ready=False), make_node("n2", unschedulable=True), make_node("n3")]
    pods = [running_pod("db-tikv-1", "n1"), running_pod("db-tikv-2", "n2")]

    assert counts(census(pods=pods, nodes=nodes)) == {"n1": {"1"}, "n2": {"2"}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("1", "n1"), ("2", "n2")], 2),
        ([("1", "n1"), ("1", "n2")], 1),
        ([("1", "n1"), ("2", "n2"), ("2", "n3")], 2),
        ([("1", "n1"), ("2", "n1"), ("2", "n3")], 1),
        ([("1", "n1"), ("2", "n2"), ("2", "n3"), ("3", "n2"), ("3", "n3")], 2),
        ([("1", "n1"), ("9", "n3")], 1),
    ],
    ids=["one each", "one twice", "in new ones", "perhaps beside another", "perhaps together", "not desired any more"],
)
def test_a_member_that_may_be_in_several_domains_makes_at_most_one_of_them_one_in_use(entries, expected):
    recorded = [
        make_entry(f"db-tikv-{ordinal}", node, token=f"token{place:04d}")
        for place, (ordinal, node) in enumerate(entries)
    ]

    assert census(entries=recorded).in_use == expected


def test_hosts_are_counted_besides_domains():
    nodes = [make_node("n1", zone="za"), make_node("n2", zone="za")]
    found = census(
        pods=[running_pod("db-tikv-1", "n1")],
        entries=[make_entry("db-tikv-2", "n2", domain="za", topology_key=ZONE)],
        nodes=nodes,
        desired=make_desired(5, topology_key=ZONE),
    )

    assert counts(found) == {"za": {"1", "2"}}
    assert found.hosts == {"n1": {"db-tikv-1"}, "n2": {"db-tikv-2"}}


OPEN = [
    pytest.param(make_pod("db-tikv-1"), True, id="pending, neither node nor pin"),
    pytest.param(running_pod("db-tikv-1", "n1"), False, id="it has a node"),
    pytest.param(pinned_pod("db-tikv-1", "n1"), False, id="it has a pin"),
    pytest.param(make_pod("db-tikv-1", nominated_node_name="n1"), True, id="a nomination binds nobody"),
    pytest.param(make_pod("db-tikv-1", deleting=True), False, id="it goes away and cannot be bound any more"),
    pytest.param(make_pod("db-tikv-1", phase="Failed"), False, id="it has finished"),
    pytest.param(make_pod("db-tikv-7"), False, id="it is no longer desired"),
    pytest.param(guarded_pod("db-tikv-1"), False, id="it carries the guard"),
    pytest.param(replace(guarded_pod("db-tikv-1"), anti_affinity=()), True, id="the annotation alone guards nothing"),
    pytest.param(replace(guarded_pod("db-tikv-1"), annotations=EMPTY), True, id="the term alone is not ours"),
    pytest.param(guarded_pod("db-tikv-1", topology_key=ZONE), True, id="a guard by another key"),
    pytest.param(make_pod("db-tikv-2"), False, id="bound to return"),
]


@pytest.mark.parametrize(("pod", "expected"), OPEN)
def test_an_open_member_could_land_anywhere(pod, expected):
    assert bool(census(pods=[pod], claims=[bound(2, "on-n2")]).open_members) is expected


def test_a_failed_member_is_not_open():
    assert census(pods=[make_pod("db-tikv-1")], desired=failed()).open_members == set()


def test_an_open_member_that_counts_in_a_domain_already_does_not_join_it():
    found = census(pods=[make_pod("db-tikv-1"), make_pod("db-tikv-2")], entries=[make_entry("db-tikv-1", "n1")])

    assert found.may_join("n1") == {"db-tikv-2"}
    assert found.may_join("n2") == {"db-tikv-1", "db-tikv-2"}


def term(**changes) -> PodAffinityTerm:
    return replace(guard_term(), **changes)


@pytest.mark.parametrize(
    ("anti_affinity", "expected"),
    [
        pytest.param((term(),), keys.HOSTNAME, id="the term"),
        pytest.param((term(namespaces=("t1",)),), keys.HOSTNAME, id="with the own namespace spelt out"),
        pytest.param((term(topology_key=ZONE), term()), keys.HOSTNAME, id="beside the user's"),
        pytest.param((term(topology_key=ZONE),), "", id="by another key"),
        pytest.param((term(namespaces=("t2",)),), "", id="of another namespace"),
        pytest.param((term(namespace_selector=LabelSelector()),), "", id="of every namespace"),
        pytest.param((term(selector=None),), "", id="without a selector"),
        pytest.param((guard_term(make_group("pd")),), "", id="of another component"),
        pytest.param((), "", id="no term"),
    ],
)
def test_the_guard_is_the_annotation_and_the_equal_term(anti_affinity, expected):
    assert guard_key(guarded_pod("db-tikv-1", anti_affinity=anti_affinity), make_group()) == expected


HELD = [
    pytest.param(guarded_pod("db-tikv-1", node_name="n1"), {(keys.HOSTNAME, "n1")}, id="running"),
    pytest.param(guarded_pod("db-tikv-1"), set(), id="waiting"),
    pytest.param(
        guarded_pod("db-tikv-1", node_affinity=pinned_pod("x", "n1").node_affinity),
        {(keys.HOSTNAME, "n1")},
        id="pinned as well",
    ),
    pytest.param(guarded_pod("db-tikv-1", nominated_node_name="n1"), {(keys.HOSTNAME, "n1")}, id="nominated"),
    pytest.param(guarded_pod("db-tikv-7", node_name="n1"), {(keys.HOSTNAME, "n1")}, id="no longer desired"),
    pytest.param(guarded_pod("db-tikv-1", node_name="n1", phase="Failed"), set(), id="finished"),
    pytest.param(guarded_pod("db-tikv-0", node_name="n1"), set(), id="the pod itself"),
    pytest.param(guarded_pod("db-tikv-1", topology_key=ZONE, node_name="n1"), {(ZONE, "za")}, id="by another key"),
    pytest.param(guarded_pod("db-tikv-1", topology_key=ZONE, node_name="n9"), set(), id="by another key, node gone"),
]


@pytest.mark.parametrize(("pod", "expected"), HELD)
def test_a_guarded_member_keeps_others_off_its_domain(pod: Pod, expected):
    assert census(pods=[pod], nodes=[make_node("n1", zone="za")]).guards.keys() == expected


def test_the_guard_of_an_answer_that_is_on_its_way_keeps_others_off_too():
    entries = [make_entry("db-tikv-1", "n1", guarded=True), make_entry("db-tikv-2", "n2")]
    assert census(entries=entries, nodes=make_nodes(2)).guards == {(keys.HOSTNAME, "n1"): "db-tikv-1"}


def test_occupied_domains_are_those_of_all_pods_that_the_scheduler_sees():
    found = census(
        pods=[running_pod("db-tikv-7", "n1"), running_pod("db-tikv-1", "n2", ready=False)],
        entries=[make_entry("db-tikv-2", "n3")],
        desired=failed(),
    )

    assert (counts(found), found.occupied) == ({"n3": {"2"}}, {"n1", "n2", "n3"})


def test_a_v2_member_that_restarts_counts_where_its_data_is():
    restarting = make_claim("data-kv-tikv-a", volume_name="on-n2")
    desired = replace(make_desired(), members=None, instances=("kv-tikv-a", "kv-tikv-b"))

    found = census(desired=desired, claims=[restarting], volumes=LOCAL_VOLUMES)

    assert found.members == {"n2": {"kv-tikv-a"}}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param({"selected_node": "n2"}, {"n2": {"db-tikv-1"}}, id="the scheduler has chosen a node for it"),
        pytest.param({"selected_node": "n9"}, {}, id="the node is gone"),
        pytest.param({"selected_node": "n2", "volume_name": "on-n3"}, {"n3": {"db-tikv-1"}}, id="made meanwhile"),
    ],
)
def test_a_member_without_a_pod_counts_where_its_volume_is_being_made(claim, expected):
    found = census(claims=[make_claim("tikv-db-tikv-1", **claim)], volumes=LOCAL_VOLUMES)

    assert found.members == expected
