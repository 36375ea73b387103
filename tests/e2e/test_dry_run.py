"""Dry runs: the same answer, nothing written."""

from __future__ import annotations

import json

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.objects import DECISION, ENTRY_PREFIX, LOCK, Object
from e2e.place import Create, HandSet, Place, pin_of
from e2e.replicas import outcome_of
from e2e.rounds import at_once

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

THREE = ["n0", "n1", "n2"]


def records(claims: list[Object]) -> list[str]:
    """What of ours is on the claims."""
    keys = [key for claim in claims for key in claim["metadata"].get("annotations", {})]
    return [key for key in keys if key == LOCK or key.startswith(ENTRY_PREFIX)]


def new_members(place: Place, cluster: str) -> HandSet:
    """A set with its claims."""
    members = HandSet(place, cluster)
    members.create_claims(range(3))
    return members


@pytest.mark.parametrize("way", ["post", "apply", "kubectl"])
def test_a_dry_run_is_answered_with_a_node_and_writes_nothing(
    api: Api, control_plane: ControlPlane, create: Create, place: Place, way: str
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))

    def sent(pod: Object) -> Object:
        match way:
            case "post":
                return api.create(pod, dryRun="All")
            case "apply":
                return api.apply(pod, manager="e2e", dryRun="All")
        done = control_plane.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod))
        assert done.returncode == 0, done.stderr
        answer: Object = json.loads(done.stdout)
        return answer

    def try_out(cluster: str) -> None:
        members = new_members(place, cluster)

        admitted = sent(objects.member_pod(members.set, 0))

        assert outcome_of(admitted) == "pinned"
        assert pin_of(admitted) in THREE
        assert not records(place.claims(cluster))
        assert not members.pods()

    at_once(try_out)


def test_what_a_dry_run_said_is_created_after_all_and_gets_a_token(api: Api, create: Create, place: Place) -> None:
    create(*objects.local_cluster(THREE, volumes=5))

    def try_out(cluster: str) -> None:
        members = new_members(place, cluster)
        told = api.create(objects.member_pod(members.set, 0), dryRun="All")
        pod = objects.member_pod(members.set, 0)
        pod["metadata"]["annotations"] = told["metadata"]["annotations"]
        pod["spec"]["affinity"] = told["spec"]["affinity"]

        created = api.create(pod)

        assert pin_of(created) in THREE
        assert json.loads(created["metadata"]["annotations"][DECISION])["token"]
        assert records(place.claims(cluster))

    at_once(try_out)
