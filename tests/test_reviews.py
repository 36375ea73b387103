"""AdmissionReviews as a real API server sends them (tests/reviews), replayed through the application.

The cluster has six nodes in three zones, a v1 cluster and a v2 group, both called db.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cluster_objects import REQUIRED, SPACE, ZONE, a_claim, a_cluster, a_node, a_set, an_object, claims, labels_v2
from stand import START, Answered, Stand, answered
from werkzeug.test import Client

from webhook.app import create_app
from webhook.cluster.door import CLAIMS, NODES, PODS, TIKV_GROUPS, Manifest
from webhook.core import keys
from webhook.settings import Settings

FOLDER = Path(__file__).parent / "reviews"
ZONES = {"n1": "za", "n2": "za", "n3": "zb", "n4": "zb", "n5": "zc", "n6": "zc"}
WITH_SSD = ("n1", "n3", "n5")
HOST = keys.HOSTNAME
# The token in the reviews of a pod that comes with our decision.
REINVOKED = "reinvoked0000000000a"


def the_cluster() -> Stand:
    """Claims and owners of all members; no pod of them has been admitted yet."""
    suffixes = ("a1b2c3", "d4e5f6", "g7h8i9")
    spec = {"cluster": {"name": "db"}, "replicas": 3}
    stand = Stand(
        *(a_node(name, zone=zone) for name, zone in ZONES.items()),
        *(a_set(component) for component in ("pd", "tikv")),
        a_cluster(),
        *claims(3, "pd"),
        *claims(3, "tikv"),
        an_object(TIKV_GROUPS, "kv", spec=spec),
        *(a_claim(f"data-kv-tikv-{suffix}", labels_v2()) for suffix in suffixes),
    )
    for name in WITH_SSD:
        stand.patch(NODES, name, {"metadata": {"labels": {"disk": "ssd"}}})
    return stand


def promise(stand: Stand) -> None:
    """Put the promise of n5 to db-tikv-2 into the ledger."""
    uid = stand.cluster.get(CLAIMS, "tikv-db-tikv-2", namespace=SPACE, timeout=1)["metadata"]["uid"]
    entry = {
        "token": REINVOKED,
        "member": "db-tikv-2",
        "claim": uid,
        "node": "n5",
        "domain": "n5",
        "key": HOST,
        "time": START,
    }
    ledger = {keys.LOCK: json.dumps({"v": 1, "entries": [entry]})}
    stand.patch(CLAIMS, "tikv-db-tikv-0", {"metadata": {"annotations": ledger}})


class Replay:
    """A review out of its file, sent to the application, with what came of it."""

    def __init__(self, name: str, *, prepare: Callable[[Stand], object] = promise) -> None:
        self.body = (FOLDER / f"{name}.json").read_bytes()
        self.request: Manifest = json.loads(self.body)["request"]
        self.stand = the_cluster()
        prepare(self.stand)
        self.stand.door.calls.clear()
        self.client = Client(create_app(Settings(), self.stand.admission, clock=self.stand.clock.monotonic))
        self.answer = self.send(self.body)

    def send(self, body: bytes) -> Answered:
        http = self.client.post("/mutate?timeout=10s", data=body, content_type="application/json")
        assert (http.status_code, http.mimetype) == (200, "application/json")
        review = json.loads(http.data)
        assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert review["response"]["uid"] == self.request["uid"]
        return answered(json.loads(body)["request"]["object"], review)

    def again(self) -> Answered:
        """The same review with the answer's patch in it, as after another webhook's change."""
        return self.send(
            json.dumps({**json.loads(self.body), "request": {**self.request, "object": self.answer.pod}}).encode()
        )

    @property
    def pod(self) -> Manifest:
        found: Manifest = self.request["object"]
        return found


def node_terms(pod: Manifest) -> list[Any]:
    terms: list[Any] = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def elsewhere(pod: Manifest) -> Manifest:
    """The pod without what we may change: its required (anti-)affinity and our annotations."""
    rest: Manifest = json.loads(json.dumps(pod))
    affinity = rest["spec"].pop("affinity", None) or {}
    for kind in ("nodeAffinity", "podAntiAffinity"):
        (affinity.get(kind) or {}).pop(REQUIRED, None)
    rest["affinity"] = {kind: value for kind, value in affinity.items() if value}
    annotations = rest["metadata"].pop("annotations", None) or {}
    rest["annotations"] = {key: value for key, value in annotations.items() if not key.startswith(keys.PREFIX)}
    return rest


PLACED = ["v1-tikv", "v1-pd", "v2-tikv-apply", "v2-tikv-evenly-spread", "dry-run", "floor", "user-affinity", "big-pod"]
UNTOUCHED = ["generate-name", "mirror", "daemonset-pod", "deployment-pod", "discovery-pod"]
NOT_A_CREATE = ["update", "delete", "binding", "eviction"]
OTHERS = [
    "v2-tikv-overlay-affinity",
    "v2-tikv-overlay-leaves-no-way",
    "reinvocation",
    "reinvocation-pin-taken-off",
]


def test_every_review_in_the_folder_is_replayed() -> None:
    assert sorted(PLACED + UNTOUCHED + NOT_A_CREATE + OTHERS) == sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", PLACED)
def test_a_member_is_pinned_and_nothing_else_of_it_is_changed(name: str) -> None:
    replay = Replay(name)
    answer = replay.answer
    assert (answer.allowed, answer.outcome, answer.warnings) == (True, "pinned", [])
    assert answer.node in ZONES
    assert answer.annotations[keys.ASSIGNED_NODE] == answer.node
    assert keys.GUARD not in answer.annotations
    assert elsewhere(answer.pod) == elsewhere(replay.pod)


@pytest.mark.parametrize("name", PLACED)
def test_a_member_that_comes_again_with_our_patch_is_left_as_it_stands(name: str) -> None:
    again = Replay(name).again()
    assert (again.outcome, again.operations) == ("unchanged", [])


@pytest.mark.parametrize("name", UNTOUCHED)
def test_a_pod_that_is_no_member_or_has_no_name_is_allowed_as_it_is_and_nobody_is_asked(name: str) -> None:
    replay = Replay(name)
    assert replay.answer.response == {"uid": replay.request["uid"], "allowed": True}
    assert replay.stand.door.calls == []


@pytest.mark.parametrize("name", NOT_A_CREATE)
def test_what_is_not_the_create_of_a_pod_is_allowed_as_it_is_and_nobody_is_asked(name: str) -> None:
    replay = Replay(name)
    assert replay.answer.response == {"uid": replay.request["uid"], "allowed": True}
    assert (replay.stand.door.calls, replay.stand.figures.reviews) == ([], [])


def test_the_stateful_sets_pods_are_kept_apart_one_review_after_the_other() -> None:
    replay = Replay("v1-tikv")
    found = [replay.answer.node]
    for ordinal in (1, 2):
        text = replay.body.decode().replace("db-tikv-0", f"db-tikv-{ordinal}")
        found.append(replay.send(text.encode()).node)
    assert len(set(found)) == 3


def test_the_zone_that_tidb_operator_v2_chose_is_kept_and_the_host_in_it_is_ours() -> None:
    replay = Replay("v2-tikv-evenly-spread")
    assert replay.answer.pod["spec"]["nodeSelector"] == {ZONE: "zb"} == replay.pod["spec"]["nodeSelector"]
    assert ZONES[replay.answer.node] == "zb"


def test_a_v2_pod_with_an_affinity_of_its_overlay_keeps_it_and_is_pinned_by_a_field_that_is_free() -> None:
    replay = Replay("v2-tikv-overlay-affinity")
    answer = replay.answer
    assert answer.outcome == "pinned"
    assert answer.pod["spec"]["affinity"] == replay.pod["spec"]["affinity"]
    assert answer.pod["spec"]["nodeSelector"] == {HOST: answer.audit["node"]}
    assert answer.audit["node"] in WITH_SSD
    assert replay.again().operations == []


def test_a_v2_pod_whose_overlay_leaves_no_way_is_asked_to_come_again() -> None:
    replay = Replay("v2-tikv-overlay-leaves-no-way")
    status = replay.answer.response["status"]
    assert (replay.answer.allowed, status["code"], status["details"]) == (False, 429, {"retryAfterSeconds": 1})
    assert "patch" not in replay.answer.response
    assert [entry["token"] for entry in replay.stand.ledger()] == [REINVOKED]


def test_a_dry_run_writes_nothing_and_its_record_has_no_token() -> None:
    replay = Replay("dry-run")
    assert replay.stand.door.writes == []
    assert "token" not in replay.answer.record
    assert replay.stand.notices == []


def test_a_reinvocation_with_our_patch_in_it_and_a_sidecar_more_is_left_as_it_stands() -> None:
    replay = Replay("reinvocation")
    assert (replay.answer.outcome, replay.answer.operations) == ("unchanged", [])
    assert replay.stand.door.writes == []


def test_the_same_is_a_stale_pin_where_nobody_was_promised_anything_and_replaced_in_place() -> None:
    replay = Replay("reinvocation", prepare=lambda stand: stand.patch(NODES, "n5", {"spec": {"unschedulable": True}}))
    assert replay.answer.outcome == "pinned"
    assert replay.answer.node not in ("", "n5")
    assert [len(term["matchFields"]) for term in node_terms(replay.answer.pod)] == [1]
    assert replay.answer.record["token"] != REINVOKED


def test_a_reinvocation_whose_pin_was_taken_off_gets_the_same_node_again() -> None:
    replay = Replay("reinvocation-pin-taken-off")
    assert (replay.answer.outcome, replay.answer.node) == ("pinned", "n5")


def test_the_floors_guard_becomes_a_pin() -> None:
    pod = Replay("floor").answer.pod
    assert not pod["spec"]["affinity"].get("podAntiAffinity")
    assert all("matchExpressions" not in term for term in node_terms(pod))


def test_a_users_own_affinity_is_narrowed_in_every_term_and_kept() -> None:
    replay = Replay("user-affinity")
    before, after = node_terms(replay.pod), node_terms(replay.answer.pod)
    pin = {"key": "metadata.name", "operator": "In", "values": [replay.answer.node]}
    assert after == [{**term, "matchFields": [pin]} for term in before]
    assert replay.answer.node in ("n1", "n3", "n4")


def test_a_big_pod_is_answered_by_a_small_patch() -> None:
    replay = Replay("big-pod")
    assert len(replay.body) > 100_000
    assert len(json.dumps(replay.answer.operations)) < 3_000


def test_an_admitted_pod_counts_for_the_next_review() -> None:
    replay = Replay("v1-tikv")
    replay.stand.cluster.admit(replay.answer.pod, namespace=SPACE)
    following = replay.send(replay.body.replace(b"db-tikv-0", b"db-tikv-1"))
    assert following.record["counts"] == {replay.answer.node: 1, "n5": 1}
    assert replay.stand.cluster.get(PODS, "db-tikv-0", namespace=SPACE, timeout=1)
