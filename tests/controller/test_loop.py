"""The leader's turns over the embedded cluster: who is freed, when, how often, and who is left alone."""

from __future__ import annotations

import json
import logging
from itertools import pairwise
from typing import Any

import pytest
from cluster_objects import (
    REQUIRED,
    SPACE,
    a_claim,
    a_generic_pod,
    a_node,
    a_pod,
    a_set,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    a_volume,
    an_object,
    claims,
    generic_world,
    owner_of,
    pinned,
    v2_instances,
    with_floor,
)
from controller.standing import Leader, cordon, play_owner, pods_of
from stand import Answered, Stand

from webhook.cluster.door import (
    ADVANCED_STATEFUL_SETS,
    CLAIMS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    V2_CLUSTERS,
    Manifest,
)
from webhook.controller.asking import GIVEN_UP, TRUST
from webhook.controller.loop import TURN
from webhook.controller.memory import FIRST_PAUSE, REPLACEMENT_TIME
from webhook.core import keys
from webhook.errors import Conflict, Forbidden, UnknownOutcome

PODS_OF_SET = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(3)]


def a_filler(node: str, cpu: str = "8") -> Manifest:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": f"filler-{node}", "namespace": SPACE}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def a_pinned_pod(spare: int = 1, pod: Manifest | None = None) -> tuple[Stand, Answered]:
    """A set of three on three nodes and some spare ones: two run, the last one is pinned and waits."""
    stand = Stand(*a_v1_world(node_count=3 + spare))
    for each in PODS_OF_SET[:2]:
        stand.bind(each["metadata"]["name"], stand.admit(each).node)
    answer = stand.admit(pod or PODS_OF_SET[2])
    assert (answer.outcome, answer.guarded) == ("pinned", False)
    return stand, answer


def a_guarded_pod() -> Stand:
    """A set of three on two nodes: two run, the last one is guarded and waits."""
    stand = Stand(*a_v1_world(node_count=2))
    for each in PODS_OF_SET[:2]:
        stand.bind(each["metadata"]["name"], stand.admit(each).node)
    assert stand.admit(PODS_OF_SET[2]).outcome == "guarded"
    return stand


# --- pinned


def go_bad(stand: Stand, node: str, how: str) -> None:
    if how == "cordoned":
        cordon(stand, node)
    elif how == "deleted":
        stand.delete(NODES, node)
    elif how == "filled":
        stand.cluster.create(PODS, a_filler(node), namespace=SPACE, timeout=1)
    elif how == "not ready":
        stand.patch(NODES, node, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    else:
        taint = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
        stand.patch(NODES, node, {"spec": {"taints": [taint]}})


@pytest.mark.parametrize("how", ["cordoned", "deleted", "filled", "not ready", "tainted"])
def test_a_pod_whose_node_went_bad_before_it_ran_is_placed_elsewhere_once(how: str) -> None:
    stand, before = a_pinned_pod()
    leader = Leader(stand)
    go_bad(stand, before.node, how)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]
    (after,) = play_owner(stand, *PODS_OF_SET)
    assert (after.outcome, after.node not in ("", before.node)) == ("pinned", True)
    leader.turns(60)
    assert leader.deleted == ["db-tikv-2"]
    assert leader.figures.rescues == [("pinned", "replaced")]
    assert leader.reasons == ["PodReplaced"]
    assert f"could not run on {before.node}" in leader.notices[0].message


def test_a_node_that_comes_back_in_time_keeps_its_pod() -> None:
    stand, before = a_pinned_pod()
    leader = Leader(stand)
    for _ in range(3):
        cordon(stand, before.node)
        leader.turns(5)
        cordon(stand, before.node, uncordon=True)
        leader.turns(5)
    assert (leader.deleted, leader.notices) == ([], [])


def test_where_nothing_better_is_there_the_pod_stays_and_the_reason_is_said_once() -> None:
    stand, before = a_pinned_pod(spare=0)
    leader = Leader(stand)
    cordon(stand, before.node)
    leader.turns(120)
    assert (leader.deleted, leader.reasons, leader.figures.waiting) == ([], ["PodCannotRun"], 1)
    message = leader.notices[0].message
    assert f"db-tikv-2 of shop/db/tikv cannot run on {before.node}" in message
    assert "node(s) were unschedulable" in message
    cordon(stand, before.node, uncordon=True)
    leader.turns(5)
    assert leader.figures.waiting == 0


