"""A node that the inventory proposes is read once more before it is promised, and the next one if it will not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from cluster_objects import SPACE, a_claim, a_cluster, a_node, a_pod, a_set, a_v1_world, a_volume, claims
from locking.asking import PVC, SECOND_WRITE, SWAP
from stand import Stand
from still_inventory import follow, inventory_of

from webhook.cluster.door import NODES, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES, Manifest
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Placing, Snapshot
from webhook.core.outcomes import Cause, Outcome
from webhook.deadline import Deadline
from webhook.errors import Forbidden, UnknownOutcome
from webhook.locking.confirming import CHANGING
from webhook.locking.protocol import Answer, Request
from webhook.locking.round import Round

BUDGET = 9.0


class Scene:
    """A cluster, an inventory that knows it as it was at first, and a process that decides by that."""

    def __init__(self, *objects: Manifest) -> None:
        self.stand = Stand(*objects)
        self.inventory = inventory_of(self.stand.cluster)
        self.decided: list[Decision] = []
        decide = self.stand.tools.decide

        def remember(snapshot: Snapshot, placing: Placing) -> Decision:
            self.decided.append(decide(snapshot, placing))
            return self.decided[-1]

        store = GroupStore(self.stand.door, self.inventory)
        self.tools = replace(self.stand.tools, cluster=store, decide=remember)

    def ask(self, *names: str, pod: Manifest | None = None, writes: bool = True) -> dict[str, Answer]:
        """The answers to one round for these members."""
        manifests = [pod] if pod else [a_pod(name) for name in names or ("db-tikv-0",)]
        clock = self.stand.clock.monotonic
        requests = [
            Request(Placing(pod_from(each, namespace=SPACE), requests_of(each)), Deadline.after(BUDGET, clock), clock())
            for each in manifests
        ]
        group = recognise(pod_from(manifests[0], namespace=SPACE)).group
        assert group is not None
        answers: dict[str, Answer] = {}
        self.stand.door.calls.clear()

        def deliver(request: Request, answer: Answer) -> None:
            answers[request.member] = answer

        Round(group, requests, self.tools, deliver, writes=writes).run()
        return answers

    def confirmed(self) -> list[str]:
        """The nodes that were read, in order."""
        return [call.split()[-1] for call in self.stand.door.calls if call.startswith("get nodes")]

    # What happens to nodes that the inventory does not know yet.

    def cordon(self, *names: str) -> None:
        for name in names:
            self.stand.cluster.merge_patch(NODES, name, {"spec": {"unschedulable": True}}, timeout=1)

    def remove(self, *names: str) -> None:
        for name in names:
            self.stand.cluster.delete(NODES, name, timeout=1)

    def fill(self, *names: str, cpu: str = "8") -> None:
        for name in names:
            container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
            pod = {"metadata": {"name": f"filler-{name}"}, "spec": {"nodeName": name, "containers": [container]}}
            self.stand.cluster.create(PODS, pod, namespace="other", timeout=1)


@pytest.fixture(scope="module")
def ranks() -> list[str]:
    """All nodes, the first in rank first."""
    scene = Scene(*a_v1_world(node_count=5))
    found: list[str] = []
    while len(found) < 5:
        found.append(scene.ask(writes=False)["db-tikv-0"].decision.node)
        scene.cordon(found[-1])
        follow(scene.inventory)
    return found


@pytest.fixture
def scene() -> Scene:
    return Scene(*a_v1_world(node_count=5))


CHANGES: dict[str, Callable[[Scene, str], None]] = {
    "cordoned": lambda scene, name: scene.cordon(name),
    "gone": lambda scene, name: scene.remove(name),
    "full": lambda scene, name: scene.fill(name),
}


def test_the_chosen_node_is_read_with_its_pods_and_nothing_is_listed_whole(scene: Scene, ranks: list[str]) -> None:
    assert scene.ask()["db-tikv-0"].decision.node == ranks[0]
    calls = scene.stand.door.calls
    assert scene.confirmed() == [ranks[0]]
    assert "list nodes" not in calls
    # The group's own pods, and those on the node; before the swap.
    assert calls.count("list pods") == 2
    assert calls.index(f"get nodes {ranks[0]}") < calls.index("patch persistentvolumeclaims tikv-db-tikv-0")


def test_what_has_not_changed_is_not_decided_on_again(scene: Scene) -> None:
    scene.ask("db-tikv-0", "db-tikv-1", "db-tikv-2")
    assert len(scene.decided) == 3
    assert len(scene.confirmed()) == 3


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("changed", [1, 2])
def test_a_node_that_cannot_take_the_pod_any_more_is_passed_over_and_the_next_one_taken(
    scene: Scene, ranks: list[str], change: str, changed: int
) -> None:
    for name in ranks[:changed]:
        CHANGES[change](scene, name)
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.node) == (Outcome.PINNED, ranks[changed])
    assert scene.confirmed() == ranks[: changed + 1]


@pytest.mark.parametrize("change", CHANGES)
def test_after_three_the_pod_waits_with_the_guard(scene: Scene, ranks: list[str], change: str) -> None:
    for name in ranks[:3]:
        CHANGES[change](scene, name)
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.cause, decision.node) == (Outcome.GUARDED, Cause.NO_SAFE_NODE, "")
    assert decision.detail == CHANGING
    assert scene.confirmed() == ranks[:3]
    assert scene.stand.door.writes == []


def test_a_node_that_got_fuller_but_still_has_room_is_kept(scene: Scene, ranks: list[str]) -> None:
    scene.fill(ranks[0], cpu="3")
    # By itself it would not be the first any more.
    assert scene.ask()["db-tikv-0"].decision.node == ranks[0]
    assert scene.confirmed() == [ranks[0]]
    assert len(scene.decided) == 2


def test_the_third_is_taken_if_it_is_still_possible_though_it_has_changed(scene: Scene, ranks: list[str]) -> None:
    scene.cordon(*ranks[:2])
    scene.fill(ranks[2], cpu="3")
    assert scene.ask()["db-tikv-0"].decision.node == ranks[2]
    assert scene.confirmed() == ranks[:3]


def test_each_member_of_a_round_has_its_node_confirmed(scene: Scene, ranks: list[str]) -> None:
    scene.cordon(ranks[0])
    answers = scene.ask("db-tikv-0", "db-tikv-1", "db-tikv-2")
    nodes = {answer.decision.node for answer in answers.values()}
    assert len(nodes) == 3
    assert nodes <= set(scene.confirmed()) - {ranks[0]}


def test_members_of_one_round_are_counted_on_nodes_that_were_confirmed() -> None:
    # 8 CPUs a node, 5 for each: the second of two on one node would not fit though the rule allows it.
    scene = Scene(*a_v1_world(replicas=2, node_count=2))
    large = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "5"}}}]}
    pods = [a_pod(f"db-tikv-{ordinal}", **large) for ordinal in range(2)]
    answers = [scene.ask(pod=pod).popitem()[1] for pod in pods]
    assert {answer.decision.node for answer in answers} == {"n1", "n2"}


def local_scene(*volumes: Manifest) -> Scene:
    """A set whose claims take local volumes; all their nodes are alike."""
    free = [{**volume, "status": {"phase": "Available"}} for volume in volumes]
    for volume in free:
        volume["spec"]["storageClassName"] = "local"
    scene = Scene(*a_v1_world(), *free)
    patch = {"provisioner": "kubernetes.io/no-provisioner"}
    scene.stand.cluster.merge_patch(STORAGE_CLASSES, "local", patch, timeout=1)
    return scene


def take(scene: Scene, *names: str) -> None:
    """Somebody else has the volumes by now."""
    for name in names:
        reference = {"namespace": "other", "name": "data", "uid": "u"}
        patch = {"spec": {"claimRef": reference}, "status": {"phase": "Bound"}}
        scene.stand.cluster.merge_patch(PERSISTENT_VOLUMES, name, patch, timeout=1)


def read_volumes(scene: Scene) -> list[str]:
    return [call.split()[-1] for call in scene.stand.door.calls if call.startswith("get persistentvolumes")]


def test_the_volume_that_will_be_taken_is_read_too() -> None:
    scene = local_scene(a_volume("on-n1", "n1"), a_volume("on-n2", "n2"))
    node = scene.ask()["db-tikv-0"].decision.node
    assert read_volumes(scene) == [f"on-{node}"]
    assert len(scene.decided) == 1


def test_a_node_whose_volume_was_taken_meanwhile_is_passed_over_and_the_next_one_taken() -> None:
    scene = local_scene(*(a_volume(f"on-{name}", name) for name in ("n1", "n2", "n3")))
    first = scene.ask(writes=False)["db-tikv-0"].decision.node
    take(scene, f"on-{first}")
    second = scene.ask()["db-tikv-0"].decision
    assert (second.outcome, second.node != first) == (Outcome.PINNED, True)
    assert read_volumes(scene) == [f"on-{first}", f"on-{second.node}"]


def test_another_volume_of_the_node_will_do() -> None:
    scene = local_scene(a_volume("first", "n1"), a_volume("second", "n1"))
    take(scene, "first")
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.node) == (Outcome.PINNED, "n1")
    assert read_volumes(scene) == ["first", "second"]


def test_where_all_volumes_were_taken_meanwhile_the_pod_waits() -> None:
    scene = local_scene(a_volume("on-n1", "n1"))
    take(scene, "on-n1")
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.cause) == (Outcome.GUARDED, Cause.NO_SAFE_NODE)
    assert scene.stand.door.writes == []


def test_a_pod_is_not_pinned_where_a_volume_was_never_read_directly() -> None:
    scene = local_scene(*(a_volume(f"v{number}", "n1") for number in range(5)))
    take(scene, *(f"v{number}" for number in range(4)))
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.detail) == (Outcome.GUARDED, CHANGING)
    assert read_volumes(scene) == ["v0", "v1", "v2"]


def test_each_member_of_a_round_has_its_own_volume_confirmed() -> None:
    volumes = [a_volume(f"{name}-{number}", name) for name in ("n1", "n2", "n3") for number in range(2)]
    scene = local_scene(*volumes)
    answers = scene.ask("db-tikv-0", "db-tikv-1", "db-tikv-2")
    assert {answer.decision.node for answer in answers.values()} == {"n1", "n2", "n3"}
    assert sorted(read_volumes(scene)) == ["n1-0", "n2-0", "n3-0"]


def test_a_member_whose_only_node_was_cordoned_meanwhile_returns_and_waits() -> None:
    world = [a_node("n1"), a_node("n2"), a_node("n3"), a_set(), a_cluster(), *claims()[1:]]
    scene = Scene(*world, a_claim("tikv-db-tikv-0", volume="pv"), a_volume("pv", "n1"))
    scene.cordon("n1")
    decision = scene.ask()["db-tikv-0"].decision
    assert (decision.outcome, decision.domain) == (Outcome.RETURNED_WAITING, "n1")
    assert scene.confirmed() == ["n1"]


def test_a_node_that_cannot_be_read_is_api_trouble_for_this_attempt_only(scene: Scene, ranks: list[str]) -> None:
    scene.stand.door.fails("get nodes", UnknownOutcome("get", "nodes"), times=1)
    answer = scene.ask()["db-tikv-0"]
    assert (answer.decision.node, answer.effort.unknown) == (ranks[0], 1)


def test_a_dry_run_is_confirmed_too(scene: Scene, ranks: list[str]) -> None:
    scene.cordon(ranks[0])
    assert scene.ask(writes=False)["db-tikv-0"].decision.node == ranks[1]
    assert scene.stand.door.writes == []


def test_without_an_inventory_nodes_are_listed_and_none_is_read_once_more(scene: Scene, ranks: list[str]) -> None:
    scene.tools = scene.stand.tools
    assert scene.ask()["db-tikv-0"].decision.node == ranks[0]
    assert "list nodes" in scene.stand.door.calls
    assert scene.confirmed() == []


# What other groups were answered


def test_a_node_that_was_promised_to_another_groups_member_has_its_room_no_more() -> None:
    def large(name: str) -> Manifest:
        return a_pod(name, containers=[{"name": "main", "resources": {"requests": {"cpu": "6"}}}])

    one_node = [a_node("n1"), a_cluster(min_domains="1")]
    scene = Scene(*one_node, a_set("tikv", 2), *claims(2), a_set("pd", 2), *claims(2, "pd"))
    assert scene.ask(pod=large("db-tikv-0"))["db-tikv-0"].decision.node == "n1"
    # Its pod cannot be seen yet.
    refused = scene.ask(pod=large("db-pd-0"), writes=False)["db-pd-0"].decision
    assert (refused.outcome, refused.passed_over) == (Outcome.GUARDED, {"n1": "Insufficient cpu"})
    # Another process does not know, and would have pinned it there.
    scene.tools = replace(scene.tools, cluster=GroupStore(scene.stand.door, scene.inventory))
    assert scene.ask(pod=large("db-pd-0"), writes=False)["db-pd-0"].decision.node == "n1"


def test_a_pod_that_came_and_went_between_two_rounds_holds_nothing() -> None:
    scene = Scene(*a_v1_world(), a_set("pd"), *claims(3, "pd"))
    node = scene.ask()["db-tikv-0"].decision.node
    assert promised_to_others(scene) == [node]
    scene.stand.cluster.create(PODS, a_pod("db-tikv-0", nodeName=node), namespace=SPACE, timeout=1)
    follow(scene.inventory)
    scene.stand.cluster.delete(PODS, "db-tikv-0", namespace=SPACE, timeout=1)
    follow(scene.inventory)
    assert promised_to_others(scene) == []


def test_a_node_counts_for_other_groups_from_the_decision_on_and_no_more_where_it_is_not_answered() -> None:
    scene = Scene(*a_v1_world(), a_set("pd"), *claims(3, "pd"))
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(promised_to_others(scene))

    scene.stand.door.happens(SWAP, look)
    scene.stand.door.fails(SECOND_WRITE, Forbidden("patch", PVC, status=403))
    decision = scene.ask()["db-tikv-0"].decision
    assert decision.cause is Cause.API_FORBIDDEN
    assert [len(nodes) for nodes in seen] == [1]
    assert promised_to_others(scene) == []


def promised_to_others(scene: Scene) -> list[str]:
    """The nodes that the decision about a PD pod would find promised to TiKV pods."""
    store, pod = scene.tools.cluster, pod_from(a_pod("db-pd-0"), namespace=SPACE)
    assert isinstance(store, GroupStore)
    group = recognise(pod).group
    assert group is not None
    return list(store.read_group(group, (), [Placing(pod)], Deadline.after(BUDGET)).promised)


def test_what_a_dry_run_was_answered_is_promised_to_nobody() -> None:
    scene = Scene(*a_v1_world(), a_set("pd"), *claims(3, "pd"))
    scene.ask(writes=False)
    assert promised_to_others(scene) == []
