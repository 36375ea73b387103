"""The judgement of rescue, as tables: which pods we hold, and what is done for them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cluster_objects import a_pod, own_guard, pinned, with_floor

from webhook.controller import texts
from webhook.controller.rescue import Held, Kind, LeftAlone, Sight, Verdict, held_by_us, judge
from webhook.core import keys
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.messages import EVENT_LIMIT
from webhook.core.model import Decision, Group
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause, Outcome


def the_group() -> Group:
    group = recognise(pod_from(a_pod())).group
    assert group is not None
    return group


def decided(outcome: str, *, cause: str = "", member: str = "db-tikv-0", node: str = "", **pod: Any) -> Pod:
    """A pod with a decision of ours."""
    record = {"v": 1, "member": member, "outcome": outcome, "cause": cause, "node": node, "topologyKey": keys.HOSTNAME}
    annotations = {keys.DECISION: json.dumps(record), **pod.pop("annotations", {})}
    return pod_from(a_pod(annotations=annotations, **pod))


def guarded_by_us(cause: str = "NoSafeNode") -> Pod:
    return decided("guarded", cause=cause, annotations={keys.GUARD: keys.HOSTNAME}, affinity=own_guard())


@pytest.mark.parametrize(
    ("pod", "kind", "node"),
    [
        pytest.param(decided("pinned", node="n1", affinity=pinned("n1")), Kind.PINNED, "n1", id="pinned"),
        pytest.param(decided("returned", node="n1", affinity=pinned("n1")), Kind.PINNED, "n1", id="returned"),
        pytest.param(guarded_by_us(), Kind.GUARDED, "", id="guarded"),
        pytest.param(decided("guarded", cause="Busy"), Kind.GUARDED, "", id="guarded by a term of its own"),
        pytest.param(pod_from(with_floor(a_pod())), Kind.GUARDED, "", id="guarded by the floor"),
    ],
)
def test_pods_that_wait_by_our_decision_are_held(pod: Pod, kind: Kind, node: str) -> None:
    assert held_by_us(pod, the_group()) == Held(pod, the_group(), kind, node)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(pod_from(a_pod()), "neither a decision", id="nothing of ours"),
        pytest.param(decided("pinned", node="n1"), "taken off", id="its pin was taken off"),
        pytest.param(decided("pinned", node="n1", affinity=pinned("n2")), "taken off", id="pinned by others"),
        pytest.param(decided("pinned", member="db-tikv-1", node="n1", affinity=pinned("n1")), "own name", id="copied"),
        pytest.param(decided("returned-waiting"), "volume", id="held by its volume"),
        pytest.param(decided("admitted", cause="NoSafeNode"), "we do not hold", id="admitted"),
        pytest.param(decided("untouched", cause="SetOfOne"), "we do not hold", id="untouched"),
        pytest.param(guarded_by_us("NoLockClaim"), "want of a claim", id="no claim"),
        pytest.param(guarded_by_us("GuardOption"), "placement", id="guarded as its user wished"),
        pytest.param(guarded_by_us("OtherScheduler"), "another scheduler", id="guarded for another scheduler"),
        pytest.param(replace(guarded_by_us(), owner=None), "no controller", id="nobody would create it again"),
        pytest.param(replace(guarded_by_us(), deleting=True), "being deleted", id="going"),
        pytest.param(replace(guarded_by_us(), node_name="n1"), "has a node", id="bound"),
        pytest.param(replace(guarded_by_us(), nominated_node_name="n1"), "about to bind", id="nominated"),
        pytest.param(replace(guarded_by_us(), phase="Failed"), "has run", id="over"),
        pytest.param(replace(guarded_by_us(), scheduler_name="volcano"), "another scheduler", id="other scheduler"),
        pytest.param(replace(guarded_by_us(), scheduler_name="tidb-scheduler"), "TidbScheduler", id="tidb-scheduler"),
    ],
)
def test_other_pods_are_left_alone_with_a_reason(pod: Pod, why: str) -> None:
    found = held_by_us(pod, the_group(), other_schedulers=("volcano",))
    assert isinstance(found, LeftAlone)
    assert why in found.why


def test_a_pod_with_scheduling_gates_is_left_alone() -> None:
    assert held_by_us(guarded_by_us(), the_group(), gated=True) == LeftAlone("its scheduling gates hold it")


PINNED = Held(decided("pinned", node="n1", affinity=pinned("n1")), the_group(), Kind.PINNED, "n1")
GUARDED = Held(guarded_by_us(), the_group(), Kind.GUARDED)
TO_N2 = Decision(Outcome.PINNED, node="n2")
NOWHERE = Decision(Outcome.GUARDED, Cause.NO_SAFE_NODE, detail="all full")


@pytest.mark.parametrize(
    ("held", "seen", "verdict"),
    [
        pytest.param(PINNED, Sight(TO_N2), Verdict.LEAVE, id="it can run, though another node ranks higher"),
        pytest.param(PINNED, Sight(TO_N2, problem="cordoned"), Verdict.FREE, id="another node"),
        pytest.param(
            PINNED, Sight(Decision(Outcome.RETURNED, node="n2"), problem="gone"), Verdict.FREE, id="back, elsewhere"
        ),
        pytest.param(PINNED, Sight(replace(TO_N2, node="n1"), problem="full"), Verdict.STUCK, id="the same node"),
        pytest.param(PINNED, Sight(NOWHERE, problem="cordoned"), Verdict.STUCK, id="a guard is nothing better"),
        pytest.param(
            PINNED, Sight(Decision(Outcome.RETURNED_WAITING), problem="cordoned"), Verdict.STUCK, id="its data holds it"
        ),
        pytest.param(
            PINNED,
            Sight(Decision(Outcome.UNTOUCHED, Cause.SKIP_OPTION), problem="cordoned"),
            Verdict.LEAVE,
            id="skipped by now",
        ),
        pytest.param(
            PINNED, Sight(TO_N2, problem="cordoned", unwanted="paused"), Verdict.LEAVE, id="not wanted any more"
        ),
        pytest.param(GUARDED, Sight(TO_N2), Verdict.FREE, id="a place"),
        pytest.param(
            GUARDED, Sight(Decision(Outcome.GUARDED, Cause.GUARD_OPTION)), Verdict.LEAVE, id="to be guarded by now"
        ),
        pytest.param(GUARDED, Sight(NOWHERE), Verdict.STUCK, id="no place"),
        pytest.param(GUARDED, Sight(TO_N2, settling=True), Verdict.LEAVE, id="its volume is being made"),
        pytest.param(
            GUARDED, Sight(Decision(Outcome.GUARDED, Cause.NO_LOCK_CLAIM)), Verdict.STUCK, id="its claim is gone"
        ),
        *(
            pytest.param(held, Sight(Decision(Outcome.GUARDED, cause)), Verdict.UNKNOWN, id=f"{held.kind}: {cause}")
            for held in (PINNED, GUARDED)
            for cause in (Cause.API_TROUBLE, Cause.API_FORBIDDEN, Cause.BUDGET_USED_UP, Cause.BUSY, Cause.NEWER_FORMAT)
        ),
    ],
)
def test_the_verdict_follows_from_what_is_there(held: Held, seen: Sight, verdict: Verdict) -> None:
    finding = judge(held, seen)
    assert (finding.verdict, bool(finding.why)) == (verdict, True)


def test_what_is_said_fits_into_an_event_however_long_the_names() -> None:
    long = replace(PINNED, node="n" * 253, pod=replace(PINNED.pod, name="p" * 253))
    seen = Sight(Decision(Outcome.PINNED, node="m" * 253), problem="r\n" * 400)
    stuck = texts.of_stuck(long, Sight(replace(NOWHERE, detail=""), problem="r\n" * 400))
    for text in (texts.of_replaced(long, seen), stuck[1]):
        assert len(text) == EVENT_LIMIT
        assert text.isprintable()


def test_nothing_is_said_of_a_guard_that_is_no_trouble() -> None:
    assert texts.of_stuck(GUARDED, Sight(Decision(Outcome.GUARDED, Cause.GUARD_OPTION))) == ("", "")


def test_of_a_guarded_pod_whose_volume_holds_it_the_outcome_is_the_reason() -> None:
    assert texts.of_stuck(GUARDED, Sight(Decision(Outcome.RETURNED_WAITING)))[0] == "PodReturnedWaiting"


def test_of_a_pinned_pod_whose_data_holds_it_the_outcome_is_said() -> None:
    reason, message = texts.of_stuck(PINNED, Sight(Decision(Outcome.RETURNED_WAITING), problem="cordoned"))
    assert (reason, message.endswith("returned-waiting")) == ("PodCannotRun", True)