def test_what_holds_a_pod_is_said_again_when_it_has_changed() -> None:
    stand, before = a_pinned_pod(spare=0)
    leader = Leader(stand)
    cordon(stand, before.node)
    leader.turns(15)
    stand.delete(NODES, before.node)
    leader.turns(30)
    assert leader.reasons == ["PodCannotRun"]
    leader.turns(60)
    assert leader.reasons == ["PodCannotRun"] * 2
    assert "the node is gone" in leader.notices[1].message


def test_a_place_that_appears_later_is_taken_at_once() -> None:
    stand, before = a_pinned_pod(spare=0)
    leader = Leader(stand)
    cordon(stand, before.node)
    leader.turns(30)
    stand.cluster.create(NODES, a_node("n9"), timeout=1)
    leader.turns(0)
    assert leader.deleted == ["db-tikv-2"]


def test_a_volume_that_makes_the_pin_impossible_moves_the_pod() -> None:
    stand, before = a_pinned_pod()
    others = [f"n{number}" for number in range(1, 5) if f"n{number}" != before.node]
    stand.cluster.create(PERSISTENT_VOLUMES, a_volume("pv-2", *others), timeout=1)
    stand.patch(CLAIMS, "tikv-db-tikv-2", {"spec": {"volumeName": "pv-2"}, "status": {"phase": "Bound"}})
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]
    assert play_owner(stand, *PODS_OF_SET)[0].node != before.node


def test_a_pod_that_is_pinned_by_its_nodeselector_is_freed_too() -> None:
    stand = Stand(*a_v2_world(), *v2_instances("a1b2c3"))
    terms = [{"matchExpressions": [{"key": keys.HOSTNAME, "operator": "Exists"}]}]
    pod = a_v2_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    before = stand.admit(pod)
    assert before.pod["spec"]["nodeSelector"] == {keys.HOSTNAME: before.record["node"]}
    cordon(stand, before.record["node"])
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["kv-tikv-a1b2c3"]


def test_a_pinned_pod_whose_own_guard_keeps_it_off_is_freed() -> None:
    stand = Stand(*a_v1_world(node_count=4))
    stand.cluster.admit(a_pod("db-tikv-1", nodeName="n1"), namespace=SPACE)
    pod = with_floor(a_pod())
    pod["spec"]["affinity"] |= pinned("n1")
    record = {"v": 1, "member": "db-tikv-0", "outcome": "pinned", "node": "n1", "domain": "n1"}
    pod["metadata"]["annotations"][keys.DECISION] = json.dumps(record)
    stand.cluster.admit(pod, namespace=SPACE)
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-0"]
    assert "anti-affinity" in leader.notices[0].message


# --- guarded


def test_a_guarded_pod_gets_a_node_that_was_added() -> None:
    stand = a_guarded_pod()
    leader = Leader(stand)
    leader.turns(20)
    assert (leader.deleted, leader.figures.waiting) == ([], 1)
    stand.cluster.create(NODES, a_node("n9"), timeout=1)
    leader.turns(5)
    assert leader.deleted == ["db-tikv-2"]
    (after,) = play_owner(stand, *PODS_OF_SET)
    assert (after.outcome, after.node) == ("pinned", "n9")
    assert leader.figures.rescues == [("guarded", "replaced")]


def test_what_is_said_of_a_guarded_pod_is_what_the_webhook_said() -> None:
    stand = a_guarded_pod()
    leader = Leader(stand)
    leader.turns(60)
    assert leader.notices == stand.notices


def test_the_floors_guard_is_replaced_by_a_pin() -> None:
    stand = Stand(*a_v1_world())
    stand.cluster.admit(with_floor(a_pod()), namespace=SPACE)
    leader = Leader(stand)
    leader.turns(5)
    assert leader.deleted == ["db-tikv-0"]
    assert play_owner(stand, a_pod())[0].outcome == "pinned"


