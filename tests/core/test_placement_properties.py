"""Properties of every decision, on clusters in any state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from builders import (
    LOCAL_VOLUMES,
    ZONE,
    by_node,
    guard_term,
    guarded_pod,
    make_claim,
    make_desired,
    make_entry,
    make_group,
    make_node,
    make_placing,
    make_pod,
    make_room,
    make_snapshot,
    make_volume,
    member,
    pinned_pod,
    pod_on,
    running_pod,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.counting import guard_key
from webhook.core.feasibility import infeasible_reason
from webhook.core.model import Entry, Placing, Snapshot
from webhook.core.objects import (
    Claim,
    HostPort,
    LabelSelector,
    Node,
    Pod,
    PodAffinityTerm,
    PodOnNode,
    SpreadConstraint,
    Taint,
)
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide
from webhook.core.volumes import claims_by_name, claims_of_pod, volume_verdict

NODE_NAMES = ("n1", "n2", "n3", "n4", "n5")
ZONE_NAMES = (*("za", "zb", "zc") * 3, "")
VOLUMES = (*LOCAL_VOLUMES, make_volume("regional", ZONE, "za", "zb"), make_volume("gone", keys.HOSTNAME, "n9"))
DEDICATED = Taint("dedicated", "other", "NoSchedule")


seldom = st.integers(0, 11).map(lambda number: number == 11)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    found = []
    for name in draw(st.lists(st.sampled_from(NODE_NAMES), min_size=2, unique=True)):
        changes = {
            "unschedulable": draw(seldom),
            "ready": not draw(seldom),
            "taints": (DEDICATED,) if draw(seldom) else (),
        }
        found.append(make_node(name, zone=draw(st.sampled_from(ZONE_NAMES)), cpu=draw(st.integers(3, 9)), **changes))
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, group, key: str) -> Pod:
    node = "n9" if draw(seldom) else draw(st.sampled_from(NODE_NAMES))
    key = keys.HOSTNAME if draw(seldom) else key
    kinds = {
        "running": running_pod(name, node, group=group),
        "pinned": pinned_pod(name, node, group=group),
        "open": make_pod(name, group=group),
        "nominated": make_pod(name, group=group, nominated_node_name=node),
        "guarded": guarded_pod(name, group=group, topology_key=key),
        "running guarded": guarded_pod(name, group=group, topology_key=key, node_name=node),
        "half guarded": make_pod(name, group=group, anti_affinity=(guard_term(group),)),
        "failed": running_pod(name, node, group=group, phase="Failed"),
        "terminating": running_pod(name, node, group=group, deleting=True),
    }
    return kinds[draw(st.sampled_from(("running", "pinned", "open", *kinds)))]


@st.composite
def entries(draw: st.DrawFn, name: str, listed: Sequence[Node], key: str) -> Entry:
    node = draw(st.sampled_from(listed))
    key = keys.HOSTNAME if draw(seldom) else key
    domain = node.labels.get(key, "za")
    return make_entry(name, node.name, domain=domain, topology_key=key, token=f"t{draw(st.integers(0, 99))}")


@st.composite
def claims(draw: st.DrawFn, name: str) -> Claim:
    if draw(st.booleans()):
        return make_claim(name, selected_node=draw(st.sampled_from(("", *NODE_NAMES))))
    volume = "unread" if draw(seldom) else draw(st.sampled_from([volume.name for volume in VOLUMES]))
    return make_claim(name, volume_name=volume)


WEB, ANYBODY = LabelSelector({"app": "web"}), LabelSelector()
PORT = (HostPort(80),)
FREE = tuple(
    replace(make_volume(f"free-{node}-{number}", keys.HOSTNAME, node), storage_class="local", phase="Available")
    for node in NODE_NAMES[:4]
    for number in (1, 2)
)


@st.composite
def others(draw: st.DrawFn) -> PodOnNode:
    """A pod that is no member, or what was read of one."""
    name = draw(st.sampled_from((*"abcdef", "db-tikv-1", "db-pd-0")))
    return pod_on(
        draw(st.sampled_from(NODE_NAMES)),
        name,
        requests={"cpu": Decimal(draw(st.integers(0, 2)))},
        priority=draw(st.sampled_from((0, 0, -1))),
        bound=not draw(seldom),
        host_ports=PORT if draw(seldom) else (),
        anti_affinity=(PodAffinityTerm(draw(st.sampled_from((keys.HOSTNAME, ZONE))), ANYBODY),) if draw(seldom) else (),
    )


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, object]:
    """What a pod seldom asks for."""
    key = draw(st.sampled_from((keys.HOSTNAME, ZONE)))
    wanted: dict[str, object] = {
        "host_ports": PORT,
        "anti_affinity": (PodAffinityTerm(key, WEB),),
        "affinity": (PodAffinityTerm(key, WEB),),
        "spread": (SpreadConstraint(key, 1, draw(st.sampled_from((WEB, ANYBODY)))),),
        "preempts": False,
    }
    return {name: wish for name, wish in wanted.items() if draw(seldom)}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Snapshot, Placing]:
    group = make_group(draw(st.sampled_from(("tikv", "pd"))))
    replicas = draw(st.integers(0, 9))
    names = [member(ordinal, group) for ordinal in range(replicas + 1)]
    listed = draw(nodes())
    key = draw(st.sampled_from((keys.HOSTNAME, ZONE)))
    visible = [draw(pods(name, group, key)) for name in draw(st.lists(st.sampled_from(names), max_size=4, unique=True))]
    options = {
        "topology_key": key,
        "min_domains": draw(st.sampled_from((None, None, 1, 2))),
        "copies": draw(st.sampled_from((1, 2, 3, 3, 5))),
    }
    if draw(seldom):
        options["failure_members"] = {draw(st.sampled_from(names)): draw(st.sampled_from(("", "uid-tikv-x")))}
    snapshot = make_snapshot(
        group=group,
        desired=make_desired(replicas, group=group, **options),
        nodes=listed,
        pods=visible,
        entries=[draw(entries(name, listed, key)) for name in draw(st.lists(st.sampled_from(names), max_size=2))],
        claims=[draw(claims(f"{group.component}-{name}")) for name in names if draw(st.integers(0, 3)) == 0],
        volumes=VOLUMES,
        rooms={node.name: make_room(cpu=draw(st.integers(0, 3))) for node in listed},
    )
    snapshot = replace(
        snapshot,
        placed_pods=by_node(*draw(st.lists(others(), max_size=5, unique_by=lambda pod: pod.name))),
        promised={draw(st.sampled_from(NODE_NAMES)): {"cpu": Decimal(draw(st.integers(0, 3)))}},
        volumes=replace(snapshot.volumes, of_class={"local": FREE}) if draw(st.booleans()) else snapshot.volumes,
    )
    return snapshot, make_placing(draw(st.sampled_from(names)), group=group, **draw(wishes()))


def node_of(snapshot: Snapshot, name: str) -> Node:
    return next(node for node in snapshot.nodes if node.name == name)


def shuffled(items: Sequence, draw: st.DataObject) -> tuple:
    return tuple(draw.draw(st.permutations(items)))


PROPERTY = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])


@PROPERTY
@given(case=cases(), data=st.data())
def test_the_order_in_which_anything_is_listed_does_not_matter(case, data):
    snapshot, placing = case
    listed = dict(data.draw(st.permutations(list(snapshot.volumes.claims.items()))))
    free = {name: shuffled(found, data) for name, found in snapshot.volumes.of_class.items()}
    placed = {name: shuffled(found, data) for name, found in snapshot.placed_pods.items()}
    other = replace(
        snapshot,
        nodes=shuffled(snapshot.nodes, data),
        pods=shuffled(snapshot.pods, data),
        entries=shuffled(snapshot.entries, data),
        claims=shuffled(snapshot.claims, data),
        rooms=dict(data.draw(st.permutations(list(snapshot.rooms.items())))),
        volumes=replace(snapshot.volumes, claims=listed, of_class=free),
        placed_pods=dict(data.draw(st.permutations(list(placed.items())))),
    )

    assert repr(decide(other, placing)) == repr(decide(snapshot, placing))


@PROPERTY
@given(case=cases())
def test_a_chosen_node_is_one_that_the_scheduler_accepts(case):
    snapshot, placing = case
    found = decide(snapshot, placing)
    assume(found.node)
    node = node_of(snapshot, found.node)

    assert infeasible_reason(placing, node, snapshot) is None
    assert (node.ready, node.unschedulable, node.taints) == (True, False, ())
    assert node.labels[found.topology_key] == found.domain
    assert found.node not in found.passed_over


@PROPERTY
@given(case=cases())
def test_a_pod_is_never_pinned_away_from_its_data(case):
    snapshot, placing = case
    found = decide(snapshot, placing)
    own = claims_of_pod(placing.pod, claims_by_name(snapshot))
    allowed = volume_verdict(own, snapshot.volumes, snapshot.nodes).nodes

    assert not found.node or allowed is None or found.node in allowed


@PROPERTY
@given(case=cases())
def test_nothing_but_a_return_goes_above_the_cap(case):
    snapshot, placing = case
    found = decide(snapshot, placing)
    above = found.cap is not None and found.counts.get(found.domain, 0) + 1 > found.cap

    if found.outcome is Outcome.PINNED:
        assert not above
    assert found.above_cap == (above and bool(found.domain))


@PROPERTY
@given(case=cases())
def test_within_the_cap_is_so_even_if_every_open_member_lands_there(case):
    snapshot, placing = case
    found = decide(snapshot, placing)
    assume(found.outcome is Outcome.PINNED and found.cap is not None and not found.guard_too)
    open_ones = [
        pod.name
        for pod in snapshot.pods
        if pod.name != placing.pod.name
        and pod.name in snapshot.desired.members
        and pod.name not in snapshot.desired.failure_members
        and not pod.finished
        and not pod.node_name
        and not pod.node_affinity
        and guard_key(pod, snapshot.group) != found.topology_key
        and not any(claim.bound for claim in claims_of_pod(pod, claims_by_name(snapshot)))
        and not any(entry.member == pod.name for entry in snapshot.entries)
        and not pod.nominated_node_name
    ]

    assert found.counts.get(found.domain, 0) + 1 + len(open_ones) <= found.cap


@PROPERTY
@given(case=cases())
def test_with_the_guard_nobody_else_is_in_the_domain(case):
    snapshot, placing = case
    waiting = tuple(make_pod(member(ordinal, snapshot.group), group=snapshot.group) for ordinal in (0, 1, 2))
    names = {pod.name for pod in waiting}
    others = [pod for pod in snapshot.pods if pod.name not in names]
    snapshot = replace(snapshot, pods=(*waiting, *others), entries=())
    found = decide(snapshot, placing)
    assume(found.guard_too)
    visible = [pod for pod in snapshot.pods if pod.name != placing.pod.name and not pod.finished]
    there = {node.name for node in snapshot.nodes if node.labels.get(found.topology_key) == found.domain}

    assert found.outcome is Outcome.PINNED
    assert found.counts.get(found.domain, 0) == 0
    assert not [pod for pod in visible if pod.node_name in there]


@PROPERTY
@given(case=cases())
def test_every_node_has_its_reason_where_none_is_chosen(case):
    snapshot, placing = case
    found = decide(snapshot, placing)
    assume(found.outcome in (Outcome.GUARDED, Outcome.RETURNED_WAITING))

    assert found.passed_over.keys() == {node.name for node in snapshot.nodes}
    assert all(found.passed_over.values())
    assert found.detail
    assert (found.node, found.guard_too, found.hostname) == ("", False, "")


@PROPERTY
@given(case=cases())
def test_asked_again_with_its_own_entry_a_member_gets_the_same_node(case):
    snapshot, placing = case
    first = decide(snapshot, placing)
    assume(first.node)
    uids = [claim.uid for claim in claims_of_pod(placing.pod, claims_by_name(snapshot))]
    entry = make_entry(
        placing.pod.name,
        first.node,
        claim_uid=uids[0] if uids else "",
        domain=first.domain,
        topology_key=first.topology_key,
        time=snapshot.now,
    )

    assert decide(replace(snapshot, entries=(*snapshot.entries, entry)), placing) == first


@PROPERTY
@given(case=cases())
def test_the_pod_s_own_pod_and_entries_do_not_count(case):
    snapshot, placing = case
    name = placing.pod.name
    without = replace(
        snapshot,
        pods=tuple(pod for pod in snapshot.pods if pod.name != name),
        entries=tuple(entry for entry in snapshot.entries if entry.member != name),
    )

    assert decide(snapshot, placing).counts == decide(without, placing).counts


@PROPERTY
@given(case=cases())
def test_only_sets_of_one_are_untouched(case):
    snapshot, placing = case

    assert (decide(snapshot, placing).outcome is Outcome.UNTOUCHED) == (snapshot.desired.replicas == 1)
