"""Pods that wait where they cannot run are freed: by one leader, once, and only for something better.

And what the leader does besides: audits, and the sweep of what is over.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from e2e import objects
from e2e.api import Api
from e2e.conftest import registered
from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.place import Create, HandSet, Place, gone, node_of, per_node, pin_of
from e2e.replicas import SERVICE, Replica, Webhook, outcome_of
from e2e.waiting import wait_until
from webhook.controller.auditing import PERIOD
from webhook.core.keys import PREFIX

pytestmark = pytest.mark.e2e

Tell = Callable[[str], None]
THREE = ["n0", "n1", "n2"]
FOUR = [*THREE, "n3"]
NINE = range(9)

WITHIN = 30.0
"""Seconds in which a pod has its place after there is one for it."""
TAKEOVER = 20.0
"""Seconds until another replica leads after the leader has died: the Lease, and a question."""
AUDIT = PERIOD + 30.0
"""Seconds in which a breach is seen: one period, and some for the audit itself."""

GATE = "e2e.test/hold"
UNSEEN = "e2e.test/unseen"
LEADING = "tidb_ha_webhook_controller_leading"
STACKED = 'tidb_ha_webhook_audit_findings{kind="Stacked"}'
REPLACED = 'tidb_ha_webhook_rescues_total{kind="pinned",result="replaced"}'
# Admitted while we were away; it stands for what the floor puts in.
SEEN_ONLY = {"objectSelector": {"matchExpressions": [{"key": UNSEEN, "operator": "DoesNotExist"}]}}


@pytest.fixture(scope="module")
def rescuers(
    control_plane: ControlPlane, service_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """Two replicas of which one leads; a test leaves both running."""
    folder = tmp_path_factory.mktemp("rescuers")
    flags = ["--controller", "--controller-namespace=default"]
    service = (service_namespace, SERVICE)
    with Webhook(control_plane, folder, replicas=2, flags=flags, service=service) as webhook:
        yield webhook


@pytest.fixture
def rescue_place(api: Api, create: Create, rescuers: Webhook, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace whose members go to these replicas, if they are not labelled UNSEEN."""
    leader(rescuers)
    with registered(api, create, rescuers, request.node.name, **SEEN_ONLY) as place:
        yield place


def leads(replica: Replica) -> bool:
    """Whether this one leads."""
    return replica.metrics()[LEADING] == 1


def leader(webhook: Webhook) -> Replica:
    """Wait until a replica leads."""

    def found() -> Replica | None:
        return next((replica for replica in webhook.replicas if replica.child.running and leads(replica)), None)

    return wait_until(found, "a replica to lead", 60)