def test_a_guarded_member_with_data_where_others_are_goes_back_to_it() -> None:
    bound = [a_claim(f"tikv-db-tikv-{ordinal}", volume="pv-1") for ordinal in range(3)]
    world = [each for each in a_v1_world() if each["kind"] != "PersistentVolumeClaim"]
    stand = Stand(*world, *bound, a_volume("pv-1", "n1"))
    for each in PODS_OF_SET[:2]:
        stand.bind(each["metadata"]["name"], stand.admit(each).node)
    stand.cluster.admit(with_floor(a_pod("db-tikv-2")), namespace=SPACE)
    leader = Leader(stand)
    leader.turns(5)
    (after,) = play_owner(stand, *PODS_OF_SET)
    assert (after.outcome, after.node) == ("returned", "n1")


def nine_of_which_one_is_guarded(*, first: bool) -> tuple[Stand, list[Manifest]]:
    """Nine stores on three nodes; the floor has guarded one that came first, or last, while we were away."""
    pods = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(9)]
    stand = Stand(*a_v1_world(replicas=9, node_count=3))
    if first:
        stand.cluster.admit(with_floor(a_pod("db-tikv-0")), namespace=SPACE)
        stand.bind("db-tikv-0", "n1")
    for pod in pods[1:] if first else pods[:8]:
        answer = stand.admit(pod)
        if answer.node:
            stand.bind(pod["metadata"]["name"], answer.node)
    if not first:
        stand.cluster.admit(with_floor(a_pod("db-tikv-8")), namespace=SPACE)
    return stand, pods


def per_node(stand: Stand) -> list[int]:
    nodes = [pod["spec"].get("nodeName", "") for pod in pods_of(stand).values()]
    return sorted(nodes.count(node) for node in {*nodes} - {""})


def run(stand: Stand, leader: Leader, pods: list[Manifest], seconds: int) -> None:
    """Turns each second, with an owner and a scheduler that are quick."""
    for _ in range(seconds):
        leader.turns(0)
        play_owner(stand, *pods)
        for name, pod in pods_of(stand).items():
            if not pod["spec"].get("nodeName") and is_open(stand, pin_of(pod)):
                stand.bind(name, pin_of(pod))
        stand.clock.elapsed += 1


def pin_of(pod: Manifest) -> str:
    return str(pod["metadata"].get("annotations", {}).get(keys.ASSIGNED_NODE, ""))


def is_open(stand: Stand, name: str) -> bool:
    """Whether there is such a node, and the scheduler would use it."""
    nodes = stand.cluster.list(NODES, timeout=1).items
    return any(node["metadata"]["name"] == name and not node["spec"].get("unschedulable") for node in nodes)


def test_nine_stores_on_three_nodes_all_run_though_one_was_guarded_at_last() -> None:
    stand, pods = nine_of_which_one_is_guarded(first=False)
    leader = Leader(stand)
    run(stand, leader, pods, 30)
    assert (per_node(stand), leader.deleted) == ([3, 3, 3], ["db-tikv-8"])


def test_a_running_guarded_member_is_named_and_never_deleted_and_once_it_is_pinned_all_nine_run() -> None:
    stand, pods = nine_of_which_one_is_guarded(first=True)
    leader = Leader(stand)
    run(stand, leader, pods, 60)
    assert (per_node(stand), leader.deleted) == ([1, 3, 3], [])
    assert any("kubectl delete pod db-tikv-0" in notice.message for notice in leader.notices)
    stand.delete(PODS, "db-tikv-0")
    run(stand, leader, pods, 30)
    assert per_node(stand) == [3, 3, 3]
    assert sorted({*leader.deleted}) == sorted(leader.deleted)


# --- left alone


def left_alone(pod: Manifest, **options: str) -> Leader:
    """The turns over one pod, stored as it is, for which there would be nodes."""
    stand = Stand(*a_v1_world(node_count=4, **options))
    stand.cluster.admit(pod, namespace=SPACE)
    leader = Leader(stand, other_schedulers=("volcano",))
    leader.turns(60)
    return leader


