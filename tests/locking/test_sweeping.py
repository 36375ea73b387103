"""What the controller takes away of a group's records, and what it leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import NOW, make_claim, make_entry
from cluster_objects import SPACE, a_pod, a_v1_world
from stand import EXPIRY, Stand

from webhook.cluster.door import CLAIMS, PODS
from webhook.core import keys, ledger
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.deadline import Deadline
from webhook.errors import Conflict, NotFound, OutOfTime
from webhook.locking.sweeping import Sweep, may_be_over

GROUP = recognise(
    pod_from({**a_pod("db-tikv-0"), "metadata": {**a_pod("db-tikv-0")["metadata"], "namespace": SPACE}})
).group
PODS_OF_SET = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(3)]


def three_running() -> Stand:
    """Three members whose pods carry their tokens; what was written last is still on the claims, all of them Bound."""
    stand = Stand(*a_v1_world())
    for pod in PODS_OF_SET:
        stand.admit(pod)
    for pod in PODS_OF_SET:
        bound(stand, pod["metadata"]["name"])
    assert stand.records()
    return stand


def bound(stand: Stand, member: str) -> None:
    patch = {"spec": {"volumeName": f"pv-{member}"}, "status": {"phase": "Bound"}}
    stand.cluster.merge_patch(CLAIMS, f"tikv-{member}", patch, namespace=SPACE, timeout=1)


def swept(stand: Stand) -> int:
    stand.door.calls.clear()
    return Sweep(stand.store, stand.memory, EXPIRY).run(GROUP, Deadline.after(5, stand.clock.monotonic))


def test_the_records_of_a_quiet_group_go_from_its_bound_claims() -> None:
    stand = three_running()
    others = {"example.test/kept": "yes"}
    stand.cluster.merge_patch(
        CLAIMS, "tikv-db-tikv-0", {"metadata": {"annotations": others}}, namespace=SPACE, timeout=1
    )

    assert swept(stand) == 3

    assert stand.records() == {}
    assert stand.annotations_of("tikv-db-tikv-0")["example.test/kept"] == "yes"
    assert swept(stand) == 0
    assert stand.door.writes == []


def test_unbound_claims_are_not_written() -> None:
    stand = Stand(*a_v1_world())
    for pod in PODS_OF_SET:
        stand.admit(pod)
    before = stand.records()

    assert swept(stand) == 0
    assert (stand.records(), stand.door.writes) == (before, [])


def an_old_record():
    old = make_entry("db-tikv-0", "n1", token="token000001", time=NOW - 200)
    return ledger.ledger_annotations([old])


@pytest.mark.parametrize(
    ("annotations", "changes", "pays"),
    [
        (an_old_record(), {"volume_name": "pv"}, True),
        (an_old_record(), {}, False),
        (an_old_record(), {"volume_name": "pv", "deleting": True}, False),
        ({keys.LOCK: "{"}, {"volume_name": "pv"}, False),
        ({}, {"volume_name": "pv"}, False),
    ],
    ids=["bound", "unbound", "being deleted", "unreadable", "without a record"],
)
def test_only_a_record_that_is_over_on_a_bound_claim_makes_a_sweep_pay(annotations, changes, pays: bool) -> None:
    claims = [make_claim(annotations=annotations, **changes), make_claim("other")]
    assert may_be_over(claims, [], NOW, EXPIRY) is pays


@pytest.mark.parametrize(("age", "pays"), [(-10, True), (10, False), (121, True)])
def test_a_live_entry_makes_none_pay_and_one_of_the_future_may(age: int, pays: bool) -> None:
    entry = make_entry("db-tikv-0", "n1", token="token000001", time=NOW - age)
    claims = [make_claim(annotations=ledger.ledger_annotations([entry]), volume_name="pv")]
    assert may_be_over(claims, [], NOW, EXPIRY) is pays


def test_claims_without_records_are_not_written() -> None:
    stand = three_running()
    stand.cluster.merge_patch(CLAIMS, "tikv-db-tikv-0", {"metadata": {"annotations": None}}, namespace=SPACE, timeout=1)
    assert swept(stand) == 2


@pytest.mark.parametrize("elapsed", [0.0, EXPIRY - 1])
def test_nothing_goes_while_one_answer_is_on_its_way(elapsed: float) -> None:
    stand = three_running()
    stand.cluster.delete(PODS, "db-tikv-2", namespace=SPACE, timeout=1)
    stand.review(PODS_OF_SET[2])
    before = stand.records()
    stand.clock.elapsed += elapsed

    assert swept(stand) == 0
    assert stand.records() == before


def test_an_answer_whose_pod_never_came_goes_when_it_has_expired() -> None:
    stand = three_running()
    stand.cluster.delete(PODS, "db-tikv-2", namespace=SPACE, timeout=1)
    stand.review(PODS_OF_SET[2])
    stand.clock.elapsed += EXPIRY + 1

    assert swept(stand) > 0
    assert stand.records() == {}


@pytest.mark.parametrize("value", ["{", '{"v":2,"entries":[]}'], ids=["unreadable", "of a newer version"])
def test_nothing_goes_on_doubt(value: str) -> None:
    stand = three_running()
    stand.cluster.merge_patch(
        CLAIMS, "tikv-db-tikv-2", {"metadata": {"annotations": {keys.LOCK: value}}}, namespace=SPACE, timeout=1
    )
    before = stand.records()

    assert swept(stand) == 0
    assert stand.records() == before


@pytest.mark.parametrize("error", [Conflict, NotFound])
def test_who_writes_meanwhile_goes_first(error: type[Exception]) -> None:
    stand = three_running()
    stand.door.fails("patch", error("patch", CLAIMS.plural, "x"))
    assert swept(stand) == 0


def test_without_time_nothing_is_sent() -> None:
    stand = three_running()
    with pytest.raises(OutOfTime):
        Sweep(stand.store, stand.memory, EXPIRY).run(GROUP, Deadline.after(0, stand.clock.monotonic))


def test_what_is_dated_in_the_future_goes_when_it_has_been_known_for_long_enough() -> None:
    stand = three_running()
    for name in ("db-tikv-0", "db-tikv-1", "db-tikv-2"):
        stand.cluster.delete(PODS, name, namespace=SPACE, timeout=1)
    # This API server's clock is an hour behind that of the one that dated the entries.
    sweep = Sweep(Late(stand), stand.memory, EXPIRY)
    assert sweep.run(GROUP, Deadline.after(5, stand.clock.monotonic)) == 0
    stand.clock.elapsed += EXPIRY + 1
    assert sweep.run(GROUP, Deadline.after(5, stand.clock.monotonic)) == 3


class Late:
    """The store, by a clock that is an hour behind."""

    def __init__(self, stand: Stand) -> None:
        self._store = stand.store
        self.list_pods, self.swap = stand.store.list_pods, stand.store.swap

    def list_claims(self, group, deadline):
        listing = self._store.list_claims(group, deadline)
        return replace(listing, now=listing.now - 3600)
