"""Faults in the middle of a round: whatever happens to replicas, API servers, etcd and claims, nobody stacks.

The pods are created with failurePolicy Fail by a controller (the test) that tries again after each failure.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.conftest import define, registered
from e2e.control_plane import ControlPlane
from e2e.faults import Answer, Delay, DelayAnswer, DropAnswer, Reset, Rule
from e2e.objects import ENTRY_PREFIX, LOCK, Object
from e2e.place import Create, HandSet, Place, Tries, node_of, per_node, pin_of
from e2e.replicas import SERVICE, Replica, Webhook, tally, wait_until_called
from e2e.rounds import few, rounds
from e2e.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]
Tell = Callable[[str], None]
CLAIMS = "/persistentvolumeclaims/"


@pytest.fixture(scope="module")
def frail(
    control_plane: ControlPlane, service_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """Three replicas, each behind a fault proxy; a test leaves them running and without rules."""
    folder = tmp_path_factory.mktemp("frail")
    with Webhook(control_plane, folder, replicas=3, proxied=True, service=(service_namespace, SERVICE)) as webhook:
        yield webhook


@pytest.fixture
def frail_place(api: Api, create: Create, frail: Webhook, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace whose members go to the frail replicas."""
    for proxy in frail.proxies:
        proxy.set_rules()
    with registered(api, create, frail, request.node.name) as place:
        yield place