def guarded(**changes: Any) -> Manifest:
    pod = with_floor(a_pod(**changes.pop("pod", {})))
    for part, fields in changes.items():
        pod[part] |= fields
    return pod


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(), id="not ours"),
        pytest.param(guarded(spec={"nodeName": "n1"}), id="bound"),
        pytest.param(guarded(status={"nominatedNodeName": "n1"}), id="nominated"),
        pytest.param(guarded(status={"phase": "Failed"}), id="finished"),
        pytest.param(guarded(spec={"schedulingGates": [{"name": "quota"}]}), id="gated"),
        pytest.param(guarded(spec={"schedulerName": "tidb-scheduler"}), id="of tidb-scheduler"),
        pytest.param(guarded(spec={"schedulerName": "volcano"}), id="of another scheduler"),
        pytest.param(guarded(pod={"annotations": {keys.PREFIX + "skip": "true"}}), id="skipped"),
        pytest.param(guarded(pod={"labels": {"app": "web"}}), id="of no group"),
        pytest.param(guarded(pod={"claim": "elsewhere"}), id="without its claim"),
    ],
)
def test_a_pod_is_left_alone(pod: Manifest) -> None:
    assert left_alone(pod).deleted == []


def test_a_pod_that_belongs_to_nothing_is_left_alone() -> None:
    pod = guarded()
    del pod["metadata"]["ownerReferences"]
    assert left_alone(pod).deleted == []


def test_a_pod_that_is_being_deleted_is_left_alone() -> None:
    stand = Stand(*a_v1_world())
    pod = with_floor(a_pod())
    pod["metadata"]["finalizers"] = ["keep/it"]
    stand.cluster.admit(pod, namespace=SPACE)
    stand.delete(PODS, "db-tikv-0")
    leader = Leader(stand)
    leader.turns(60)
    assert leader.deleted == []


@pytest.mark.parametrize("options", [{"placement": "Guard"}, {"skip": "true"}])
def test_options_that_leave_the_place_to_others_hold_for_rescue(options: dict[str, str]) -> None:
    assert left_alone(guarded(), **options).deleted == []


def test_a_pod_that_its_owner_does_not_want_any_more_is_left_to_it() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    stand.patch(STATEFUL_SETS, "db-tikv", {"spec": {"replicas": 2}})
    leader = Leader(stand)
    leader.turns(60)
    assert (leader.deleted, leader.notices) == ([], [])


def test_a_pod_whose_set_is_paused_is_left_alone_until_it_goes_on() -> None:
    stand = Stand(*a_v1_world(node_count=4), {**a_set(), "apiVersion": "apps.pingcap.com/v1"})
    owner = {**owner_of(STATEFUL_SETS, "db-tikv"), "apiVersion": "apps.pingcap.com/v1"}
    cordon(stand, stand.admit(a_pod("db-tikv-0", owner=owner)).node)
    stand.patch(ADVANCED_STATEFUL_SETS, "db-tikv", {"metadata": {"annotations": {"paused-reconcile": "true"}}})
    leader = Leader(stand)
    leader.turns(60)
    assert (leader.deleted, leader.reasons, leader.figures.waiting) == ([], ["PodCannotRun"], 1)
    assert "its StatefulSet is paused by the annotation paused-reconcile" in leader.notices[0].message
    stand.patch(ADVANCED_STATEFUL_SETS, "db-tikv", {"metadata": {"annotations": {"paused-reconcile": None}}})
    leader.turns(10)
    assert leader.deleted == ["db-tikv-0"]


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion", "example.com/held"])
def test_a_pod_whose_set_is_being_deleted_is_left_alone(finalizer: str) -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    stand.patch(STATEFUL_SETS, "db-tikv", {"metadata": {"finalizers": [finalizer]}})
    stand.delete(STATEFUL_SETS, "db-tikv")
    leader = Leader(stand)
    leader.turns(60)
    assert (leader.deleted, leader.reasons) == ([], ["PodCannotRun"])
    assert "its StatefulSet is being deleted" in leader.notices[0].message


def test_kubernetes_own_sets_know_no_pause() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    stand.patch(STATEFUL_SETS, "db-tikv", {"metadata": {"annotations": {"paused-reconcile": "true"}}})
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]


