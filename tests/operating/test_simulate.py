"""`simulate`: steps on a copy; where pods would go, what would wait, and what each group survives after each step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    ZONE,
    a_claim,
    a_cluster,
    a_node,
    a_pod,
    a_v2_pod,
    a_v2_world,
    a_volume,
    an_object,
    labels_v1,
    labels_v2,
    nodes,
    owner_of,
    v2_instances,
)
from dumps import a_set as a_whole_set
from operating.asked import connected, dump, run
from operating.ward import Ward
from stand import Stand

from webhook.cluster.door import (
    CLAIMS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    TIKV_GROUPS,
    TIKVS,
    Manifest,
)
from webhook.core import keys
from webhook.errors import Forbidden, SettingsError
from webhook.operating.simulating.copying import copy_of
from webhook.operating.simulating.run import Stage, is_safe, simulate
from webhook.operating.simulating.steps import AddNodes, LoseNodes, LoseZone, Scale, Step, step_from


def a_set(component: str = "tikv", replicas: int = 3) -> Manifest:
    """A set with its template, whose claims are of the class of `Stand`."""
    labels = labels_v1(component)
    made = a_whole_set(f"db-{component}", replicas=replicas, labels=labels, claims=(component,))
    made["metadata"] |= {"namespace": SPACE, "ownerReferences": [owner_of(TIDB_CLUSTERS, "db")]}
    return made


def running(stand: Stand, *names: str) -> Stand:
    """Members that the webhook placed, and that run."""
    for name in names:
        node = stand.admit(a_pod(name)).node
        assert node
        stand.bind(name, node)
        stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    return stand


def a_stand(
    component: str = "tikv",
    replicas: int = 3,
    *,
    made: Iterable[Manifest] = (),
    there: int | None = None,
    **options: str,
) -> Stand:
    """A set of so many running members (`there`: of which only so many are) on three nodes, or on `made`."""
    named = [a_claim(f"{component}-db-{component}-{n}", labels_v1(component)) for n in range(replicas)]
    stand = Stand(*(made or nodes()), a_set(component, replicas), a_cluster(**options), *named)
    return running(stand, *(f"db-{component}-{n}" for n in range(replicas if there is None else there)))


def stages(stand: Stand, *steps: str, **settings: Any) -> tuple[Stage, ...]:
    """The stages of a simulation."""
    notes: list[str] = []
    taken = [step_from(step, SPACE) for step in steps]
    found = tuple(simulate(connected(stand), taken, notes, **settings))
    assert notes == []
    return found


def where(stage: Stage) -> dict[str, str]:
    """The node of each pod that was decided on; "" for one that waits."""
    return {placed.name: placed.node for placed in stage.placed}


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("scale:db-tikv=6", Scale("shop", "db-tikv", 6)),
        ("scale:prod/db-tikv=0", Scale("prod", "db-tikv", 0)),
        ("lose-node:n1", LoseNodes(("n1",))),
        ("lose-node:n1,n2", LoseNodes(("n1", "n2"))),
        ("lose-zone:eu-1a", LoseZone("eu-1a")),
        ("add-nodes:3", AddNodes(3)),
        ("add-nodes:3@eu-1a", AddNodes(3, "eu-1a")),
    ],
)
def test_steps_are_read(text: str, step: Step):
    assert step_from(text, SPACE) == step


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("", "must be scale:"),
        ("scale:db-tikv", "must be scale:"),
        ("scale:db-tikv=-1", "must be scale:"),
        ("scale:db-tikv=1001", "at most 1000 replicas"),
        ("lose-node:", "must be scale:"),
        ("lose-node:,", "must be scale:"),
        ("lose-zone:", "must be scale:"),
        ("add-nodes:0", "from 1 to 1000 nodes"),
        ("add-nodes:x", "must be scale:"),
        ("drain:n1", "lose-node:NODE"),
    ],
)
def test_what_is_no_step_says_what_is(text: str, right: str):
    with pytest.raises(SettingsError, match=right) as caught:
        step_from(text, SPACE)

    assert repr(text) in str(caught.value)


def test_the_first_stage_is_the_cluster_as_it_is():
    (now,) = stages(a_stand())

    assert (now.title, now.placed, now.losses, now.lost) == ("now", (), (), ())
    assert now.report.rows[0].running == 3


def test_more_replicas_are_placed_by_the_rule():
    _, after = stages(a_stand(), "scale:db-tikv=6")

    assert sorted(where(after).values()) == ["n1", "n2", "n3"]
    assert after.report.rows[0].running == 6
    assert after.title == "scale shop/db-tikv to 6"


def test_fewer_replicas_take_the_last_away():
    _, after = stages(a_stand("pd", 5, made=nodes(5)), "scale:db-pd=3")

    assert after.placed == ()
    assert [member.name for member in after.report.rows[0].audited.members] == ["db-pd-0", "db-pd-1", "db-pd-2"]


def test_a_lost_node_says_what_it_takes_and_where_its_pods_would_go():
    stand = a_stand("pd", made=nodes(4))
    node = stand.cluster.get(PODS, "db-pd-0", namespace=SPACE, timeout=1)["spec"]["nodeName"]

    _, after = stages(stand, f"lose-node:{node}")

    assert [(loss.text, loss.safe) for loss in after.losses] == [("loses 1 member (db-pd-0): survives", True)]
    assert where(after)["db-pd-0"] not in ("", node)
    assert is_safe((after,))


@pytest.mark.parametrize(
    ("component", "left", "said"),
    [
        ("tikv", 0, "is scaled in to nobody: its data is lost"),
        ("tikv", 1, "is scaled in to 1: 3 copies of its data are not kept by so few stores"),
        ("tikv", 2, "is scaled in to 2: 3 copies of its data are not kept by so few stores"),
        ("pd", 0, "is scaled in to nobody: its quorum and data are lost"),
    ],
)
def test_scaling_in_to_too_few_loses_what_they_hold(component: str, left: int, said: str):
    found = stages(a_stand(component), f"scale:db-{component}={left}")

    assert [(loss.text, loss.safe) for loss in found[1].losses] == [(said, False)]
    assert not is_safe(found)


@pytest.mark.parametrize(("component", "left"), [("pd", 3), ("pd", 1), ("tikv", 3), ("tikv", 4)])
def test_scaling_in_to_enough_is_taken_to_be_orderly(component: str, left: int):
    found = stages(a_stand(component, 5, made=nodes(5)), f"scale:db-{component}={left}")

    assert found[1].losses == ()
    assert found[1].title.endswith("taken to leave one at a time, each when what it holds is with others")
    assert is_safe(found)


def test_a_loss_that_breaks_is_no_success_though_all_run_again_after_it():
    stand = a_stand("pd", made=nodes(6))
    pods = stand.cluster.list(PODS, namespace=SPACE, timeout=1).items
    two = ",".join(pod["spec"]["nodeName"] for pod in pods[:2])

    found = stages(stand, f"lose-node:{two}")

    assert [loss.text for loss in found[1].losses] == [
        "loses 2 members (db-pd-0, db-pd-1): its quorum may be lost: 3 of 3 run now and 1 then, 2 are needed"
    ]
    assert found[1].report.rows[0].running == 3
    assert found[1].lost == ("shop/db/pd",)
    assert not is_safe(found)


def test_pods_for_which_there_is_no_node_wait_and_are_placed_when_one_comes():
    stand = a_stand("pd")

    _, lost, added = stages(stand, "lose-node:n1", "add-nodes:1")

    assert list(where(lost).values()) == [""]
    assert lost.waiting[0].outcome == "guarded"
    assert list(where(added).values()) == ["new-1"]
    assert not is_safe((lost,))
    assert is_safe((added,))


def test_a_zone_is_lost_with_all_its_nodes():
    made = [a_node(f"n{n}", zone=f"z{n % 3}") for n in range(1, 7)]

    _, after = stages(a_stand("pd", made=made), "lose-zone:z1")

    names = {node.name for node in after.report.nodes}
    assert names == {"n2", "n3", "n5", "n6"}


def test_new_nodes_are_like_those_of_their_zone():
    made = [a_node("n1", zone="z1", unschedulable=True), a_node("n2", zone="z1"), a_node("n3", zone="z2")]
    made[1]["spec"]["taints"] = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "tikv", "effect": "NoSchedule"},
    ]
    stand = Stand(*made, a_set(), a_cluster())

    _, after = stages(stand, "add-nodes:2@z1")

    new = [node for node in after.report.nodes if node.name.startswith("new-")]
    assert [node.name for node in new] == ["new-1", "new-2"]
    assert {node.labels[ZONE] for node in new} == {"z1"}
    assert [[taint.key for taint in node.taints] for node in new] == [["dedicated"], ["dedicated"]]
    assert not any(node.unschedulable for node in new)


def test_new_nodes_of_a_new_zone_are_like_any_other():
    _, after = stages(Stand(a_node("n1"), a_node("new-1"), a_set(), a_cluster()), "add-nodes:1@z9")

    assert [(node.name, node.labels.get(ZONE)) for node in after.report.nodes][1:] == [("new-1", None), ("new-2", "z9")]


def test_where_there_are_only_cordoned_nodes_new_ones_can_be_used():
    _, after = stages(Stand(a_node("n1", unschedulable=True)), "add-nodes:1")

    assert [node.unschedulable for node in after.report.nodes] == [True, False]


def test_without_nodes_there_is_nothing_that_new_ones_could_be_like():
    with pytest.raises(SettingsError, match="no node that new ones could be like"):
        stages(Stand(a_set()), "add-nodes:1")


def test_new_nodes_are_like_those_that_members_run_on_and_it_is_said_which():
    made = [
        a_node("a1", cpu="2"),
        a_node("a2", cpu="2"),
        a_node("b1", unschedulable=True),
        *(a_node(f"b{number}") for number in range(2, 5)),
        a_node("c1", taints=[{"key": "maintenance", "effect": "NoSchedule"}]),
    ]
    stand = Stand(*made, a_set(), a_cluster(), *(a_claim(f"tikv-db-tikv-{n}", labels_v1()) for n in range(3)))
    for number, node in enumerate(("b1", "b2", "b3")):
        pod = stand.review(a_pod(f"db-tikv-{number}")).pod
        stand.cluster.admit(pod, namespace=SPACE)
        stand.bind(f"db-tikv-{number}", node)

    _, after = stages(stand, "add-nodes:1")

    assert after.title == "add 1 node, like b2"
    (new,) = (node for node in after.report.nodes if node.name == "new-1")
    assert (new.unschedulable, new.taints) == (False, ())


def test_where_members_tolerate_a_taint_of_their_nodes_new_ones_have_it_too():
    taints = [{"key": "dedicated", "value": "tikv", "effect": "NoSchedule"}]
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    stand = Stand(a_node("a1"), *(a_node(f"b{n}", taints=taints) for n in range(3)), a_set(), a_cluster())
    for number in range(3):
        stand.cluster.admit(a_pod(f"db-tikv-{number}", tolerations=tolerations), namespace=SPACE)
        stand.bind(f"db-tikv-{number}", f"b{number}")

    _, after = stages(stand, "add-nodes:1")

    assert after.title == "add 1 node, like b0"


def test_new_nodes_come_with_disks_like_those_of_the_node_that_they_are_like():
    made = [*nodes(3), *(a_volume(f"pv{number}", f"n{number}") for number in range(1, 4)), a_volume("any")]
    stand = a_stand("pd", made=made, there=0)
    for name in ("pv1", "pv2", "pv3"):
        spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
        stand.patch(PERSISTENT_VOLUMES, name, {"spec": spec, "status": {"phase": "Available"}})
    stand.patch(STORAGE_CLASSES, "local", {"provisioner": "kubernetes.io/no-provisioner"})
    stand.cluster.create(CLAIMS, a_claim("pd-db-pd-3", labels_v1("pd")), namespace=SPACE, timeout=1)

    _, _, full, added = stages(stand, "scale:db-pd=3", "scale:db-pd=4", "add-nodes:1")

    assert where(full)["db-pd-3"] == ""
    assert where(added) == {"db-pd-3": "new-1"}


def test_a_node_that_is_not_ready_is_not_what_new_ones_are_like():
    _, after = stages(Stand(a_node("n1", ready=False), a_node("n2", cpu="4")), "add-nodes:1")

    assert after.title == "add 1 node, like n2"


def test_local_volumes_hold_their_pods():
    stand = a_stand("pd", made=[*nodes(4), *(a_volume(f"pv{n}", f"n{n}") for n in range(1, 5))], there=0)
    for number in range(1, 5):
        spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
        stand.patch(PERSISTENT_VOLUMES, f"pv{number}", {"spec": spec, "status": {"phase": "Available"}})
    stand.patch(STORAGE_CLASSES, "local", {"provisioner": "kubernetes.io/no-provisioner"})

    _, placed, lost = stages(stand, "scale:db-pd=3", "lose-node:n1,n2,n3,n4")

    assert len(set(where(placed).values()) - {""}) == 3
    assert set(where(lost).values()) == {""}


def test_a_node_with_local_data_that_is_lost_keeps_its_member_waiting():
    bound = [a_claim(f"pd-db-pd-{n}", labels_v1("pd"), volume=f"pv{n}") for n in range(3)]
    volumes = [a_volume(f"pv{n}", f"n{n + 1}") for n in range(3)]
    stand = Stand(*nodes(4), a_set("pd"), a_cluster(), *bound, *volumes)
    running(stand, "db-pd-0", "db-pd-1", "db-pd-2")

    _, after = stages(stand, "lose-node:n1")

    assert where(after) == {"db-pd-0": ""}
    assert after.waiting[0].outcome == "returned-waiting"
    assert "its data is in domain n1 only, where no node is possible now" in after.waiting[0].why


def test_a_set_of_one_is_left_to_the_scheduler():
    stand = a_stand("pd", 1, there=0)

    _, after = stages(stand, "scale:db-pd=1")

    assert where(after) == {"db-pd-0": "n1"}
    assert after.placed[0].outcome == "untouched"


def test_guarded_pods_are_put_apart_by_the_scheduler():
    stand = a_stand("pd", there=0, placement="Guard")

    _, after = stages(stand, "scale:db-pd=3")

    assert sorted(where(after).values()) == ["n1", "n2", "n3"]
    assert {placed.outcome for placed in after.placed} == {"guarded"}


def test_refused_pods_wait():
    stand = a_stand("pd", there=0, when_unplaceable="Deny", made=nodes(1))

    _, after = stages(stand, "scale:db-pd=3")

    assert sorted(where(after).values()) == ["", "", "n1"]


def test_pods_that_are_no_members_are_not_created():
    web = a_whole_set("web", labels={"app": "web"})
    web["metadata"]["namespace"] = SPACE

    _, after = stages(Stand(*nodes(), web), "add-nodes:1")

    assert after.placed == ()


def test_a_set_without_a_template_has_its_pods_again_as_they_were():
    stand = a_stand("pd", made=nodes(4))
    stand.patch(STATEFUL_SETS, "db-pd", {"spec": {"template": None}})
    node = stand.cluster.get(PODS, "db-pd-0", namespace=SPACE, timeout=1)["spec"]["nodeName"]

    _, after = stages(stand, f"lose-node:{node}")

    assert list(where(after)) == ["db-pd-0"]
    with pytest.raises(SettingsError, match=r"spec\.template\.spec"):
        stages(stand, "scale:db-pd=1")


def test_pods_with_finalizers_are_created_again_too():
    stand = a_stand("pd", made=nodes(4))
    pod = stand.cluster.get(PODS, "db-pd-0", namespace=SPACE, timeout=1)
    stand.patch(PODS, "db-pd-0", {"metadata": {"finalizers": ["example.com/hold"]}})

    _, after = stages(stand, f"lose-node:{pod['spec']['nodeName']}")

    assert where(after)["db-pd-0"]


# --- tidb-operator v2


def a_v2_stand() -> Stand:
    suffixes = ("a1b2c3", "d4e5f6", "g7h8i9")
    instances = [
        an_object(TIKVS, f"kv-{suffix}", labels=labels_v2(), spec={"cluster": {"name": "db"}}) for suffix in suffixes
    ]
    stand = Stand(*a_v2_world(), *instances)
    for suffix in suffixes:
        pod = a_v2_pod(suffix)
        node = stand.admit(pod).node
        stand.bind(pod["metadata"]["name"], node)
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        stand.patch(PODS, pod["metadata"]["name"], ready)
    return stand


def test_a_v2_group_grows_by_pods_like_those_it_has():
    _, after = stages(a_v2_stand(), "scale:kv=6")

    assert sorted(where(after)) == ["kv-tikv-sim1", "kv-tikv-sim2", "kv-tikv-sim3"]
    assert sorted(where(after).values()) == ["n1", "n2", "n3"]
    assert after.report.rows[0].running == 6


def test_a_v2_group_shrinks_from_its_end():
    _, after = stages(a_v2_stand(), "scale:kv=1")

    assert [member.name for member in after.report.rows[0].audited.members] == ["kv-tikv-a1b2c3"]


def a_spread_stand(*zones: str, weights: tuple[int | None, ...] = (None, None, None)) -> Stand:
    """A v2 group that is spread over z1, z2 and z3 by its policy; its instances are in these zones."""
    topologies = [
        {"topology": {ZONE: f"z{number}"}, **({} if weight is None else {"weight": weight})}
        for number, weight in enumerate(weights, 1)
    ]
    policies = [{"type": "EvenlySpread", "evenlySpread": {"topologies": topologies}}]
    made = [a_node(f"{zone}-{number}", zone=zone) for zone in ("z1", "z2", "z3") for number in range(4)]
    suffixes = [f"aaa{number}" for number in range(len(zones))]
    world = [found for found in a_v2_world(len(zones), suffixes) if found["kind"] != "Node"]
    world[0]["spec"]["schedulePolicies"] = policies
    stand = Stand(*made, *world, *v2_instances(*suffixes))
    for suffix, zone in zip(suffixes, zones, strict=True):
        stand.patch(TIKVS, f"kv-{suffix}", {"spec": {"topology": {ZONE: zone}}})
        answer = stand.admit(a_v2_pod(suffix, nodeSelector={ZONE: zone, "disk": "ssd"}))
        stand.bind(answer.pod["metadata"]["name"], f"{zone}-{suffixes.index(suffix)}")
    return stand


@pytest.mark.parametrize(
    ("zones", "weights", "replicas", "expected"),
    [
        pytest.param(("z1",), (None, None, None), 3, {"z2": 1, "z3": 1}, id="the empty ones first"),
        pytest.param(("z1", "z2", "z3"), (None, None, None), 6, {"z1": 1, "z2": 1, "z3": 1}, id="evenly"),
        pytest.param(("z1", "z1", "z2"), (None, None, None), 6, {"z2": 1, "z3": 2}, id="what is missing"),
        pytest.param(("z1", "z2", "z3"), (2, 1, 1), 4, {"z1": 1}, id="by weight"),
    ],
)
def test_new_v2_pods_go_where_the_policy_of_their_group_has_them(
    zones: tuple[str, ...], weights: tuple[int | None, ...], replicas: int, expected: dict[str, int]
):
    stand = a_spread_stand(*zones, weights=weights)
    for node in stand.cluster.list(NODES, timeout=1).items:
        stand.patch(NODES, node["metadata"]["name"], {"metadata": {"labels": {"disk": "ssd"}}})

    _, after = stages(stand, f"scale:kv={replicas}")

    placed = [node.partition("-")[0] for node in where(after).values()]
    assert {zone: placed.count(zone) for zone in placed} == expected


def test_a_v2_group_that_is_spread_shrinks_where_it_has_most():
    stand = a_spread_stand("z1", "z2", "z2", "z3")

    _, after = stages(stand, "scale:kv=3")

    left = {member.name: member.node.partition("-")[0] for member in after.report.rows[0].audited.members}
    assert sorted(left.values()) == ["z1", "z2", "z3"]
    assert "kv-tikv-aaa2" not in left


def test_instances_where_no_policy_has_them_any_more_go_first():
    stand = a_spread_stand("z1", "z2", "z3")
    stand.patch(TIKVS, "kv-aaa1", {"spec": {"topology": {ZONE: "z9"}}})

    _, after = stages(stand, "scale:kv=2")

    assert [member.name for member in after.report.rows[0].audited.members] == ["kv-tikv-aaa0", "kv-tikv-aaa2"]


def test_a_v2_pod_is_created_again_by_its_instance():
    stand = a_v2_stand()
    node = stand.cluster.get(PODS, "kv-tikv-a1b2c3", namespace=SPACE, timeout=1)["spec"]["nodeName"]

    _, after, again = stages(stand, f"lose-node:{node}", "add-nodes:1")

    assert list(where(after)) == ["kv-tikv-a1b2c3"]
    assert {**where(after), **where(again)}["kv-tikv-a1b2c3"]


def test_a_v2_group_without_pods_cannot_grow():
    with pytest.raises(SettingsError, match="no pod that new ones could be like"):
        stages(Stand(*a_v2_world(0)), "scale:kv=3")
    stand = a_v2_stand()
    stand.delete(PODS, "kv-tikv-a1b2c3")
    with pytest.raises(SettingsError, match="no pod that new ones could be like"):
        stages(stand, "scale:kv=4")
    assert len(stages(stand, "scale:kv=0")[1].report.rows) <= 1


def test_a_v2_group_may_stay_as_it_is():
    stand = a_v2_stand()

    assert stages(stand, "scale:kv=3")[1].placed == ()
    assert stand.cluster.get(TIKV_GROUPS, "kv", namespace=SPACE, timeout=1)["spec"]["replicas"] == 3


# --- names, reading, the command


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("lose-node:n11", "there is no node 'n11'; did you mean n1"),
        ("lose-zone:z", "there is no zone 'z'"),
        ("scale:db-tkv=3", "no StatefulSet or group object 'shop/db-tkv'; did you mean shop/db-tikv"),
        ("scale:shp/db-tikv=3", "did you mean shop/db-tikv"),
    ],
)
def test_names_that_are_not_there_get_near_matches(step: str, said: str):
    with pytest.raises(SettingsError, match=said):
        stages(a_stand(there=0), step)


def test_the_cluster_itself_is_not_changed():
    stand = a_stand("pd", made=nodes(4))
    calls = len(stand.door.writes)
    before = [stand.cluster.list(kind, timeout=1).resource_version for kind in (PODS, NODES, CLAIMS)]

    stages(stand, "lose-node:n1", "scale:db-pd=5", "add-nodes:1")

    assert len(stand.door.writes) == calls
    assert before == [stand.cluster.list(kind, timeout=1).resource_version for kind in (PODS, NODES, CLAIMS)]


def test_kinds_that_may_not_be_read_are_noted_if_one_can_do_without():
    ward = Ward([*nodes(), a_set(), a_cluster()])
    ward.forbidden = {"csidrivers"}
    notes: list[str] = []

    assert len(tuple(simulate(connected(ward), (), notes))) == 1
    assert notes == ["not allowed to list csidrivers: taken to be none"]

    ward.forbidden = {"nodes"}
    with pytest.raises(Forbidden):
        tuple(simulate(connected(ward), (), notes))


def test_what_fills_objects_is_left_out_and_so_are_entries():
    node = a_node("n1")
    node["status"]["images"] = [{"names": ["x"]}]
    node["metadata"]["managedFields"] = [{}]
    claim = a_claim("tikv-db-tikv-0")
    claim["metadata"]["annotations"] = {keys.LOCK: "{", f"{keys.ENTRY_PREFIX}aaaaaaaa": "{", "theirs": "x"}
    objects, _ = copy_of(connected(Stand(node, claim)).reader)

    by_kind = {found["kind"]: found for found in objects}
    assert "images" not in by_kind["Node"]["status"]
    assert "managedFields" not in by_kind["Node"]["metadata"]
    assert by_kind["PersistentVolumeClaim"]["metadata"]["annotations"] == {"theirs": "x"}


def simulated(tmp_path: Path, stand: Stand, *arguments: str) -> Any:
    return run("simulate", "-n", SPACE, "--cluster", dump(tmp_path / "dump.json", stand.cluster), *arguments)


def test_the_command_shows_each_step_and_the_answer(tmp_path: Path):
    result = simulated(tmp_path, a_stand("pd", made=nodes(4)), "lose-node:n1", "add-nodes:1")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line for line in lines if line[:2] in ("0.", "1.", "2.")] == [
        "0. now",
        "1. lose node n1",
        "2. add 1 node, like n2",
    ]
    assert lines[-1] == "no quorum and no data is lost in any step, and nobody waits at the end"


def test_what_breaks_or_waits_is_the_answer_and_exit_code_1(tmp_path: Path):
    result = simulated(tmp_path, a_stand("pd"), "lose-node:n1,n2")

    assert result.exit_code == 1
    assert "NO: shop/db/pd loses 2 members" in result.stdout
    assert "after 'lose nodes n1, n2' shop/db/pd may have lost quorum or data" in result.stdout.splitlines()[-1]
    assert "at the end 2 wait: db-pd-" in result.stdout.splitlines()[-1]


def test_isolation_may_be_assumed(tmp_path: Path):
    stand = a_stand("tikv", 6)

    told = [stages(stand, "lose-node:n1", assume_isolation=assumed)[1].losses for assumed in (False, True)]

    assert [[loss.safe for loss in losses] for losses in told] == [[False], [True]]
    assert simulated(tmp_path, stand, "add-nodes:1", "--assume-isolation").exit_code == 0


def test_json_has_the_same(tmp_path: Path):
    told = json.loads(simulated(tmp_path, a_stand("pd", made=nodes(4)), "lose-node:n1", "-o", "json").stdout)

    assert told["safe"] is True
    assert [stage["step"] for stage in told["stages"]] == ["now", "lose node n1"]
    assert set(told["stages"][1]) == {"step", "losses", "placed", "groups", "lost"}


def test_long_lists_are_cut(tmp_path: Path):
    stand = a_stand("pd", made=nodes(60), there=0)

    result = simulated(tmp_path, stand, "scale:db-pd=50")

    assert "and 10 more pods" in result.stdout


def test_a_wrong_step_is_exit_code_2(tmp_path: Path):
    result = simulated(tmp_path, a_stand(there=0), "lose:n1")

    assert result.exit_code == 2
    assert "step 'lose:n1': must be scale:" in result.stderr


def test_an_empty_cluster_has_nothing_to_lose(tmp_path: Path):
    assert simulated(tmp_path, Stand(), "lose-node:n1").exit_code == 2
    result = simulated(tmp_path, Stand(a_node("n1")), "add-nodes:1")
    assert result.exit_code == 0


def test_a_group_that_cannot_be_judged_is_no_success(tmp_path: Path):
    stand = Stand(*nodes(), a_pod("xx-tikv-0", labels=labels_v1(cluster="xx"), nodeName="n1"))

    result = simulated(tmp_path, stand, "add-nodes:1")

    assert result.exit_code == 1
    assert "shop/xx/tikv" in result.stdout
