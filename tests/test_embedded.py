"""Admission on the embedded cluster: a sequence of creates behaves as on a cluster."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest
from dumps import (
    LABELS,
    NAMESPACE,
    Manifest,
    a_cluster_with,
    a_plain_pod,
    a_set,
    body_of,
    pods_of_set,
)

from webhook.cluster.door import CLAIMS, PODS
from webhook.cluster.memory import MemoryCluster
from webhook.core import keys
from webhook.core.review import allow, deny
from webhook.deadline import Deadline
from webhook.embedded.admission import EmbeddedAdmission
from webhook.embedded.answers import AnswerError, admitted
from webhook.embedded.reviews import review_of
from webhook.embedded.sets import SetError, pods_of
from webhook.errors import ReviewError
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wiring import build_reviewer

SETTINGS = Settings()


class Fixed:
    """A reviewer with one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    def review(self, body: bytes, deadline: Deadline) -> dict[str, Any]:
        return self.answer


def ask(cluster: MemoryCluster, body: bytes) -> dict[str, Any]:
    reviewer = build_reviewer(SETTINGS, cluster, Metrics())
    return reviewer.review(body, Deadline.after(9))


def names(cluster: MemoryCluster, resource: Any = PODS, namespace: str = NAMESPACE) -> list[str]:
    return [found["metadata"]["name"] for found in cluster.list(resource, namespace=namespace, timeout=1).items]


def test_three_reviews_in_a_row_give_three_nodes():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    reviewer = build_reviewer(SETTINGS, cluster, Metrics())

    answers = [admitted(pod, reviewer.review(body_of(pod), Deadline.after(9))).node for pod in pods_of_set(a_set())]

    assert sorted(answers) == ["n1", "n2", "n3"]


def test_an_admitted_pod_is_stored_with_its_patch_and_without_a_node():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    pod = pods_of_set(a_set())[0]

    answer = admitted(pod, ask(cluster, body_of(pod)))

    stored = cluster.get(PODS, "db-tikv-0", namespace=NAMESPACE, timeout=1)
    assert stored["metadata"]["annotations"] == answer.pod["metadata"]["annotations"]
    assert keys.DECISION in stored["metadata"]["annotations"]
    assert stored["spec"] == answer.pod["spec"]
    assert "nodeName" not in stored["spec"]
    assert stored["metadata"]["uid"]


def test_another_process_over_the_same_objects_counts_the_pinned_pod():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    pods = pods_of_set(a_set())

    answers = [admitted(pod, ask(cluster, body_of(pod))).node for pod in pods]

    assert len(set(answers)) == 3


def test_the_missing_claims_of_a_member_are_made_as_its_controller_would():
    cluster = MemoryCluster(a_cluster_with(a_set(claims=("tikv", "wal"))))

    ask(cluster, body_of(pods_of_set(a_set(claims=("tikv", "wal")))[0]))

    assert names(cluster, CLAIMS) == ["tikv-db-tikv-0", "wal-db-tikv-0"]
    claim = cluster.get(CLAIMS, "wal-db-tikv-0", namespace=NAMESPACE, timeout=1)
    assert claim["metadata"]["labels"] == LABELS
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}


def test_a_generic_sets_claims_get_the_labels_of_its_selector():
    labels = {"app": "raft", keys.CLASS_LABEL: "quorum"}
    raft = a_set("raft", labels=labels, selector={"matchLabels": {"app": "raft"}}, claims=("data",))
    cluster = MemoryCluster(a_cluster_with(raft))
    pod = pods_of_set(raft)[0]

    answer = admitted(pod, ask(cluster, body_of(pod)))

    assert answer.node in ("n1", "n2", "n3")
    claim = cluster.get(CLAIMS, "data-raft-0", namespace=NAMESPACE, timeout=1)
    assert claim["metadata"]["labels"] == {"app": "raft"}