@pytest.mark.parametrize("spec", [{"paused": True}, {"suspendAction": {"suspendCompute": True}}])
def test_a_v2_pod_whose_cluster_is_paused_or_suspended_is_left_alone(spec: Manifest) -> None:
    stand = Stand(*a_v2_world(), *v2_instances("a1b2c3"), an_object(V2_CLUSTERS, "db", spec=spec))
    cordon(stand, stand.admit(a_v2_pod()).node)
    leader = Leader(stand)
    leader.turns(60)
    assert (leader.deleted, leader.reasons) == ([], ["PodCannotRun"])
    assert "its owner would not create it again: its Cluster is " in leader.notices[0].message
    stand.patch(V2_CLUSTERS, "db", {"spec": {"paused": False, "suspendAction": None}})
    leader.turns(10)
    assert leader.deleted == ["kv-tikv-a1b2c3"]


def test_a_v2_pod_whose_instance_is_gone_is_left_alone() -> None:
    stand = Stand(*a_v2_world(), *v2_instances("d4e5f6"))
    cordon(stand, stand.admit(a_v2_pod()).node)
    leader = Leader(stand)
    leader.turns(60)
    assert leader.deleted == []


def test_a_guarded_pod_whose_volume_is_being_made_is_left_to_the_scheduler() -> None:
    stand = Stand(*a_v1_world())
    stand.cluster.admit(with_floor(a_pod()), namespace=SPACE)
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    stand.patch(CLAIMS, "tikv-db-tikv-0", selected)
    leader = Leader(stand)
    leader.turns(60)
    assert leader.deleted == []


def test_a_generic_set_whose_statefulset_cannot_be_read_does_not_hold_up_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand(*a_v1_world(), *[each for each in generic_world() if each["kind"] != "Node"])
    stand.cluster.admit(with_floor(a_pod()), namespace=SPACE)
    stand.cluster.admit(a_generic_pod(annotations={keys.GUARD: keys.HOSTNAME}), namespace=SPACE)
    stand.door.fails("get statefulsets raft", Forbidden("get", "statefulsets", "raft", status=403))
    leader = Leader(stand)
    leader.turns(20)
    assert leader.deleted == ["db-tikv-0"]
    assert sum("shop/raft-0 is left alone for now" in line for line in caplog.messages) == 1


def test_a_generic_member_is_freed() -> None:
    stand = Stand(*generic_world())
    before = stand.admit(a_generic_pod())
    cordon(stand, before.node)
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["raft-0"]


def pd_world() -> list[Manifest]:
    """The same cluster's PD set, with its claims."""
    return [a_set("pd"), *claims(component="pd")]


# --- one at a time, and not again and again


def test_pods_of_one_group_are_freed_one_after_another() -> None:
    stand = Stand(*a_v1_world(node_count=6))
    pods = PODS_OF_SET
    nodes = [stand.admit(pod).node for pod in pods]
    cordon(stand, *nodes)
    leader = Leader(stand)
    leader.turns(10)
    assert len(leader.deleted) == 1
    leader.turns(15)
    assert len(leader.deleted) == 1
    play_owner(stand, *pods)
    leader.turns(0)
    assert len(leader.deleted) == 2
    run(stand, leader, pods, 10)
    assert sorted(leader.deleted) == ["db-tikv-0", "db-tikv-1", "db-tikv-2"]
    assert per_node(stand) == [1, 1, 1]


def three_bad_pins() -> tuple[Stand, list[Manifest]]:
    """Two members of one group and one of another are pinned to nodes that went bad."""
    stand = Stand(*a_v1_world(node_count=6), *pd_world())
    pods = [a_pod(name) for name in ("db-pd-0", "db-pd-1", "db-tikv-0")]
    cordon(stand, *{stand.admit(pod).node for pod in pods})
    return stand, pods


def test_the_other_groups_wait_for_the_first_pod_of_all_to_come_again_with_a_decision() -> None:
    stand, pods = three_bad_pins()
    leader = Leader(stand)
    leader.turns(20)
    assert leader.deleted == ["db-pd-0"]
    play_owner(stand, *pods)
    leader.turns(0)
    assert sorted(leader.deleted[1:]) == ["db-pd-1", "db-tikv-0"]


