"""The invariants of docs/design.md, each by its name, through whole reviews over the embedded cluster.

What many replicas, lost answers and pauses do to the first of them is the simulation's business.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    ZONE,
    a_claim,
    a_node,
    a_pod,
    a_set,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    a_volume,
    claims,
    labels_v1,
    nodes,
    options,
    with_floor,
)
from core.pods import allowed, anti_terms, exists, in_zone, node_terms
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stand import BUDGET, EXPIRY, START, Answered, Clock, Replica, Stand

from webhook.cluster.door import CLAIMS, NODES, PODS, Manifest
from webhook.core import keys
from webhook.errors import Forbidden, Invalid, NotFound, OutOfTime, TooManyRequests, UnknownOutcome

PVC = "persistentvolumeclaims"
FEW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}


# --- 1


@dataclass
class Watch:
    """An oracle of its own: what every answer, and every pod that is there, may make of a domain."""

    stand: Stand
    given: list[tuple[float, str, str, str]] = field(default_factory=list)

    def answered(self, name: str, answer: Answered, cap: int) -> None:
        if answer.node:
            assert self.worst(answer.node, but=name) + 1 <= cap, f"{name} on {answer.node}"
            self.given.append((self.stand.clock.elapsed, name, answer.node, answer.record["token"]))

    def stored(self, answer: Answered) -> None:
        """The answer has its pod: no other can come of it."""
        self.given = [found for found in self.given if found[-1] != answer.record.get("token")]

    def worst(self, node: str, *, but: str) -> int:
        """The members other than `but` that are on the node, or may come to be there."""
        listing = self.stand.cluster.list(PODS, namespace=SPACE, timeout=1)
        there = {
            pod["metadata"]["name"]
            for pod in listing.items
            if (pod["spec"].get("nodeName") or Answered({}, pod).node) == node
        }
        # An answer's pod can be stored for as long as the API server keeps at its request.
        since = self.stand.clock.elapsed - 60.0
        flying = {name for time, name, where, _ in self.given if where == node and time >= since}
        return len((there | flying) - {but})


MEMBERS = st.integers(0, 4)
EVENTS = st.one_of(
    st.tuples(st.just("review"), MEMBERS),
    st.tuples(st.just("admit"), MEMBERS),
    st.tuples(st.just("admit"), MEMBERS),
    st.tuples(st.just("delete"), MEMBERS),
    st.tuples(st.just("cordon"), st.integers(1, 4)),
    st.tuples(st.just("erase"), MEMBERS),
    st.tuples(st.just("pass"), st.integers(1, 70)),
)


@given(st.lists(EVENTS, max_size=30), st.sampled_from(["pd", "tikv"]), st.data())
@FEW
def test_safe_no_answer_puts_more_members_into_a_domain_than_the_cap(
    events: list[tuple[str, int]], component: str, data: st.DataObject
) -> None:
    stand = Stand(*a_v1_world(replicas=5, component=component, node_count=4))
    replicas: list[Replica] = [stand, stand.another()]
    watch, erased = Watch(stand), False
    for event, number in events:
        name = f"db-{component}-{number}"
        replica = data.draw(st.sampled_from(replicas))
        there = {pod["metadata"]["name"] for pod in stand.cluster.list(PODS, namespace=SPACE, timeout=1).items}
        if event == "review" or (event == "admit" and name not in there):
            answer = replica.review(a_pod(name))
            watch.answered(name, answer, cap=int(answer.record.get("cap", 0)))
            assert answer.record.get("cap", 0) <= 2
            if event == "admit":
                stand.cluster.admit(answer.pod, namespace=SPACE)
                watch.stored(answer)
        elif event == "delete" and name in there:
            stand.delete(PODS, name)
        elif event == "cordon":
            stand.patch(NODES, f"n{number}", {"spec": {"unschedulable": True}})
        elif event == "erase" and not erased:
            # One record of an answer may be lost.
            erased = True
            claim = f"{component}-{name}"
            stand.patch(CLAIMS, claim, {"metadata": {"annotations": dict.fromkeys(stand.annotations_of(claim))}})
        elif event == "pass":
            stand.clock.elapsed += number


def test_safe_three_members_created_together_by_three_replicas_are_on_three_nodes() -> None:
    stand = Stand(*a_v1_world(node_count=6))
    replicas = [stand, stand.another(), stand.another()]
    with ThreadPoolExecutor(3) as callers:
        calls = [
            callers.submit(replica.review, a_pod(f"db-tikv-{ordinal}")) for ordinal, replica in enumerate(replicas)
        ]
        found = [call.result(20) for call in calls]
    assert len({answer.node for answer in found if answer.node}) == sum(1 for answer in found if answer.node)
    assert all(answer.node or answer.guarded for answer in found)


def test_safe_nine_members_created_together_are_three_to_a_node() -> None:
    stand = Stand(*a_v1_world(replicas=9), most_waiting=9)
    with ThreadPoolExecutor(9) as callers:
        found = list(callers.map(lambda ordinal: stand.review(a_pod(f"db-tikv-{ordinal}")), range(9)))
    assert Counter(answer.node for answer in found) == {"n1": 3, "n2": 3, "n3": 3}


# --- 2

LABELLED = {f"n{number}": {keys.HOSTNAME: f"n{number}", ZONE: "ab"[number % 2]} for number in range(1, 5)}
TERMS = st.sampled_from(
    [{}, in_zone("a"), in_zone("b"), in_zone("a", "b"), in_zone("c"), {"matchExpressions": [exists()]}]
)
AFFINITIES = st.one_of(st.none(), st.lists(TERMS, min_size=1, max_size=3).map(lambda terms: node_terms(*terms)))
SELECTORS = st.sampled_from([None, None, {}, {ZONE: "a"}, {ZONE: "c"}])
FOREIGN = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": {"app": "other"}}}


def zonal_nodes() -> list[Manifest]:
    return [a_node(name, zone=labels[ZONE]) for name, labels in LABELLED.items()]


@dataclass(frozen=True)
class Situation:
    """A cluster in which a pod is asked for, and the pod as its requester made it."""

    stand: Stand
    pod: Manifest


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    affinity, selector = draw(AFFINITIES), draw(SELECTORS)
    if draw(st.sampled_from([False, False, True])):
        affinity = {**(affinity or {}), **anti_terms(FOREIGN)}
    spec = {**({"affinity": affinity} if affinity else {}), **({"nodeSelector": selector} if selector else {})}
    chosen = draw(st.sampled_from([{}] * 5 + [{"placement": "Guard"}, {"skip": "true"}, {"when_unplaceable": "Admit"}]))
    if draw(st.booleans()):
        world = a_v2_world(annotations=options(**chosen))[3:]
        pod = a_v2_pod(**spec)
    else:
        world = a_v1_world(replicas=draw(st.sampled_from([3, 3, 3, 1])), **chosen)[3:]
        pod = a_pod(**spec)
    stand = Stand(*zonal_nodes(), *world)
    if draw(st.sampled_from([False] * 5 + [True])):
        stand.door.fails(f"list {PVC}", Forbidden("list", PVC, status=403))
    return Situation(stand, pod)


@given(situations())
@FEW
def test_never_widen_the_nodes_after_us_are_among_those_before_us(situation: Situation) -> None:
    answer = situation.stand.review(situation.pod)
    if answer.allowed:
        assert allowed(answer.pod, LABELLED) <= allowed(situation.pod, LABELLED)


@given(situations())
@FEW
def test_never_widen_not_even_with_the_floors_guard_taken_off_or_asked_again(situation: Situation) -> None:
    floored = (
        with_floor(json.loads(json.dumps(situation.pod))) if "affinity" not in situation.pod["spec"] else situation.pod
    )
    first = situation.stand.review(floored)
    second = situation.stand.review(first.pod)
    if second.allowed:
        assert allowed(second.pod, LABELLED) <= allowed(situation.pod, LABELLED)


# --- 3


@given(
    homes=st.lists(st.sets(st.integers(1, 4), min_size=1, max_size=2), min_size=3, max_size=3),
    cordoned=st.sets(st.integers(1, 4)),
    running=st.dictionaries(st.integers(1, 2), st.integers(1, 4)),
    component=st.sampled_from(["pd", "tikv"]),
)
@FEW
def test_never_away_from_the_data_a_pin_is_where_the_volume_is(
    homes: list[set[int]], cordoned: set[int], running: dict[int, int], component: str
) -> None:
    names = [f"{component}-db-{component}-{ordinal}" for ordinal in range(3)]
    world = [*nodes(4), a_set(component)]
    for name, home in zip(names, homes, strict=True):
        world += [a_claim(name, labels_v1(component), volume=f"disk-{name}")]
        world += [a_volume(f"disk-{name}", *(f"n{number}" for number in sorted(home)))]
    stand = Stand(*world)
    for number in cordoned:
        stand.patch(NODES, f"n{number}", {"spec": {"unschedulable": True}})
    for ordinal, number in running.items():
        stand.cluster.admit(a_pod(f"db-{component}-{ordinal}", nodeName=f"n{number}"), namespace=SPACE)
    answer = stand.review(a_pod(f"db-{component}-0"))
    where = {f"n{number}" for number in homes[0]}
    assert answer.outcome in ("pinned", "returned", "returned-waiting", "guarded")
    if answer.node:
        assert answer.node in where
    if len(where) == 1:
        assert not answer.guarded, "a member whose data is on one node must be able to start there"


# --- 4


@st.composite
def some_nodes(draw: st.DrawFn) -> list[Manifest]:
    return [
        a_node(
            f"n{number}",
            ready=draw(st.booleans()),
            cpu=draw(st.sampled_from(["500m", "8"])),
            **draw(st.sampled_from([{}, {}, {"unschedulable": True}, {"taints": [TAINT]}])),
        )
        for number in range(1, 5)
    ]


@given(some_nodes(), st.booleans())
@FEW
def test_no_knowing_wall_a_pin_is_a_node_that_the_scheduler_would_accept(
    found: list[Manifest], tolerates: bool
) -> None:
    stand = Stand(*found, a_set(), *claims(3))
    answer = stand.review(a_pod(**({"tolerations": [TOLERATION]} if tolerates else {})))
    possible = {
        node["metadata"]["name"]
        for node in found
        if node["status"]["conditions"][0]["status"] == "True"
        and node["status"]["allocatable"]["cpu"] == "8"
        and not node["spec"].get("unschedulable")
        and (tolerates or not node["spec"].get("taints"))
    }
    assert answer.guarded if not possible else answer.node in possible


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [TAINT]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"allocatable": {"cpu": "0"}}},
    ],
    ids=["cordoned", "tainted", "not ready", "full"],
)
def test_no_knowing_wall_a_node_is_judged_as_it_is_now(change: Manifest) -> None:
    stand = Stand(*a_v1_world(node_count=2))
    first = stand.review(a_pod())
    stand.patch(NODES, first.node, change)
    second = stand.review(a_pod())
    assert second.node not in ("", first.node)


# --- 5


@given(situations())
@FEW
def test_idempotent_our_own_output_fed_back_gives_no_patch(situation: Situation) -> None:
    first = situation.stand.review(situation.pod)
    again = situation.stand.review(first.pod, uid="another")
    if first.allowed:
        assert again.operations == []
        assert again.pod == first.pod


@given(situations())
@FEW
def test_idempotent_the_same_pod_asked_again_gets_the_same(situation: Situation) -> None:
    first = situation.stand.review(situation.pod)
    other = situation.stand.another()
    other.door.before = situation.stand.door.before
    again = other.review(situation.pod)
    assert (again.outcome, again.node, again.cause) == (first.outcome, first.node, first.cause)


# --- 6

TROUBLE = {
    "no answer": UnknownOutcome("list", "pods"),
    "forbidden": Forbidden("list", "pods", status=403),
    "absent": NotFound("list", "pods", status=404),
    "invalid": Invalid("list", "pods", status=422),
    "asked to wait": TooManyRequests("list", "pods", retry_after=30),
    "late": OutOfTime("late"),
}
CALLS = [
    f"list {PVC}",
    "list pods",
    "get statefulsets",
    "list nodes",
    f"patch {PVC} tikv-db-tikv-0",
    f"patch {PVC} tikv-db-tikv-1",
]


@pytest.mark.parametrize("error", TROUBLE.values(), ids=TROUBLE.keys())
@pytest.mark.parametrize("call", CALLS)
def test_fail_towards_waiting_whatever_fails_the_pod_is_let_in_and_guarded(call: str, error: Exception) -> None:
    stand = Stand(*a_v1_world())
    stand.door.fails(call, error)
    answer = stand.review(a_pod())
    assert answer.allowed
    assert (answer.outcome, answer.guarded, answer.node) == ("guarded", True, "")
    assert len(answer.warnings) == 1


@pytest.mark.parametrize("call", ["get tidbclusters", "get storageclasses"])
@pytest.mark.parametrize("error", [error for name, error in TROUBLE.items() if name != "absent"])
def test_fail_towards_waiting_so_too_where_an_object_that_may_be_absent_cannot_be_read(
    call: str, error: Exception
) -> None:
    stand = Stand(*a_v1_world())
    stand.door.fails(call, error)
    assert stand.review(a_pod()).guarded


@pytest.mark.parametrize("world", [[], nodes(0), [*nodes(), a_set()], a_v1_world(node_count=0)])
def test_fail_towards_waiting_whatever_is_missing(world: list[Manifest]) -> None:
    answer = Stand(*world).review(a_pod())
    assert (answer.allowed, answer.guarded) == (True, True)


# --- 7


def test_nothing_left_behind_entries_end_with_their_pods() -> None:
    stand = Stand(*a_v1_world())
    tokens = [stand.admit(a_pod(f"db-tikv-{ordinal}")).record["token"] for ordinal in range(3)]
    stand.delete(PODS, "db-tikv-2")
    last = stand.review(a_pod("db-tikv-2"))
    assert {entry["token"] for entry in stand.ledger()} & set(tokens[:2]) == set()
    assert last.record["token"] in {entry["token"] for entry in stand.ledger()}


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6))
@FEW
def test_nothing_left_behind_entries_without_pods_end_with_the_expiry(members: list[int]) -> None:
    stand = Stand(*a_v1_world())
    abandoned = {stand.review(a_pod(f"db-tikv-{ordinal}")).record["token"] for ordinal in members}
    stand.clock.elapsed += EXPIRY + 1
    for replica in (stand, stand.another()):
        answer = replica.review(a_pod("db-tikv-1"))
        assert answer.outcome == "pinned"
        assert abandoned.isdisjoint(entry["token"] for entry in stand.ledger())


@given(situations())
@FEW
def test_nothing_left_behind_a_dry_run_writes_nothing(situation: Situation) -> None:
    before = situation.stand.cluster.list(PODS, timeout=1).resource_version
    answer = situation.stand.review(situation.pod, dryRun=True)
    assert situation.stand.door.writes == []
    assert situation.stand.cluster.list(PODS, timeout=1).resource_version == before
    assert situation.stand.notices == []
    assert "token" not in answer.record


@given(st.dictionaries(st.sampled_from(CALLS), st.floats(0.0, 9.0)), st.floats(0.0, BUDGET))
@FEW
def test_nothing_left_behind_no_write_is_sent_in_the_last_second(costs: dict[str, float], budget: float) -> None:
    stand = Stand(*a_v1_world())
    sent: list[float] = []

    def taking(call: str, seconds: float) -> Any:
        def happening() -> None:
            if call.startswith("patch"):
                sent.append(stand.clock.elapsed)
            stand.clock.elapsed += seconds

        return happening

    for call in CALLS:
        stand.door.before[call] = taking(call, costs.get(call, 0.0))
    stand.review(a_pod(), budget=budget)
    # The door's own cost comes before a call is seen here.
    assert all(time - stand.door.costs <= budget - 1.0 for time in sent)


# --- 8


@dataclass
class Foreigner:
    """Another writer of the claims: between any two calls it changes what is its own, and remembers it."""

    stand: Stand
    numbers: Iterator[int] = field(default_factory=itertools.count)
    expected: dict[str, Manifest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in self.stand.cluster.list(CLAIMS, namespace=SPACE, timeout=1).items:
            self.expected[item["metadata"]["name"]] = foreign(item)

    def write(self) -> None:
        number = next(self.numbers)
        if number >= 9:
            return
        name = sorted(self.expected)[number % len(self.expected)]
        patch: Manifest = {
            "metadata": {
                "annotations": {
                    f"other.io/{number}": 'ä"\\\n€' * number,
                    "tidb.pingcap.com/pod-scheduling": str(number),
                },
                "labels": {"tidb.pingcap.com/store-id": str(number)},
                "finalizers": [f"other.io/{number}", "kubernetes.io/pvc-protection"],
            },
            "status": {"phase": "Pending", "conditions": [{"type": "Resizing", "status": str(number)}]},
        }
        self.stand.patch(CLAIMS, name, patch)
        stored = self.stand.cluster.get(CLAIMS, name, namespace=SPACE, timeout=1)
        kept = self.expected[name]
        kept["metadata"]["annotations"] |= patch["metadata"]["annotations"]
        kept["metadata"]["labels"] |= patch["metadata"]["labels"]
        kept["metadata"]["finalizers"] = patch["metadata"]["finalizers"]
        kept["status"] = {**kept["status"], **patch["status"]}
        assert foreign(stored) == kept


def foreign(claim: Manifest) -> Manifest:
    """A claim without what is ours and without its version."""
    copied: Manifest = json.loads(json.dumps(claim))
    del copied["metadata"]["resourceVersion"]
    annotations = copied["metadata"].get("annotations") or {}
    ours = [key for key in annotations if key.startswith(keys.PREFIX)]
    copied["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key not in ours}
    return copied


@pytest.mark.parametrize("members", [1, 3])
def test_only_ours_what_others_write_on_claims_survives_byte_for_byte(members: int) -> None:
    stand = Stand(*a_v1_world())
    foreigner = Foreigner(stand)
    for call in ("list", "patch"):
        stand.door.before[call] = foreigner.write
    for ordinal in range(members):
        assert stand.admit(a_pod(f"db-tikv-{ordinal}")).outcome == "pinned"
    assert next(foreigner.numbers) > 9, "the foreigner has written"
    found = {item["metadata"]["name"]: item for item in stand.cluster.list(CLAIMS, namespace=SPACE, timeout=1).items}
    assert {name: foreign(item) for name, item in found.items()} == foreigner.expected
    ours = {
        key
        for item in found.values()
        for key in item["metadata"]["annotations"]
        if "other.io" not in key and "pingcap" not in key
    }
    assert all(key == keys.LOCK or key.startswith(keys.ENTRY_PREFIX) for key in ours)


def test_only_ours_claims_are_all_that_is_ever_written_and_only_their_annotations() -> None:
    stand = Stand(*a_v1_world())
    patches: list[Manifest] = []
    plain = stand.cluster.merge_patch

    def seen(resource: Any, name: str, patch: Manifest, **parameters: Any) -> Manifest:
        patches.append(patch)
        return plain(resource, name, patch, **parameters)

    stand.door.cluster = Seen(stand.cluster, seen)  # type: ignore[assignment]
    for ordinal in range(3):
        stand.review(a_pod(f"db-tikv-{ordinal}"))
    assert {call.split()[1] for call in stand.door.writes} == {PVC}
    assert all(patch.keys() == {"metadata"} for patch in patches)
    assert {key for patch in patches for key in patch["metadata"]} <= {"resourceVersion", "uid", "annotations"}


class Seen:
    """A cluster whose patches a test sees."""

    def __init__(self, cluster: Any, merge_patch: Any) -> None:
        self._cluster = cluster
        self.merge_patch = merge_patch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


@given(situations())
@FEW
def test_only_ours_fields_of_the_pod_that_we_do_not_know_survive(situation: Situation) -> None:
    pod = json.loads(json.dumps(situation.pod))
    pod["spec"]["futureField"] = {"deep": [1, None, {"x": "ä"}]}
    pod["metadata"]["annotations"] = {"other.io/a~b/c": "1", **pod["metadata"].get("annotations", {})}
    answer = situation.stand.review(pod)
    if answer.allowed:
        assert answer.pod["spec"]["futureField"] == pod["spec"]["futureField"]
        assert pod["metadata"]["annotations"].items() <= answer.annotations.items()
        assert all(
            key.startswith(keys.PREFIX) for key in answer.annotations.keys() - pod["metadata"]["annotations"].keys()
        )


# --- 9


@pytest.mark.parametrize("ahead", [-(10**9), -3600.0, 0.0, 3600.0, 10**9])
def test_no_foreign_clock_a_machines_own_clock_changes_nothing(ahead: float) -> None:
    stand = Stand(*a_v1_world())
    first = stand.review(a_pod())
    skewed = stand.another(Clock(elapsed=ahead))
    second = skewed.review(a_pod("db-tikv-1"))
    assert (second.outcome, second.node != first.node) == ("pinned", True)
    assert {entry["time"] for entry in stand.ledger()} == {START}
    assert {entry["token"] for entry in stand.ledger()} == {first.record["token"], second.record["token"]}
    stand.clock.elapsed += EXPIRY + 2
    skewed.review(a_pod("db-tikv-2"))
    assert first.record["token"] not in {entry["token"] for entry in stand.ledger()}


@pytest.mark.parametrize("ahead", [-60, -30, 0, 30, 60])
def test_no_foreign_clock_the_clocks_of_two_api_servers_may_be_a_minute_apart(ahead: int) -> None:
    stand = Stand(*a_v1_world())
    stand.clock.elapsed = 10**6
    first = stand.review(a_pod())
    # The create of the answer's pod can still succeed for the API server's request time-out, 60 s.
    stand.clock.elapsed += 59 + ahead
    second = stand.another().review(a_pod("db-tikv-1"))
    assert first.record["token"] in {entry["token"] for entry in stand.ledger()}
    assert second.node != first.node


# --- 10


def test_independent_one_groups_stall_delays_neither_another_group_nor_a_pod_of_no_group() -> None:
    stand = Stand(*a_v1_world(), a_set("pd"), *claims(3, "pd"))
    entered, released = threading.Event(), threading.Event()
    stalled = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(3)]
    stand.door.happens("get statefulsets db-tikv", lambda: (entered.set(), released.wait(20)))
    with ThreadPoolExecutor(3) as callers:
        calls = [callers.submit(stand.review, pod) for pod in stalled]
        assert entered.wait(20)
        assert stand.review(a_pod("db-pd-0")).outcome == "pinned"
        assert stand.review(a_pod("web-0", labels={})).allowed
        assert not any(call.done() for call in calls)
        released.set()
        assert [call.result(20).outcome for call in calls] == ["pinned"] * 3


def test_independent_a_stalled_groups_dry_runs_are_bounded_like_its_creates() -> None:
    stand = Stand(*a_v1_world(), most_waiting=2)
    released, entered = threading.Event(), threading.Semaphore(0)
    stand.door.before["get statefulsets db-tikv"] = lambda: (entered.release(), released.wait(20))
    with ThreadPoolExecutor(2) as callers:
        calls = [callers.submit(stand.review, a_pod(), dryRun=True) for _ in range(2)]
        assert all(entered.acquire(timeout=20) for _ in calls)
        assert stand.review(a_pod(), dryRun=True).cause == "Busy"
        assert stand.review(a_pod()).cause == "Busy"
        released.set()
        assert [call.result(20).outcome for call in calls] == ["pinned"] * 2
    assert stand.review(a_pod(), dryRun=True).outcome == "pinned"
    assert stand.queues.groups() == frozenset()


def test_independent_a_pod_of_no_group_asks_nobody() -> None:
    stand = Stand(*a_v1_world())
    stand.review(a_pod("web-0", labels={"app": "web"}))
    assert stand.door.calls == []


@pytest.mark.parametrize("other", [a_pod("beta-tikv-0", labels=labels_v1(cluster="beta")), a_pod("db-pd-0")])
def test_independent_another_groups_broken_records_are_not_looked_at(other: Manifest) -> None:
    beta = [a_set(cluster="beta"), *claims(3, cluster="beta")]
    stand = Stand(*a_v1_world(), a_set("pd"), *claims(3, "pd"), *beta)
    for ordinal in range(3):
        broken = {"metadata": {"annotations": {keys.LOCK: '{"v": 99}'}}}
        stand.patch(CLAIMS, f"tikv-db-tikv-{ordinal}", broken)
    assert stand.review(a_pod()).cause == "NewerFormat"
    assert stand.review(other).outcome == "pinned"
