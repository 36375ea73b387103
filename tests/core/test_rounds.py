"""One round: who is decided first, and that each decision knows those before it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from builders import (
    LOCAL_VOLUMES,
    NOW,
    bound_claim,
    make_claim,
    make_desired,
    make_entry,
    make_group,
    make_nodes,
    make_placing,
    make_snapshot,
    member,
    running_members,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.model import Decision, Entry, Placing, Snapshot
from webhook.core.outcomes import Cause, Outcome
from webhook.core.placement import decide
from webhook.core.rounds import Planned, own_claim, plan_round

V2_NAMES = ("kv-tikv-c3", "kv-tikv-a1", "kv-tikv-b2")


def tokens() -> Iterable[str]:
    return (f"token{number:04d}" for number in itertools.count())


def planned(snapshot: Snapshot, *placings: Placing) -> tuple[Planned, ...]:
    return plan_round(snapshot, placings, decide, iter(tokens()))


def order(snapshot: Snapshot, *names: str) -> list[str]:
    return [plan.placing.pod.name for plan in planned(snapshot, *map(make_placing, names))]


def test_members_are_decided_by_ordinal() -> None:
    desired = make_desired(12)
    assert order(make_snapshot(desired=desired), member(10), member(9), member(2)) == [member(2), member(9), member(10)]


def test_members_that_return_to_their_data_come_first() -> None:
    snapshot = make_snapshot(claims=[bound_claim("on-n3", 2)], volumes=LOCAL_VOLUMES)
    assert order(snapshot, member(0), member(1), member(2)) == [member(2), member(0), member(1)]


def test_members_without_an_ordinal_are_decided_by_name() -> None:
    desired = make_desired(3, members=None)
    assert order(make_snapshot(desired=desired), *V2_NAMES) == sorted(V2_NAMES)


def test_members_that_are_not_desired_come_last() -> None:
    assert order(make_snapshot(), member(7), member(1), member(5)) == [member(1), member(5), member(7)]


def test_each_member_sees_the_answers_before_it() -> None:
    plans = planned(make_snapshot(), *(make_placing(member(ordinal)) for ordinal in range(3)))
    assert {plan.decision.node for plan in plans} == {"n1", "n2", "n3"}
    assert plans[2].decision.counts == {plans[0].decision.node: 1, plans[1].decision.node: 1}


def test_each_member_sees_what_those_before_it_ask_of_a_node() -> None:
    claims = [make_claim("tikv-db-tikv-2")]
    snapshot = make_snapshot(desired=make_desired(2), nodes=make_nodes(2, cpu=8), claims=claims)
    first, second = planned(snapshot, *(make_placing(member(n), requests={"cpu": 6}) for n in range(2)))
    assert {first.decision.node, second.decision.node} == {"n1", "n2"}
    third = make_placing(member(2), requests={"cpu": 6})
    _, _, full = planned(snapshot, *(make_placing(member(n), requests={"cpu": 6}) for n in range(2)), third)
    assert "Insufficient cpu" in full.decision.passed_over.values()


def test_a_decision_that_waits_for_its_node_takes_no_room_anywhere() -> None:
    def waits(snapshot: Snapshot, placing: Placing) -> Decision:
        rooms.append(dict(snapshot.rooms))
        return Decision(Outcome.RETURNED_WAITING, domain="n1")

    rooms: list[dict[str, object]] = []
    placings = [make_placing(member(ordinal)) for ordinal in range(2)]
    plans = plan_round(make_snapshot(), placings, waits, iter(tokens()))
    assert rooms == [{}, {}]
    assert [plan.entry and (plan.entry.node, plan.entry.domain) for plan in plans] == [("", "n1"), ("", "n1")]


def test_an_entry_says_who_goes_where_and_by_which_rule() -> None:
    [plan] = planned(make_snapshot(nodes=make_nodes(1)), make_placing())
    assert plan.entry == Entry(
        token="token0000",
        member="db-tikv-0",
        claim_uid="uid-tikv-db-tikv-0",
        node="n1",
        domain="n1",
        topology_key=keys.HOSTNAME,
        time=NOW,
    )


def test_each_entry_has_a_token_of_its_own() -> None:
    plans = planned(make_snapshot(), *(make_placing(member(ordinal)) for ordinal in range(3)))
    assert [plan.entry.token for plan in plans if plan.entry] == ["token0000", "token0001", "token0002"]


def test_a_pod_that_is_put_nowhere_leaves_no_entry_and_uses_no_token() -> None:
    one_node = make_snapshot(nodes=make_nodes(1), pods=running_members("n1"))
    [guarded] = planned(one_node, make_placing())
    [untouched] = planned(make_snapshot(desired=make_desired(1)), make_placing())
    assert (guarded.entry, guarded.decision.cause) == (None, Cause.NO_SAFE_NODE)
    assert (untouched.entry, untouched.decision.cause) == (None, Cause.SET_OF_ONE)


def test_a_guarded_pod_does_not_hold_up_those_after_it() -> None:
    snapshot = make_snapshot(nodes=make_nodes(2), pods=running_members("n2", first=2))
    first, second = planned(snapshot, make_placing(member(0)), make_placing(member(1)))
    assert (first.decision.outcome, second.decision.outcome) == (Outcome.PINNED, Outcome.GUARDED)


def test_the_own_claim_is_the_first_that_the_label_finds() -> None:
    hidden, found = make_claim("hidden"), make_claim("found")
    placing = make_placing(claim_names=("hidden", "found", "third"))
    assert own_claim(placing, [make_claim("third"), found]) == found
    assert own_claim(placing, [make_claim("other")]) is None
    assert own_claim(placing, [hidden, found]) == hidden


def test_the_entry_names_a_claim_that_the_groups_label_does_not_find() -> None:
    snapshot = replace(make_snapshot(), claims=(make_claim("tikv-db-tikv-1"),))
    [plan] = planned(snapshot, make_placing())
    assert plan.entry is not None
    assert plan.entry.claim_uid == snapshot.volumes.claims["tikv-db-tikv-0"].uid


def test_without_a_claim_the_entry_names_none() -> None:
    [plan] = planned(make_snapshot(), make_placing(claim_names=()))
    assert plan.entry is not None
    assert plan.entry.claim_uid == ""


def test_a_member_gets_its_own_entrys_node_again_in_a_round() -> None:
    snapshot = make_snapshot(entries=[make_entry(member(0), "n3")])
    plans = planned(snapshot, make_placing(member(0)), make_placing(member(1)))
    assert plans[0].decision.node == "n3"
    assert plans[1].decision.node != "n3"


@given(
    replicas=st.integers(2, 9),
    count=st.integers(1, 6),
    chosen=st.sets(st.integers(0, 8), min_size=1),
    seed=st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_a_round_does_not_depend_on_the_order_of_its_requests_and_stays_within_the_cap(
    replicas: int, count: int, chosen: set[int], seed: object
) -> None:
    group = make_group("pd")
    snapshot = make_snapshot(group=group, desired=make_desired(replicas, group=group), nodes=make_nodes(count))
    names = [member(ordinal, group) for ordinal in sorted(chosen) if ordinal < replicas]
    placings = [make_placing(name, group=group) for name in names]
    shuffled = list(placings)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    plans = planned(snapshot, *placings)
    assert plans == planned(snapshot, *shuffled)
    domains = [plan.entry.domain for plan in plans if plan.entry]
    caps = {plan.decision.cap for plan in plans if plan.decision.cap is not None}
    assert all(domains.count(domain) <= max(caps) for domain in domains)