def test_a_pod_that_does_not_come_again_holds_the_other_groups_up_for_a_time_only() -> None:
    stand, _ = three_bad_pins()
    leader = Leader(stand)
    leader.turns(10 + REPLACEMENT_TIME)
    assert len(leader.deleted) == 2


def test_the_other_groups_wait_again_when_the_last_decision_is_long_ago() -> None:
    stand, pods = three_bad_pins()
    leader = Leader(stand)
    leader.turns(10)
    play_owner(stand, *pods)
    cordon(stand, *[f"n{number}" for number in range(1, 7)], uncordon=True)
    leader.turns(TRUST)
    cordon(stand, *{pin_of(pod) for pod in pods_of(stand).values()})
    before = len(leader.deleted)
    leader.turns(10)
    assert len(leader.deleted) == before + 1


def test_a_group_whose_pod_nobody_creates_again_waits_until_it_comes_with_a_decision(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand(*a_v1_world(node_count=6))
    cordon(stand, *[stand.admit(pod).node for pod in PODS_OF_SET])
    leader = Leader(stand)
    leader.turns(10)
    leader.turns(4 * REPLACEMENT_TIME)
    assert len(leader.deleted) == 1
    assert "nobody has created it again" in caplog.text
    assert any("was freed, and has not come again" in notice.message for notice in leader.notices)
    play_owner(stand, *PODS_OF_SET)
    leader.turns(10)
    assert len(leader.deleted) == 2


def test_a_group_whose_pod_never_comes_again_goes_on_when_no_owner_can_be_that_slow() -> None:
    stand = Stand(*a_v1_world(node_count=6))
    cordon(stand, *[stand.admit(pod).node for pod in PODS_OF_SET])
    leader = Leader(stand)
    leader.turns(GIVEN_UP)
    assert len(leader.deleted) == 1
    # Its set was scaled in meanwhile.
    leader.turns(60)
    assert len(leader.deleted) == 2


def test_a_pod_of_one_name_is_freed_again_only_after_a_pause_that_doubles() -> None:
    stand, _ = a_pinned_pod(spare=3)
    leader = Leader(stand)
    times: list[float] = []
    for _ in range(80):
        stand_in = pin_of(pods_of(stand)["db-tikv-2"])
        cordon(stand, *[f"n{number}" for number in range(1, 7)], uncordon=True)
        cordon(stand, stand_in)
        before = len(leader.deleted)
        leader.turns(0)
        if len(leader.deleted) > before:
            times.append(stand.clock.elapsed)
            play_owner(stand, *PODS_OF_SET)
        stand.clock.elapsed += 5
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 3
    assert all(gap >= pause for gap, pause in zip(gaps, (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE), strict=True))


# --- others, and trouble


def test_a_pod_that_is_bound_meanwhile_is_not_deleted() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    leader = Leader(stand)
    stand.door.happens("delete pods", lambda: stand.bind("db-tikv-2", before.node))
    leader.turns(10)
    assert pods_of(stand)["db-tikv-2"]["spec"]["nodeName"] == before.node
    assert leader.figures.rescues == [("pinned", "moved-on")]
    assert leader.notices == []


@pytest.mark.parametrize("when", ["get pods db-tikv-2", "delete pods db-tikv-2"])
def test_a_pod_that_was_created_again_meanwhile_is_not_deleted(when: str) -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    leader = Leader(stand)

    def again() -> None:
        stand.delete(PODS, "db-tikv-2")
        play_owner(stand, *PODS_OF_SET)

    stand.door.happens(when, again)
    leader.turns(10)
    assert pin_of(pods_of(stand)["db-tikv-2"]) not in ("", before.node)
    assert leader.figures.rescues == [("pinned", "moved-on")]


def test_two_leaders_at_once_delete_no_pod_twice() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    one, other = Leader(stand), Leader(stand.another())
    for leader in (one, other):
        leader.turns(0)
    stand.clock.elapsed += 10
    # The other one has just read the pod when this one deletes it and its owner creates it again.

    def overtaken() -> None:
        one.turns(0)
        play_owner(stand, *PODS_OF_SET)

    other.replica.door.happens("get pods db-tikv-2", overtaken, after=True)
    other.turns(0)
    assert (one.figures.rescues, other.figures.rescues) == ([("pinned", "replaced")], [("pinned", "moved-on")])
    new = pods_of(stand)["db-tikv-2"]
    for _ in range(12):
        stand.clock.elapsed += 5
        one.turns(0)
        other.turns(0)
    assert pods_of(stand)["db-tikv-2"]["metadata"]["uid"] == new["metadata"]["uid"]


def test_after_a_leader_that_died_in_the_middle_the_next_one_goes_on() -> None:
    stand = Stand(*a_v1_world(node_count=6))
    pods = PODS_OF_SET
    cordon(stand, *[stand.admit(pod).node for pod in pods])
    dead = Leader(stand)
    dead.turns(10)
    assert len(dead.deleted) == 1
    leader = Leader(stand.another())
    run(stand, leader, pods, 40)
    assert sorted([*dead.deleted, *leader.deleted]) == ["db-tikv-0", "db-tikv-1", "db-tikv-2"]
    assert per_node(stand) == [1, 1, 1]


def test_what_is_not_allowed_is_said_once_and_the_turns_go_on(caplog: pytest.LogCaptureFixture) -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    stand.door.fails("delete pods", Forbidden("delete", "pods", "db-tikv-2", status=403))
    leader = Leader(stand)
    leader.turns(20)
    assert leader.figures.rescues == [("pinned", "failed")]
    assert sum("shop/db-tikv-2 cannot be freed: delete pods db-tikv-2: 403" in each for each in caplog.messages) == 1
    stand.door.before.clear()
    leader.turns(FIRST_PAUSE)
    assert leader.figures.rescues[-1] == ("pinned", "replaced")


def test_a_list_that_fails_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    leader = Leader(stand)
    stand.door.fails("list pods", UnknownOutcome("list", "pods", status=503))
    leader.turns(20)
    assert sum("rescue cannot go on for now" in each for each in caplog.messages) == 1
    stand.door.before.clear()
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]


