from __future__ import annotations

from pathlib import Path

import pytest
from e2e.objects import Object

from bench.arrivals import Arrivals
from bench.sets import refusal_of, settled, wait_settled

PLACED = {"spec": {"nodeName": "n0"}}
NEW: Object = {"spec": {}}
REFUSED = {
    "spec": {},
    "status": {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]
    },
}
LONG = 3600.0


@pytest.mark.parametrize(
    ("pods", "possible", "expected"),
    [
        ([PLACED, PLACED, PLACED], 3, True),
        ([PLACED, PLACED, REFUSED], 2, True),
        # May yet be placed.
        ([PLACED, PLACED, REFUSED], 3, False),
        ([PLACED, REFUSED, REFUSED], 2, False),
        # Not yet looked at, not yet created.
        ([PLACED, PLACED, NEW], 2, False),
        ([PLACED, PLACED], 2, False),
        ([], 0, False),
    ],
)
def test_sets_have_settled_when_what_can_be_placed_is_and_the_others_were_refused(
    pods: list[Object], possible: int, expected: bool
):
    assert settled(3, possible)({str(index): pod for index, pod in enumerate(pods)}) is expected


def arrivals_with(*pods: Object) -> Arrivals:
    arrivals = Arrivals("http://localhost", "token", Path("unused"), "ns")
    arrivals.pods = {str(index): pod for index, pod in enumerate(pods)}
    return arrivals


@pytest.mark.parametrize(
    ("pods", "limit", "patience", "expected"),
    [
        ([PLACED, PLACED], LONG, LONG, True),
        ([PLACED, REFUSED], LONG, 0.0, True),
        ([PLACED, REFUSED], 0.01, LONG, False),
        ([PLACED, NEW], 0.01, 0.0, False),
    ],
    ids=["settled", "refused for long", "refused just now", "not looked at"],
)
def test_pods_are_waited_for_until_they_were_refused_for_long(
    pods: list[Object], limit: float, patience: float, expected: bool
):
    assert wait_settled(arrivals_with(*pods), 2, 2, limit, patience) is expected


def test_what_the_scheduler_says_of_a_refused_pod_is_kept():
    assert [refusal_of(pod) for pod in (PLACED, NEW, REFUSED)] == ["", "", "no room"]
