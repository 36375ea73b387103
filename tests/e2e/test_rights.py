"""The webhook works with the chart's rights, and says by name which one it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e import objects
from e2e.api import Api
from e2e.objects import Object
from e2e.place import Create, Place, per_node
from e2e.replicas import Webhook, tally
from e2e.rounds import at_once
from e2e.steps import delete_members
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

THREE = ["n0", "n1", "n2"]
VERB, RESOURCE = "patch", "persistentvolumeclaims"


def is_allowed(api: Api, service: tuple[str, str]) -> bool:
    """Whether the webhook may do it, as the API server sees it now."""
    namespace, name = service
    asked = {"namespace": namespace, "verb": VERB, "resource": RESOURCE}
    spec = {"user": f"system:serviceaccount:{namespace}:{name}", "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def without(rules: list[Object]) -> list[Object]:
    """The rules without that right."""
    return [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != VERB or RESOURCE not in rule["resources"]]}
        for rule in rules
    ]


@contextmanager
def taken_away(api: Api, service: tuple[str, str]) -> Iterator[None]:
    """The webhook has that right no more, for the length of a `with` block."""
    namespace, name = service
    role = f"{name}.{namespace}"
    rules = api.get("ClusterRole", role)["rules"]
    api.patch("ClusterRole", role, {"rules": without(rules)})
    try:
        wait_until(lambda: not is_allowed(api, service), "the right to be gone", 20)
        yield
    finally:
        api.patch("ClusterRole", role, {"rules": rules})
        wait_until(lambda: is_allowed(api, service), "the right to be back", 20)


def test_a_right_that_is_missing_is_named_and_once_it_is_granted_members_are_placed(
    api: Api, create: Create, place: Place, webhook: Webhook
) -> None:
    create(*objects.local_cluster(THREE, volumes=5))

    def start(cluster: str) -> str:
        place.start(cluster=cluster)
        pods = place.wait_for(lambda pods: len(pods) == 3, cluster)
        assert tally(pods) == {"guarded ApiForbidden": 3}
        return cluster

    with taken_away(api, webhook.service):
        clusters = at_once(start)
        events = api.wait_for(
            "Event",
            lambda found: {event["involvedObject"]["name"] for event in found} == {f"{name}-tikv" for name in clusters},
            place.namespace,
            fields="reason=ApiForbidden,involvedObject.kind=StatefulSet",
        )
        assert all(f"{VERB} {RESOURCE}" in event["message"] for event in events)

    def place_anew(cluster: str) -> None:
        # The guarded ones are apart too.
        assert per_node(place.wait_running(3, cluster)) == [1, 1, 1]
        delete_members(place, [f"{cluster}-tikv-{ordinal}" for ordinal in range(3)])
        pods = place.wait_for(lambda pods: tally(pods) == {"pinned": 3}, cluster)
        assert per_node(place.wait_running(len(pods), cluster)) == [1, 1, 1]

    at_once(place_anew)