def test_a_pod_that_is_left_alone_becomes_visible_too_and_gets_no_claims():
    cluster = MemoryCluster(a_cluster_with())
    pod = a_plain_pod()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]

    answer = ask(cluster, body_of(pod))

    assert answer == allow("u-1")
    assert names(cluster) == ["web-0"]
    assert names(cluster, CLAIMS) == []


def test_a_dry_run_changes_nothing():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    before = cluster.list(PODS, timeout=1).resource_version

    answer = ask(cluster, body_of(pods_of_set(a_set())[0], dry_run=True))

    assert answer["response"]["allowed"] is True
    assert cluster.list(PODS, timeout=1).resource_version == before


@pytest.mark.parametrize("change", [{"operation": "DELETE"}, {"subResource": "status"}], ids=["delete", "status"])
def test_what_is_no_create_of_a_pod_changes_nothing(change: Manifest):
    cluster = MemoryCluster(a_cluster_with())
    review = review_of(a_plain_pod(), namespace=NAMESPACE, uid="u-1")
    review["request"] |= change

    assert ask(cluster, json.dumps(review).encode()) == allow("u-1")
    assert names(cluster) == []


def test_a_refused_pod_is_not_there_but_its_claims_are():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    refusal = deny("u-1", code=403, reason="Forbidden", message="no")
    embedded = EmbeddedAdmission(Fixed(refusal), cluster)

    assert embedded.review(body_of(pods_of_set(a_set())[0]), Deadline.after(9)) == refusal
    assert names(cluster) == []
    assert names(cluster, CLAIMS) == ["tikv-db-tikv-0"]


def test_the_namespace_of_the_request_is_where_the_pod_goes():
    cluster = MemoryCluster(a_cluster_with())

    ask(cluster, body_of(a_plain_pod(namespace="elsewhere"), namespace="here"))

    assert names(cluster, namespace="here") == ["web-0"]


def test_a_hand_made_review_may_leave_the_namespace_out():
    cluster = MemoryCluster(a_cluster_with())

    ask(cluster, body_of(a_plain_pod(), namespace=""))

    assert names(cluster) == ["web-0"]


def test_a_name_that_is_made_after_admission_is_made():
    cluster = MemoryCluster(a_cluster_with())

    ask(cluster, body_of({"metadata": {"generateName": "job-"}, "spec": {}}))

    assert names(cluster)[0].startswith("job-")


def test_a_pod_that_no_api_server_would_store_is_answered_and_logged(caplog: pytest.LogCaptureFixture):
    cluster = MemoryCluster(a_cluster_with())

    with caplog.at_level(logging.WARNING):
        answer = ask(cluster, body_of({"metadata": None}))

    assert answer["response"]["allowed"] is True
    assert "cannot be created" in caplog.text
    assert names(cluster) == []


def test_a_body_that_is_no_review_is_an_error():
    with pytest.raises(ReviewError):
        ask(MemoryCluster(a_cluster_with()), b"{}")


def test_a_pod_created_again_while_the_older_one_is_there_stays_the_older_one():
    cluster = MemoryCluster(a_cluster_with(a_set()))
    pod = pods_of_set(a_set())[0]
    ask(cluster, body_of(pod))
    first = cluster.get(PODS, "db-tikv-0", namespace=NAMESPACE, timeout=1)

    answer = ask(cluster, body_of(pod))

    assert answer["response"]["allowed"] is True
    assert cluster.get(PODS, "db-tikv-0", namespace=NAMESPACE, timeout=1) is first


# --- answers


def patch_of(text: bytes) -> dict[str, Any]:
    return {"response": {"uid": "u", "allowed": True, "patch": base64.b64encode(text).decode()}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({}, "no response", id="empty"),
        pytest.param({"response": {"allowed": "yes"}}, "no response", id="allowed is no boolean"),
        pytest.param({"response": {"allowed": True, "patch": "%"}}, "cannot be read", id="no base64"),
        pytest.param(patch_of(b"["), "cannot be read", id="no JSON"),
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: dict[str, Any], message: str):
    with pytest.raises(AnswerError, match=message):
        admitted({}, answer)