def test_where_a_look_is_not_allowed_nothing_is_done(caplog: pytest.LogCaptureFixture) -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    stand.door.fails("list persistentvolumeclaims", Forbidden("list", "persistentvolumeclaims", status=403))
    leader = Leader(stand)
    leader.turns(60)
    assert leader.deleted == []
    assert sum("not allowed to list persistentvolumeclaims" in each for each in caplog.messages) == 1


def test_after_a_delete_without_an_answer_the_group_waits_for_the_pod() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)

    def lost() -> None:
        raise UnknownOutcome("delete", "pods", "db-tikv-2")

    stand.door.happens("delete pods", lost, after=True)
    leader = Leader(stand)
    leader.turns(10)
    assert leader.figures.rescues == [("pinned", "failed")]
    assert leader.rescue.turn()
    play_owner(stand, *PODS_OF_SET)
    assert not leader.rescue.turn()


def test_where_nobody_can_see_whether_a_pod_is_there_again_the_group_goes_on_in_the_end() -> None:
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    leader = Leader(stand)
    leader.turns(10)
    stand.door.fails("get pods", Conflict("get", "pods", status=409))
    assert leader.rescue.turn()
    leader.turns(REPLACEMENT_TIME)
    assert not leader.rescue.turn()


def test_a_turn_ends_in_time_and_the_next_begins_with_those_that_were_not_looked_at() -> None:
    stand = Stand(*a_v1_world(), *pd_world())
    for name in ("db-tikv-0", "db-pd-0"):
        stand.admit(a_pod(name))
    leader, began = Leader(stand), stand.clock.elapsed
    stand.door.costs = 0.45
    looks = []
    for _ in range(2):
        stand.door.calls.clear()
        leader.rescue.turn()
        looks.append({name for name in ("db-pd", "db-tikv") if f"get statefulsets {name}" in stand.door.calls})
    assert looks == [{"db-pd"}, {"db-tikv"}]
    assert stand.clock.elapsed - began <= 2 * TURN


def test_whoever_leads_again_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stand, before = a_pinned_pod()
    cordon(stand, before.node)
    leader = Leader(stand)
    leader.turns(5)
    leader.rescue.forget()
    leader.turns(5)
    assert leader.deleted == []
    leader.turns(5)
    assert leader.deleted == ["db-tikv-2"]