class Rounds:
    """Sets of `size` on three nodes, `sets` of them at once, with a fault in the middle of their creates."""

    def __init__(self, place: Place, create: Create, size: int = 3, sets: int = 1, apis: Sequence[Api] = ()) -> None:
        self.apis = apis
        create(*objects.local_cluster(THREE, volumes=size * sets))
        self.place, self.size, self.sets = place, size, sets
        self.given: Counter[str] = Counter()
        self.refused = 0
        self.slowest = 0.0
        self._number = 0

    @contextmanager
    def one(self) -> Iterator[Round]:
        """All creates at once, while the `with` block disturbs them; then what came of them is checked."""
        sets = [HandSet(self.place, f"db{self._number + i}", replicas=self.size) for i in range(self.sets)]
        self._number += self.sets
        for members in sets:
            members.create_claims(range(self.size))
        with ThreadPoolExecutor(max_workers=self.sets) as executor:
            creates = [
                executor.submit(members.create_pods, range(self.size), timeout=90, apis=self.apis) for members in sets
            ]
            yield Round(sets, creates)
        for members, created in zip(sets, creates, strict=True):
            self.check(members, created.result())

    def check(self, members: HandSet, tries: Tries) -> None:
        """Nobody is beside too many siblings, by pins and by nodes; who is pinned gets there."""
        pods = members.pods()
        assert len(pods) == self.size
        pins = Counter(filter(None, map(pin_of, pods)))
        most = -(-self.size // 3)
        assert max(pins.values(), default=0) <= most, pins
        placed = members.place.wait_for(
            lambda found: all(node_of(pod) for pod in found if pin_of(pod)), members.cluster, members.component
        )
        assert max(per_node(placed), default=0) <= most
        self.given += tally(placed)
        self.refused += len(tries.refused)
        self.slowest = max(self.slowest, tries.slowest)
        members.remove()

    def summary(self) -> str:
        """What the pods got."""
        tried = f"{self.refused} creates tried again; slowest create {self.slowest:.1f} s"
        return f"{self._number} sets of {self.size}: {dict(self.given)}; {tried}"

    def share_pinned(self) -> float:
        """The share of the pods that were pinned."""
        return self.given["pinned"] / max(1, self.given.total())


@dataclass
class Round:
    """The sets that are being created."""

    sets: list[HandSet]
    creates: list[Future[Tries]]

    def wait(self) -> None:
        """Until all creates are through."""
        for created in self.creates:
            created.result()


def first_writer(webhook: Webhook) -> Replica:
    """Wait until a replica has written to a claim, and so is in the middle of a round."""

    def writer() -> Replica | None:
        for replica in webhook.replicas:
            if replica.proxy is not None and any(call.status for call in replica.proxy.seen("PATCH", CLAIMS)):
                return replica
        return None

    return wait_until(writer, "a replica to write", 30)


def slow_answers(webhook: Webhook, seconds: float = 0.4) -> None:
    """Hold back the answers to writes, so that a round can be caught in its middle; calls are counted anew."""
    for proxy in webhook.proxies:
        proxy.forget()
        proxy.set_rules(Rule(DelayAnswer(seconds), method="PATCH", path=CLAIMS))


@pytest.mark.timeout(120 + 15 * few(200))
@pytest.mark.parametrize("size", [3, 9])
def test_a_replica_that_is_killed_in_the_middle_of_a_round_stacks_nobody(
    create: Create, frail: Webhook, frail_place: Place, tell: Tell, size: int
) -> None:
    scenario = Rounds(frail_place, create, size, sets=3)

    for _ in range(few(200)):
        slow_answers(frail)
        with scenario.one():
            victim = first_writer(frail)
            victim.child.kill()
        victim.start()

    tell(scenario.summary())
    assert scenario.share_pinned() >= 0.9


@pytest.mark.timeout(120 + 30 * few(50))
@pytest.mark.parametrize("seconds", [3, 11], ids=["shorter-than-the-time-out", "longer-than-the-time-out"])
def test_a_replica_that_is_frozen_in_the_middle_of_a_round_stacks_nobody(
    create: Create, frail: Webhook, frail_place: Place, tell: Tell, seconds: int
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    # A round lasts as long as the replica is frozen.
    for _ in range(few(50, most=2 if seconds < 10 else 1)):
        slow_answers(frail)
        with scenario.one():
            victim = first_writer(frail)
            victim.child.freeze()
            thaw = threading.Timer(seconds, victim.child.thaw)
            thaw.start()
            thaw.join()
        victim.wait_ready()

    tell(scenario.summary())
    assert scenario.share_pinned() >= 0.8


@pytest.mark.timeout(120 + 30 * few(50))
def test_an_api_server_that_is_killed_and_started_again_in_the_middle_of_a_round_stacks_nobody(
    control_plane: ControlPlane, create: Create, frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    for _ in range(few(50)):
        slow_answers(frail)
        with scenario.one():
            first_writer(frail)
            control_plane.restart_apiserver()

    tell(scenario.summary())
    assert scenario.share_pinned() >= 0.8


@pytest.mark.timeout(120 + 15 * rounds(50))
def test_etcd_frozen_for_two_seconds_in_the_middle_of_a_round_stacks_nobody(
    control_plane: ControlPlane, create: Create, frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    for _ in range(few(50)):
        slow_answers(frail)
        with scenario.one():
            first_writer(frail)
            with control_plane.etcd_frozen():
                thread = threading.Timer(2, lambda: None)
                thread.start()
                thread.join()

    tell(scenario.summary())
    assert scenario.share_pinned() >= 0.9


@pytest.mark.timeout(120 + 15 * rounds(200))
@pytest.mark.parametrize(
    ("fault", "pinned"),
    [
        (Rule(DropAnswer(), method="PATCH", path=CLAIMS, calls=range(1, 4)), 0.9),
        (Rule(DropAnswer(), method="PATCH", path=CLAIMS, calls=range(3, 6)), 0.9),
        (Rule(DropAnswer(stall=True), method="PATCH", path=CLAIMS, calls=range(1, 4)), 0.0),
        (Rule(Delay(1.0), method="PATCH", path=CLAIMS, calls=range(1, 4)), 0.8),
        (Rule(Answer(503), method="PATCH", path=CLAIMS, calls=(1, 3, 5, 7)), 0.9),
        (Rule(Answer(429, retry_after=1), method="PATCH", path=CLAIMS, calls=range(1, 4)), 0.9),
        (Rule(Answer(504), method="GET", path="/pods", calls=range(1, 7)), 0.9),
        (Rule(Reset(), method="PATCH", path=CLAIMS, calls=range(1, 7)), 0.9),
    ],
    ids=[
        "swap-applied-answer-lost",
        "second-record-applied-answer-lost",
        "swap-applied-answer-never",
        "late-writes",
        "write-503",
        "write-429",
        "list-504",
        "write-reset",
    ],
)
def test_calls_that_fail_in_the_middle_of_a_round_stack_nobody(
    create: Create, frail: Webhook, frail_place: Place, tell: Tell, fault: Rule, pinned: float
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    for _ in range(few(200)):
        for proxy in frail.proxies:
            proxy.set_rules(fault)
        with scenario.one():
            pass

    tell(scenario.summary())
    assert scenario.share_pinned() >= pinned


@pytest.mark.timeout(120 + 30 * few(30))
def test_a_swap_that_arrives_after_its_request_was_answered_stacks_nobody(
    create: Create, frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    for _ in range(few(30, most=1)):
        for proxy in frail.proxies:
            # Longer than the whole budget of an admission.
            proxy.set_rules(Rule(Delay(12), method="PATCH", path=CLAIMS, calls=range(1, 4)))
        with scenario.one():
            pass

    tell(scenario.summary())


@pytest.mark.timeout(120 + 15 * rounds(100))
@pytest.mark.parametrize("pause", [0.0, 0.02], ids=["without-pause", "fifty-times-a-second"])
def test_a_stranger_who_writes_the_lock_claim_all_the_time_makes_nobody_stack(
    api: Api, create: Create, frail_place: Place, tell: Tell, pause: float
) -> None:
    scenario = Rounds(frail_place, create, sets=3)
    written = 0

    for _ in range(few(100, most=1)):
        with (
            scenario.one() as one,
            writing(api, [members.claim_name(0) for members in one.sets], frail_place.namespace, pause) as writes,
        ):
            one.wait()
        written += writes.count

    tell(f"{scenario.summary()}; {written} foreign writes")
    # Who writes without pause takes the whole budget of everybody; that is no reason to stack.
    assert scenario.share_pinned() >= (0.4 if pause else 0)


@pytest.mark.timeout(120 + 15 * rounds(100))
def test_annotations_that_are_put_back_to_an_older_copy_stack_nobody(
    api: Api, create: Create, frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, create)
    undone = 0

    for number in range(rounds(100)):
        slow_answers(frail, 0.1)
        # The lock claim's ledger, or the second records of the next claim: one record may be lost per admission.
        with scenario.one() as one:
            undone += put_back(api, frail_place.namespace, one.sets[0].claim_name(number % 2))

    tell(f"{scenario.summary()}; {undone} times undone")
    assert undone > 0
    assert scenario.share_pinned() >= 0.9


@pytest.mark.timeout(120 + 15 * rounds(100))
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted-and-created-again"])
def test_a_lock_claim_that_is_deleted_in_the_middle_of_a_round_stacks_nobody(
    api: Api, create: Create, frail: Webhook, frail_place: Place, tell: Tell, again: bool
) -> None:
    scenario = Rounds(frail_place, create, sets=3)

    for _ in range(few(100)):
        slow_answers(frail, 0.3)
        with scenario.one() as one:
            first_writer(frail)
            for members in one.sets:
                api.delete("PersistentVolumeClaim", members.claim_name(0), frail_place.namespace)
                if again:
                    create_again(api, objects.member_claims(members.set, 0)[0])

    tell(scenario.summary())
    assert scenario.share_pinned() >= 0.6


@pytest.mark.timeout(200 + 30 * few(50))
def test_two_api_servers_on_one_etcd_of_which_one_is_killed_stack_nobody(tmp_path: Path, tell: Tell) -> None:
    with (
        ControlPlane(tmp_path / "plane", apiservers=2) as plane,
        Api(plane.urls[0], plane.token, plane.files.ca) as first,
        Api(plane.urls[1], plane.token, plane.files.ca) as second,
        Webhook(
            plane, tmp_path / "webhook", replicas=3, proxied=True, servers=plane.urls, service=("system", SERVICE)
        ) as webhook,
    ):

        def create(*manifests: Object) -> list[Object]:
            return [first.create(manifest) for manifest in manifests]

        define(first, objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets"))
        create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}})
        create(objects.external_name_service("system", SERVICE))
        with registered(first, create, webhook, "two-api-servers") as place:
            wait_until_called(second, place.namespace)
            scenario = Rounds(place, create, size=9, sets=1, apis=(first, second))
            for _ in range(few(50)):
                with scenario.one():
                    pass
            undisturbed = scenario.summary()
            for _ in range(few(50)):
                slow_answers(webhook)
                with scenario.one():
                    first_writer(webhook)
                    plane.restart_apiserver(1)

    tell(f"undisturbed: {undisturbed}; then: {scenario.summary()}")
    assert scenario.share_pinned() >= 0.8


class Writes:
    """How many writes somebody made."""

    count = 0


@contextmanager
def writing(api: Api, claims: Sequence[str], namespace: str, pause: float) -> Iterator[Writes]:
    """Change an annotation of some claims again and again."""
    done, stop = Writes(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            done.count += 1
            patch = {"metadata": {"annotations": {"example.test/touched": str(done.count)}}}
            for claim in claims:
                api.patch("PersistentVolumeClaim", claim, patch, namespace)
            stop.wait(pause)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def put_back(api: Api, namespace: str, claim: str) -> int:
    """What tidb-operator v1 does after a conflict: the newest claim with the annotations of an older copy, once.

    How often one of ours was undone.
    """
    old = api.get("PersistentVolumeClaim", claim, namespace)

    def changed() -> bool:
        return bool(ours(api.get("PersistentVolumeClaim", claim, namespace)) - ours(old))

    try:
        wait_until(changed, "a record of ours", 2)
    except TimeoutError:
        # No record came to this claim.
        return 0
    while True:
        newest = api.get("PersistentVolumeClaim", claim, namespace)
        undone = len(ours(newest) - ours(old))
        newest["metadata"]["annotations"] = old["metadata"].get("annotations", {})
        try:
            api.replace(newest)
        except ApiError as error:
            if error.status != 409:
                raise
            continue
        return min(undone, 1)


def ours(claim: Object) -> set[tuple[str, str]]:
    """The records on a claim."""
    annotations: dict[str, str] = claim["metadata"].get("annotations", {})
    return {(key, value) for key, value in annotations.items() if key == LOCK or key.startswith(ENTRY_PREFIX)}


def create_again(api: Api, claim: Object) -> None:
    """Create a claim as soon as the one of its name is gone."""

    def created() -> bool:
        try:
            api.create(claim)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    wait_until(created, "the claim's name to be free", 5)