def test_a_refusal_has_its_message_and_leaves_the_pod_as_it_is():
    answer = admitted(a_plain_pod(), deny("u", code=403, reason="Forbidden", message="no place", audit={"a": "b"}))

    assert (answer.allowed, answer.message, answer.pod) == (False, "no place", a_plain_pod())
    assert answer.audit == {"a": "b"}


@pytest.mark.parametrize("annotation", ["{", "[]", None], ids=["no JSON", "no object", "none"])
def test_a_pod_without_a_readable_record_has_an_empty_one(annotation: str | None):
    annotations = {} if annotation is None else {keys.DECISION: annotation}

    assert admitted(a_plain_pod(annotations=annotations), allow("u")).record == {}


def test_a_pin_by_the_hostname_label_counts_as_the_node():
    pod = a_plain_pod()
    pod["spec"]["nodeSelector"] = {keys.HOSTNAME: "n7"}

    assert admitted(pod, allow("u")).node == "n7"


# --- the pods of StatefulSets


def test_a_sets_pods_are_as_their_controller_makes_them():
    (pod,) = pods_of(a_set(replicas=1, serviceName="db"))

    assert pod["metadata"]["name"] == "db-tikv-0"
    assert pod["metadata"]["generateName"] == "db-tikv-"
    assert pod["metadata"]["namespace"] == NAMESPACE
    assert pod["metadata"]["labels"] == {
        **LABELS,
        "statefulset.kubernetes.io/pod-name": "db-tikv-0",
        "apps.kubernetes.io/pod-index": "0",
    }
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "db-tikv",
            "uid": "uid-db-tikv",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert pod["spec"]["hostname"] == "db-tikv-0"
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert pod["spec"]["volumes"] == [
        {"name": "tikv", "persistentVolumeClaim": {"claimName": "tikv-db-tikv-0"}},
    ]


def test_a_claim_template_goes_before_a_volume_of_its_name():
    volumes = [{"name": "tikv", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    whole = a_set(replicas=1)
    whole["spec"]["template"]["spec"]["volumes"] = volumes

    (pod,) = pods_of(whole)

    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["tikv", "tmp"]
    assert "persistentVolumeClaim" in pod["spec"]["volumes"][0]


@pytest.mark.parametrize(
    ("changes", "ordinals"),
    [
        pytest.param({"replicas": 3}, [0, 1, 2], id="three"),
        pytest.param({"replicas": None}, [0], id="null is one"),
        pytest.param({"replicas": 0}, [], id="none"),
        pytest.param({"replicas": 2, "ordinals": {"start": 5}}, [5, 6], id="start"),
    ],
)
def test_a_set_wants_the_pods_of_its_ordinals(changes: Manifest, ordinals: list[int]):
    assert [pod["metadata"]["name"] for pod in pods_of(a_set(**changes))] == [f"db-tikv-{each}" for each in ordinals]


@pytest.mark.parametrize(
    ("api_version", "ordinals"),
    [("apps.pingcap.com/v1", ["0", "2"]), ("apps/v1", ["0", "1"])],
    ids=["advanced", "Kubernetes' own"],
)
def test_only_an_advanced_set_leaves_its_delete_slots_out(api_version: str, ordinals: list[str]):
    whole = a_set(replicas=2)
    whole["apiVersion"] = api_version
    whole["metadata"]["annotations"] = {"delete-slots": "[1]"}

    assert [pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] for pod in pods_of(whole)] == ordinals


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"template": None}, "spec.template.spec", id="no template"),
        pytest.param({"template": {"spec": "x"}}, "spec.template.spec", id="template is text"),
        pytest.param({"replicas": "three"}, "spec.replicas.*'three'", id="replicas in words"),
        pytest.param({"replicas": -1}, "spec.replicas", id="fewer than none"),
        pytest.param({"replicas": 10**9}, "spec.replicas", id="a billion"),
    ],
)
def test_a_set_whose_pods_cannot_be_made_names_the_field(changes: Manifest, field: str):
    with pytest.raises(SetError, match=field):
        list(pods_of(a_set(**changes)))