@dataclass
class Gated:
    """A set whose pods come with a scheduling gate: pinned at once, and not looked at until they are released."""

    place: Place
    lives: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The uids seen, by name."""

    def start(self, replicas: int = 3) -> list[Object]:
        """Create the set and wait until all its pods are pinned."""
        self.place.start(replicas=replicas, pod_spec={"schedulingGates": [{"name": GATE}]})
        return self.place.wait_for(lambda pods: len(pods) == replicas and all(map(pin_of, pods)))

    def release(self, *pods: Object) -> None:
        """Let the scheduler look at them."""
        for pod in pods:
            if pod["spec"].get("schedulingGates"):
                name = pod["metadata"]["name"]
                self.place.api.patch("Pod", name, {"spec": {"schedulingGates": None}}, self.place.namespace)

    def wait_placed(self, timeout: float, replicas: int = 3) -> list[Object]:
        """Release every pod that comes, until all have a node."""
        seen: list[Object] = []

        def placed() -> bool:
            seen[:] = self.place.pods()
            for pod in seen:
                self.lives[pod["metadata"]["name"]].add(pod["metadata"]["uid"])
            self.release(*(pod for pod in seen if not gone(pod)))
            return len(seen) == replicas and all(map(node_of, seen))

        wait_until(placed, f"{replicas} pods to be placed: {[outcome_of(pod) for pod in seen]}", timeout)
        return seen


def annotations_of(pod: Object) -> Object:
    """The annotations of a pod."""
    found: Object = pod["metadata"].get("annotations", {})
    return found


def make_bad(api: Api, place: Place, node: str, how: str) -> None:
    """Let a node become one that nothing can be scheduled to."""
    if how == "cordoned":
        api.patch("Node", node, {"spec": {"unschedulable": True}})
    elif how == "deleted":
        api.delete("Node", node)
    else:
        api.create(objects.filler_pod(place.namespace, node, cpu="8", memory="1Gi"))


def events_of(place: Place, reason: str) -> list[Object]:
    """The events of one reason in the namespace."""
    return [event for event in place.api.list("Event", place.namespace) if event["reason"] == reason]


def wait_event(place: Place, reason: str, word: str) -> Object:
    """Wait for an event of this reason with a word in its message."""

    def found() -> Object | None:
        return next((event for event in events_of(place, reason) if word in event["message"]), None)

    return wait_until(found, f"an event {reason} with {word}", 60)


def one_with_a_bad_pin(api: Api, place: Place, how: str) -> tuple[Gated, str]:
    """A set of three: two run, the node of the third goes bad before the scheduler looks at the pod."""
    gated = Gated(place)
    pods = gated.start()
    gated.release(*pods[:2])
    place.wait_for(lambda seen: all(map(node_of, seen[:2])))
    bad = pin_of(pods[2])
    make_bad(api, place, bad, how)
    gated.lives[pods[2]["metadata"]["name"]].add(pods[2]["metadata"]["uid"])
    gated.release(pods[2])
    return gated, bad


@pytest.mark.parametrize("how", ["cordoned", "deleted", "filled"])
def test_a_pinned_pod_whose_node_goes_bad_is_placed_elsewhere_once(
    api: Api, create: Create, rescue_place: Place, tell: Tell, how: str
) -> None:
    create(*objects.local_cluster(FOUR))
    gated, bad = one_with_a_bad_pin(api, rescue_place, how)
    began = time.monotonic()

    pods = gated.wait_placed(WITHIN)

    tell(f"placed {time.monotonic() - began:.1f} s after its node was {how}")
    assert per_node(pods) == [1, 1, 1]
    assert bad not in map(node_of, pods)
    assert [len(gated.lives[pod["metadata"]["name"]]) for pod in pods] == [1, 1, 2]
    wait_event(rescue_place, "PodReplaced", bad)


def test_where_nothing_better_is_there_the_pod_is_left_alone_and_the_reason_said(
    api: Api, create: Create, rescue_place: Place
) -> None:
    create(*objects.local_cluster(THREE))
    gated, bad = one_with_a_bad_pin(api, rescue_place, "cordoned")
    event = wait_event(rescue_place, "PodCannotRun", bad)
    assert "unschedulable" in event["message"]

    api.patch("Node", bad, {"spec": {"unschedulable": None}})

    pods = gated.wait_placed(WITHIN)
    assert per_node(pods) == [1, 1, 1]
    assert [len(gated.lives[pod["metadata"]["name"]]) for pod in pods] == [1, 1, 1]


def test_a_guarded_pod_is_placed_when_a_node_is_added(create: Create, rescue_place: Place, tell: Tell) -> None:
    create(*objects.local_cluster(THREE[:2]))
    rescue_place.start()
    rescue_place.wait_for(lambda pods: sorted(map(bool, map(node_of, pods))) == [False, True, True])

    create(objects.node("n9"), *(objects.local_volume(f"n9-{i}", "n9") for i in range(3)))
    began = time.monotonic()

    pods = rescue_place.wait_placed(3, timeout=WITHIN)
    tell(f"placed {time.monotonic() - began:.1f} s after the node was there")
    assert per_node(pods) == [1, 1, 1]


class Nine(HandSet):
    """Nine stores on three nodes, whose owner (the test) creates again what is deleted."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, replicas=9)
        self.create_claims(NINE)

    def create_guarded(self, ordinal: int) -> None:
        """A pod that came while we were away, with the guard that the floor puts in."""
        pod = objects.member_pod(self.set, ordinal)
        labels = objects.operator_labels(self.cluster, self.component)
        exists = {"matchExpressions": [{"key": objects.HOSTNAME, "operator": "Exists"}]}
        term = {"topologyKey": objects.HOSTNAME, "labelSelector": {"matchLabels": labels}}
        pod["metadata"]["labels"][UNSEEN] = "true"
        pod["metadata"]["annotations"][objects.GUARD] = objects.HOSTNAME
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        pod["spec"]["affinity"] = {
            "podAntiAffinity": {required: [term]},
            "nodeAffinity": {required: {"nodeSelectorTerms": [exists]}},
        }
        self.api.create(pod)

    def wait_nodes(self, number: int, timeout: float) -> list[Object]:
        """Be the owner until at least so many have a node."""

        def placed() -> list[Object] | None:
            there = {pod["metadata"]["name"] for pod in self.pods()}
            missing = [i for i in NINE if f"{self.set['metadata']['name']}-{i}" not in there]
            if missing:
                self.create_pods(missing)
            pods = self.pods()
            return pods if len(list(filter(None, map(node_of, pods)))) >= number else None

        return wait_until(placed, f"{number} of nine to have a node", timeout)


@pytest.mark.usefixtures("advanced_sets")
def test_nine_stores_all_run_though_the_last_was_guarded(create: Create, rescue_place: Place, tell: Tell) -> None:
    create(*objects.local_cluster(THREE, volumes=9))
    nine = Nine(rescue_place)
    nine.create_pods(NINE[:8])
    nine.wait_pinned_placed(8)

    nine.create_guarded(8)
    began = time.monotonic()

    pods = nine.wait_nodes(9, WITHIN)
    tell(f"all nine have a node after {time.monotonic() - began:.1f} s")
    assert per_node(pods) == [3, 3, 3]
    nine.remove()


