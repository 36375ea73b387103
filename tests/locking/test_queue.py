"""Requests of one group that reach one process share rounds; nobody waits beyond its own deadline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock, Thread

import pytest
from builders import make_claim, make_desired, make_group, make_nodes, make_pod
from polling import eventually

from webhook.core import keys
from webhook.core.carriers import OptionCarriers
from webhook.core.model import ClaimListing, Decision, Group, GroupState, Options, Placing, Snapshot
from webhook.core.objects import Claim
from webhook.core.outcomes import Cause, Outcome
from webhook.core.storage import Volumes
from webhook.deadline import Deadline
from webhook.locking.memory import AnswerMemory
from webhook.locking.protocol import Answer, Request
from webhook.locking.queue import GroupQueues
from webhook.locking.tools import RoundTools

# Only a guard against a test that hangs; no test is meant to wait so long.
PATIENCE = 20.0
TIKV, PD = make_group("tikv"), make_group("pd")


class HeldCluster:
    """A cluster whose first read waits until the test lets it go; it keeps what was written."""

    def __init__(self) -> None:
        self.entered: dict[Group, Event] = {TIKV: Event(), PD: Event()}
        self.released: dict[Group, Event] = {TIKV: Event(), PD: Event()}
        self.rounds: list[tuple[str, ...]] = []
        self.carriers = OptionCarriers()
        self._lock = Lock()
        self._annotations: dict[str, dict[str, str]] = {}

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        self.entered[group].set()
        assert self.released[group].wait(PATIENCE)
        claims = [make_claim(f"{group.component}-db-{group.component}-{ordinal}") for ordinal in range(3)]
        with self._lock:
            return ClaimListing(tuple(self._as_written(claim) for claim in claims), now=1000)

    def get_claim(self, namespace: str, name: str, deadline: Deadline) -> Claim | None:
        return None

    def read_group(
        self, group: Group, claims: Sequence[Claim], placings: Sequence[Placing], deadline: Deadline
    ) -> GroupState:
        with self._lock:
            self.rounds.append(tuple(placing.pod.name for placing in placings))
        desired = replace(make_desired(3, group=group), option_carriers=self.carriers)
        return GroupState((), desired, make_nodes(3), {}, Volumes())

    def swap(self, claim: Claim, annotations: dict[str, str | None], deadline: Deadline) -> None:
        self.annotate(claim, annotations, deadline)

    def annotate(self, claim: Claim, annotations: dict[str, str | None], deadline: Deadline) -> None:
        with self._lock:
            written = self._annotations.setdefault(claim.name, {})
            for key, value in annotations.items():
                written.pop(key, None)
                if value is not None:
                    written[key] = value

    def promise(self, group: Group, placing: Placing, node_name: str, claims: Iterable[Claim]) -> None:
        """Nothing: there is no other group."""

    def withdraw(self, placing: Placing) -> None:
        """Nothing: there is no other group."""

    def _as_written(self, claim: Claim) -> Claim:
        return make_claim(claim.name, annotations=dict(self._annotations.get(claim.name, {})))


def first_node(snapshot: Snapshot, placing: Placing) -> Decision:
    """A decision that needs no rule: the first node."""
    return Decision(Outcome.PINNED, node="n1", domain="n1")


@pytest.fixture
def cluster() -> Iterator[HeldCluster]:
    held = HeldCluster()
    yield held
    for event in held.released.values():
        event.set()


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield pool


def queues_of(
    cluster: HeldCluster,
    most_waiting: int = 8,
    decide: Callable[..., Decision] = first_node,
    memory: AnswerMemory | None = None,
) -> GroupQueues:
    tokens = (f"token{number:04d}" for number in itertools.count())
    tools = RoundTools(cluster, memory or AnswerMemory(), decide, 120.0, lambda _: None, lambda: 0.0, tokens)
    return GroupQueues(tools, most_waiting)


def request_for(name: str, seconds: float = PATIENCE) -> Request:
    group = PD if "-pd-" in name else TIKV
    deadline = Deadline.after(seconds)
    return Request(Placing(make_pod(name, group=group)), deadline, deadline.clock())


def test_requests_that_come_while_a_round_runs_are_decided_together_in_the_next(
    cluster: HeldCluster, callers: ThreadPoolExecutor
) -> None:
    queues = queues_of(cluster)
    first = callers.submit(queues.place, TIKV, request_for("db-tikv-0"))
    assert cluster.entered[TIKV].wait(PATIENCE)
    others = [callers.submit(queues.place, TIKV, request_for(name)) for name in ("db-tikv-1", "db-tikv-2")]
    eventually(lambda: queues.waiting() == 3)
    cluster.released[TIKV].set()
    assert [call.result(PATIENCE).decision.outcome for call in (first, *others)] == [Outcome.PINNED] * 3
    assert [sorted(names) for names in cluster.rounds] == [["db-tikv-0"], ["db-tikv-1", "db-tikv-2"]]


def test_two_creates_of_one_name_are_never_in_one_round(cluster: HeldCluster, callers: ThreadPoolExecutor) -> None:
    queues = queues_of(cluster)
    calls = [callers.submit(queues.place, TIKV, request_for("db-tikv-0")) for _ in range(3)]
    eventually(lambda: queues.waiting() == 3)
    cluster.released[TIKV].set()
    tokens = {call.result(PATIENCE).token for call in calls}
    assert len(tokens) == 3
    assert cluster.rounds == [("db-tikv-0",)] * 3


def test_a_caller_leaves_with_the_guard_at_its_own_deadline_while_the_round_goes_on_for_others(
    cluster: HeldCluster, callers: ThreadPoolExecutor
) -> None:
    queues = queues_of(cluster)
    patient = callers.submit(queues.place, TIKV, request_for("db-tikv-0"))
    assert cluster.entered[TIKV].wait(PATIENCE)
    hasty = callers.submit(queues.place, TIKV, request_for("db-tikv-1", seconds=0.05))
    assert hasty.result(PATIENCE).decision.cause is Cause.BUDGET_USED_UP
    cluster.released[TIKV].set()
    assert patient.result(PATIENCE).decision.outcome is Outcome.PINNED
    assert cluster.rounds == [("db-tikv-0",)]


def test_a_request_beyond_the_bound_gets_the_guard_at_once(cluster: HeldCluster, callers: ThreadPoolExecutor) -> None:
    queues = queues_of(cluster, most_waiting=2)
    waiting = [callers.submit(queues.place, TIKV, request_for(f"db-tikv-{number}")) for number in range(2)]
    eventually(lambda: queues.waiting() == 2)
    assert queues.place(TIKV, request_for("db-tikv-2")).decision.cause is Cause.BUSY
    cluster.released[TIKV].set()
    assert all(call.result(PATIENCE).decision.outcome is Outcome.PINNED for call in waiting)


def test_a_guard_without_a_round_keeps_to_the_options_that_were_read_last(cluster: HeldCluster) -> None:
    queues = queues_of(cluster, most_waiting=0)
    assert queues.place(TIKV, request_for("db-tikv-0")).decision.topology_key == Options().topology_key
    cluster.carriers = OptionCarriers(cluster={keys.PREFIX + keys.TOPOLOGY_KEY: "rack"})
    cluster.released[TIKV].set()
    memory = AnswerMemory()
    queues_of(cluster, memory=memory).place(TIKV, request_for("db-tikv-0"))
    answer = queues_of(cluster, most_waiting=0, memory=memory).place(TIKV, request_for("db-tikv-0"))
    assert (answer.decision.cause, answer.decision.topology_key) == (Cause.BUSY, "rack")
    assert answer.options == Options(topology_key="rack")


def test_independent_one_groups_stall_does_not_delay_another(cluster: HeldCluster, callers: ThreadPoolExecutor) -> None:
    queues = queues_of(cluster)
    stalled = callers.submit(queues.place, TIKV, request_for("db-tikv-0"))
    assert cluster.entered[TIKV].wait(PATIENCE)
    cluster.released[PD].set()
    assert queues.place(PD, request_for("db-pd-0")).decision.outcome is Outcome.PINNED
    assert not stalled.done()
    cluster.released[TIKV].set()
    stalled.result(PATIENCE)


def test_a_look_writes_nothing_and_waits_for_nobody(cluster: HeldCluster, callers: ThreadPoolExecutor) -> None:
    queues = queues_of(cluster)
    cluster.released[TIKV].set()
    seen = queues.look(TIKV, request_for("db-tikv-0"))
    assert (seen.decision.outcome, seen.token) == (Outcome.PINNED, "")
    assert all(not claim.annotations for claim in cluster.list_claims(TIKV, Deadline.after(1)).claims)


def test_a_defect_in_a_round_is_answered_at_once_and_does_not_stop_the_line(
    cluster: HeldCluster, callers: ThreadPoolExecutor
) -> None:
    def broken(snapshot: Snapshot, placing: Placing) -> Decision:
        if placing.pod.name == "db-tikv-0":
            raise RuntimeError("a defect")
        return first_node(snapshot, placing)

    queues = queues_of(cluster, decide=broken)
    first: Future[Answer] = callers.submit(queues.place, TIKV, request_for("db-tikv-0"))
    assert cluster.entered[TIKV].wait(PATIENCE)
    cluster.released[TIKV].set()
    assert first.result(PATIENCE).decision.cause is Cause.INTERNAL
    assert queues.place(TIKV, request_for("db-tikv-1")).decision.outcome is Outcome.PINNED


def test_a_line_without_requests_is_forgotten(cluster: HeldCluster) -> None:
    queues = queues_of(cluster)
    cluster.released[TIKV].set()
    queues.place(TIKV, request_for("db-tikv-0"))
    eventually(lambda: not queues.groups())


def test_where_no_thread_can_be_started_the_caller_is_not_kept_waiting_and_the_line_goes_on_later(
    cluster: HeldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = queues_of(cluster)
    cluster.released[TIKV].set()

    def no_thread(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", no_thread)
        assert queues.place(TIKV, request_for("db-tikv-0")).decision.cause is Cause.BUSY
    assert queues.groups() == frozenset()
    assert queues.place(TIKV, request_for("db-tikv-0")).decision.outcome is Outcome.PINNED
