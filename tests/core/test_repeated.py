"""Whether a decision of ours that a pod brings along is its own, and still in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import guard_term, make_group, make_pod, pinned_to

from webhook.core import keys
from webhook.core.objects import NodeSelector, Pod
from webhook.core.repeated import has_own_guard, own_placement

GROUP = make_group()


def placed(
    outcome: str = "pinned", *, node: str = "n1", annotations: Any = None, record: Any = None, **pod: Any
) -> Pod:
    """A pod with its own decision record; the pin too unless `node_affinity` is given."""
    own = {"v": 1, "token": "t0k3nt0k3n", "member": "db-tikv-0", "outcome": outcome, "node": node, **(record or {})}
    pod.setdefault("node_affinity", pinned_to(node) if node else None)
    return make_pod(annotations={keys.DECISION: json.dumps(own), **(annotations or {})}, **pod)


@pytest.mark.parametrize(
    "pod",
    [
        placed(),
        placed("returned"),
        placed("returned-waiting", node=""),
        placed(record={"hostname": "h1"}, node_affinity=None, node_selector={keys.HOSTNAME: "h1"}),
        placed(annotations={keys.GUARD: keys.HOSTNAME}, anti_affinity=(guard_term(),)),
    ],
    ids=["pinned", "returned", "waiting for its node", "by its host's label", "pinned and guarded"],
)
def test_a_placement_of_its_own_that_is_still_there_is_found(pod: Pod) -> None:
    record = own_placement(pod, GROUP)
    assert record is not None
    assert record.token == "t0k3nt0k3n"


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(),
        make_pod(annotations={keys.DECISION: "{"}),
        placed(record={"v": 2}),
        placed(record={"member": "db-tikv-1"}),
        placed("guarded"),
        placed("untouched", node=""),
        placed(node_affinity=None),
        placed(node_affinity=pinned_to("n2")),
        placed(node_affinity=pinned_to("n1", "n2")),
        placed(node_affinity=NodeSelector(())),
        placed(node="", node_affinity=None),
        placed(record={"hostname": "h1"}),
        placed(record={"hostname": "h1"}, node_selector={keys.HOSTNAME: "h2"}),
        placed(annotations={keys.GUARD: keys.HOSTNAME}),
        placed(annotations={keys.GUARD: "zone"}, anti_affinity=(guard_term(),)),
    ],
    ids=[
        "no record",
        "rubbish",
        "another version",
        "another member's",
        "a guard",
        "untouched",
        "pin taken off",
        "pinned elsewhere",
        "pinned to two nodes",
        "pinned to nothing",
        "no node on record",
        "host's label taken off",
        "another host's label",
        "guard taken off",
        "guard by another key",
    ],
)
def test_what_is_not_the_pods_own_placement_or_not_there_any_more_is_none(pod: Pod) -> None:
    assert own_placement(pod, GROUP) is None


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (placed("guarded", node="", annotations={keys.GUARD: keys.HOSTNAME}, anti_affinity=(guard_term(),)), True),
        (placed("guarded", node="", annotations={keys.GUARD: keys.HOSTNAME}), False),
        (placed("guarded", node="", anti_affinity=(guard_term(),)), False),
        (make_pod(annotations={keys.GUARD: keys.HOSTNAME}, anti_affinity=(guard_term(),)), False),
        (placed(annotations={keys.GUARD: keys.HOSTNAME}, anti_affinity=(guard_term(),)), False),
    ],
    ids=["guarded", "term taken off", "term not ours", "the floor's", "pinned too"],
)
def test_a_guard_of_its_own_is_found_only_if_we_put_it_in_and_it_is_still_there(pod: Pod, found: bool) -> None:
    assert has_own_guard(pod, GROUP) is found