@pytest.mark.usefixtures("advanced_sets")
def test_a_running_guarded_member_in_the_way_is_named_and_when_it_is_deleted_all_nine_run(
    create: Create, rescue_place: Place, tell: Tell
) -> None:
    create(*objects.local_cluster(THREE, volumes=9))
    nine = Nine(rescue_place)
    nine.create_guarded(0)
    (first,) = nine.wait_placed(1)
    name, uid = first["metadata"]["name"], first["metadata"]["uid"]

    nine.create_pods(NINE[1:])

    pods = nine.wait_nodes(7, WITHIN)
    assert per_node(pods) == [3, 3, 1]
    wait_event(rescue_place, "NoSafeNode", f"kubectl delete pod {name}")
    assert rescue_place.api.get("Pod", name, rescue_place.namespace)["metadata"]["uid"] == uid

    rescue_place.api.delete("Pod", name, rescue_place.namespace, gracePeriodSeconds=0)
    began = time.monotonic()
    pods = nine.wait_nodes(9, WITHIN)
    tell(f"all nine have a node {time.monotonic() - began:.1f} s after the one in the way was deleted")
    assert per_node(pods) == [3, 3, 3]
    assert not [pod for pod in pods if objects.GUARD in annotations_of(pod)]
    nine.remove()


@pytest.mark.parametrize("when", ["before it has freed the pod", "as soon as it has"])
def test_when_the_leader_is_killed_another_one_goes_on(
    api: Api, create: Create, rescue_place: Place, rescuers: Webhook, tell: Tell, when: str
) -> None:
    create(*objects.local_cluster(FOUR))
    gated, bad = one_with_a_bad_pin(api, rescue_place, "cordoned")
    dead = leader(rescuers)
    if when == "as soon as it has":
        (first,) = gated.lives[sorted(gated.lives)[-1]]
        wait_until(
            lambda: first not in {pod["metadata"]["uid"] for pod in rescue_place.pods()}, "it to be freed", WITHIN
        )
    dead.child.kill()
    began = time.monotonic()
    try:
        pods = gated.wait_placed(TAKEOVER + WITHIN)
    finally:
        dead.start()
    tell(f"placed {time.monotonic() - began:.1f} s after the leader died")
    assert per_node(pods) == [1, 1, 1]
    assert bad not in map(node_of, pods)
    assert [len(gated.lives[pod["metadata"]["name"]]) for pod in pods] == [1, 1, 2]


def test_two_leaders_at_once_free_no_pod_twice(
    api: Api,
    create: Create,
    control_plane: ControlPlane,
    rescue_place: Place,
    rescuers: Webhook,
    service_namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    create(*objects.local_cluster(FOUR))
    flags = ["--controller", "--controller-namespace=kube-system"]
    folder = tmp_path_factory.mktemp("other-leader")
    with Webhook(control_plane, folder, flags=flags, service=(service_namespace, SERVICE)) as other:
        both = [leader(rescuers), leader(other)]
        before = sum(replica.metrics().get(REPLACED, 0) for replica in both)
        gated, bad = one_with_a_bad_pin(api, rescue_place, "cordoned")

        pods = gated.wait_placed(WITHIN)
        assert sum(replica.metrics().get(REPLACED, 0) for replica in both) - before == 1
    assert per_node(pods) == [1, 1, 1]
    assert bad not in map(node_of, pods)
    assert [len(gated.lives[pod["metadata"]["name"]]) for pod in pods] == [1, 1, 2]


@pytest.mark.usefixtures("advanced_sets")
def test_a_breach_made_by_hand_is_seen_within_one_period_and_what_is_over_is_swept(
    create: Create, rescue_place: Place, rescuers: Webhook, tell: Tell
) -> None:
    create(*objects.local_cluster(THREE))
    kept_apart = HandSet(rescue_place, cluster="swept")
    kept_apart.start(3)
    kept_apart.wait_placed(3)
    assert records_of(rescue_place, "swept")
    by_hand = HandSet(rescue_place)
    by_hand.create_claims(range(3))
    for ordinal in range(3):
        pod = objects.member_pod(by_hand.set, ordinal, nodeName="n0")
        pod["metadata"]["labels"][UNSEEN] = "true"
        rescue_place.api.create(pod)
    began = time.monotonic()

    def seen() -> Object | None:
        return next((event for event in events_of(rescue_place, "AuditStacked")), None)

    event = wait_until(seen, "an event AuditStacked", AUDIT)
    tell(f"the breach was said {time.monotonic() - began:.1f} s after it was made")
    assert "n0 holds 3 members (db-tikv-0, db-tikv-1, db-tikv-2), at most 1 may be there" in event["message"]
    assert event["involvedObject"]["name"] == "db-tikv"
    assert leader(rescuers).metrics()[STACKED] >= 1

    wait_until(lambda: not records_of(rescue_place, "swept"), "what is over to be swept", AUDIT)
    tell(f"nothing that is over is on the claims {time.monotonic() - began:.1f} s after that")


def records_of(place: Place, cluster: str) -> list[str]:
    """The keys of our annotations on the claims of a cluster."""
    return [key for claim in place.claims(cluster) for key in annotations_of(claim) if key.startswith(PREFIX)]
