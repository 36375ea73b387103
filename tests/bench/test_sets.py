from __future__ import annotations

import pytest
from e2e.objects import Object

from bench.sets import settled

PLACED = {"spec": {"nodeName": "n0"}}
NEW: Object = {"spec": {}}
REFUSED = {
    "spec": {},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
}


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
