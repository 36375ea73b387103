from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pytest
from e2e.api import Api
from e2e.objects import Object
from e2e.place import Place

from bench.arms import SPREAD
from bench.calls import MEMBER, ORDINARY, PATCH, Block, Call, Latencies, in_time

CLUSTERS = 4


class Recording:
    """As much of an `Api` as a block uses."""

    def __init__(self) -> None:
        self.created: list[Object] = []
        self.patched: list[tuple[str, Any]] = []

    def create(self, manifest: Object) -> Object:
        self.created.append(manifest)
        metadata = {**manifest["metadata"], "uid": "u", "resourceVersion": str(len(self.created))}
        return {**manifest, "metadata": metadata}

    def patch(self, kind: str, name: str, patch: Any, namespace: str) -> None:
        self.patched.append((name, patch))


@pytest.fixture
def api() -> Recording:
    return Recording()


@pytest.fixture
def block(api: Recording) -> Block:
    block = Block(Place(cast(Api, api), "ns", lambda *manifests: list(manifests)), SPREAD, CLUSTERS)
    api.created.clear()
    return block


def made(api: Recording, calls: list[tuple[str, Call]]) -> list[str]:
    """Make the calls; the kinds of them."""
    for _, call in calls:
        call()
    return [kind for kind, _ in calls]


def test_one_call_at_a_time_every_member_is_followed_by_an_ordinary_pod_and_a_write(api: Recording, block: Block):
    assert made(api, block.alone()) == [MEMBER, ORDINARY, PATCH] * CLUSTERS * 3


def test_paced_every_other_call_creates_a_member(api: Recording, block: Block):
    assert made(api, block.paced()) == [MEMBER, ORDINARY, MEMBER, PATCH] * (CLUSTERS * 3 // 2)


def test_two_members_of_one_cluster_never_follow_each_other_and_all_are_of_the_arm(api: Recording, block: Block):
    made(api, block.alone())

    members = [pod for pod in api.created if "ownerReferences" in pod["metadata"]]
    clusters = [pod["metadata"]["labels"]["app.kubernetes.io/instance"] for pod in members]
    assert all(one != other for one, other in pairwise(clusters))
    assert all(pod["spec"]["topologySpreadConstraints"] for pod in members)


def test_each_write_is_on_the_condition_that_the_claim_is_as_it_was_made(api: Recording, block: Block):
    made(api, block.paced())

    assert len({name for name, _ in api.patched}) == len(api.patched)
    assert all(patch["metadata"]["resourceVersion"] for _, patch in api.patched)


def test_every_call_is_timed_in_its_kind():
    latencies = Latencies()

    in_time([(MEMBER, dict), (PATCH, dict), (MEMBER, dict)], 1000, latencies)

    assert {kind: len(times) for kind, times in latencies.by_kind.items()} == {MEMBER: 2, ORDINARY: 0, PATCH: 1}


def test_a_call_that_fails_is_no_time_but_the_end():
    latencies = Latencies()

    with pytest.raises(ZeroDivisionError):
        in_time([(MEMBER, lambda: 1 / 0)], 1000, latencies)
    assert latencies.by_kind[MEMBER] == []
