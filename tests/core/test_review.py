"""AdmissionReviews: what is read out of one, what is refused with which words, what the answers look like."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core.review import Review, allow, deny, parse_review
from webhook.errors import ReviewError

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "t1", "name": "db-tikv-0"}, "spec": {"x": 1}}


def review(**changes: Any) -> dict[str, Any]:
    """The AdmissionReview of the creation of a StatefulSet's pod; None takes a field of the request away."""
    request = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "db-tikv-0",
        "namespace": "t1",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:statefulset-controller"},
        "object": POD,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    request = {key: value for key, value in (request | changes).items() if value is not None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def parse(value: object) -> Review:
    """Parse a body given as a value."""
    return parse_review(json.dumps(value).encode())


def test_a_review_is_read_as_the_api_server_writes_it() -> None:
    assert parse(review()) == Review(
        uid=UID,
        operation="CREATE",
        namespace="t1",
        name="db-tikv-0",
        dry_run=False,
        resource="pods",
        sub_resource="",
        pod_manifest=POD,
        kind="Pod",
    )


def test_a_pod_that_the_server_will_name_has_no_name() -> None:
    manifest = {"metadata": {"generateName": "web-"}}

    assert parse(review(name=None, object=manifest)).name == ""


def test_the_name_may_stand_in_the_object_only() -> None:
    assert parse(review(name=None)).name == "db-tikv-0"


def test_the_namespace_is_the_requests_and_not_the_objects() -> None:
    assert parse(review(namespace="t9")).namespace == "t9"


def test_a_review_made_by_hand_needs_no_more_than_uid_operation_and_pod() -> None:
    request = {"uid": "1", "operation": "CREATE", "object": POD}
    made = parse({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})

    assert (made.resource, made.kind, made.name, made.namespace) == ("pods", "Pod", "db-tikv-0", "t1")


@pytest.mark.parametrize(("raw", "expected"), [(True, True), (False, False), (None, False), ("true", False)], ids=repr)
def test_only_true_is_a_dry_run(raw: object, expected: bool) -> None:
    assert parse(review(dryRun=raw)).dry_run is expected


@pytest.mark.parametrize(
    ("changes", "manifest"),
    [
        pytest.param({"operation": "DELETE", "object": None}, {}, id="delete-has-no-object"),
        pytest.param({"operation": "UPDATE"}, POD, id="update"),
        pytest.param(
            {"operation": "CONNECT", "subResource": "exec", "object": {"kind": "PodExecOptions"}},
            {"kind": "PodExecOptions"},
            id="connect",
        ),
        pytest.param(
            {
                "subResource": "binding",
                "kind": {"group": "", "version": "v1", "kind": "Binding"},
                "object": {"kind": "Binding"},
            },
            {"kind": "Binding"},
            id="the-creation-of-a-subresource",
        ),
        pytest.param({"operation": "UPDATE", "subResource": "status", "object": []}, {}, id="an-odd-object"),
    ],
)
def test_other_operations_and_subresources_are_read_too(changes: dict[str, Any], manifest: dict[str, Any]) -> None:
    read = parse(review(**changes))

    assert read.operation == changes.get("operation", "CREATE")
    assert read.sub_resource == changes.get("subResource", "")
    assert read.pod_manifest == manifest


V1BETA1 = review() | {"apiVersion": "admission.k8s.io/v1beta1"}


@pytest.mark.parametrize(
    ("body", "uid", "message"),
    [
        pytest.param(b"", None, "the body is not JSON", id="empty"),
        pytest.param(b"{", None, "the body is not JSON", id="cut-short"),
        pytest.param(b"\xff\xfe\xfa", None, "the body is not JSON", id="no-unicode"),
        pytest.param(b"[" * 1_000_000, None, "the body is not JSON", id="a-million-brackets"),
        pytest.param(b"9" * 5000, None, "the body is not JSON", id="a-number-of-5000-digits"),
        pytest.param(b'{"a": NaN}', None, "the body is not JSON: NaN is not JSON", id="nan"),
        pytest.param(b"[]", None, "the body is not a JSON object", id="a-list"),
        pytest.param(b"null", None, "the body is not a JSON object", id="null"),
        pytest.param(
            {},
            None,
            "not an AdmissionReview of admission.k8s.io/v1: its apiVersion is missing, kind is missing",
            id="no-kind",
        ),
        pytest.param(
            POD,
            None,
            "not an AdmissionReview of admission.k8s.io/v1: its apiVersion is 'v1', kind is 'Pod'",
            id="a-pod",
        ),
        pytest.param(
            V1BETA1, UID, "its apiVersion is 'admission.k8s.io/v1beta1', kind is 'AdmissionReview'", id="v1beta1"
        ),
        pytest.param(review() | {"kind": "x" * 99}, UID, f"'{'x' * 56}...", id="a-long-kind"),
        pytest.param(review() | {"request": None}, None, "the review has no request", id="no-request"),
        pytest.param(review() | {"request": []}, None, "the review has no request", id="a-request-that-is-a-list"),
        pytest.param(review(uid=None), None, "request.uid is missing", id="no-uid"),
        pytest.param(review(uid=7), None, "request.uid is missing or no string", id="a-number-as-uid"),
        pytest.param(review(uid=""), None, "request.uid is missing", id="an-empty-uid"),
        pytest.param(
            review(operation=None), UID, "request.operation is missing; one of CREATE, UPDATE", id="no-operation"
        ),
        pytest.param(review(operation="create"), UID, "request.operation is 'create'", id="an-odd-operation"),
        pytest.param(
            review(namespace=None, object={"kind": "Pod"}), UID, "request.namespace is missing", id="no-namespace"
        ),
        pytest.param(review(object=None), UID, "request.object is not an object", id="no-object"),
        pytest.param(review(object=[POD]), UID, "request.object is not an object", id="an-object-that-is-a-list"),
        pytest.param(
            review(resource={"group": "apps", "resource": "deployments"}),
            UID,
            "the review is about deployments.apps, not about pods",
            id="deployments",
        ),
        pytest.param(review(resource={"resource": "nodes"}), UID, "about nodes, not about pods", id="nodes"),
        pytest.param(review(kind={"kind": "Node"}), UID, "the object is a Node, not a Pod", id="a-wrong-kind"),
        pytest.param(
            review(kind=None, object={"kind": "Node"}), UID, "the object is a Node, not a Pod", id="a-wrong-object"
        ),
    ],
)
def test_anything_else_is_refused_in_words_and_with_the_uid_where_there_is_one(
    body: object, uid: str | None, message: str
) -> None:
    with pytest.raises(ReviewError) as caught:
        parse_review(body if isinstance(body, bytes) else json.dumps(body).encode())

    assert message in str(caught.value)
    assert len(str(caught.value)) < 250
    assert (caught.value.uid, caught.value.status) == (uid, 400)


def test_an_answer_that_changes_nothing_has_no_patch() -> None:
    expected = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": UID, "allowed": True},
    }

    assert allow(UID) == expected
    assert allow(UID, patch=[]) == expected


def test_an_answer_carries_its_patch_in_base64_with_warnings_and_audit_annotations() -> None:
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"ü": "1"}}]

    response = allow(UID, patch=patch, warnings=["mind the gap"], audit={"node": "n1"})["response"]

    assert json.loads(base64.b64decode(response.pop("patch"))) == patch
    assert response == {
        "uid": UID,
        "allowed": True,
        "patchType": "JSONPatch",
        "warnings": ["mind the gap"],
        "auditAnnotations": {"node": "n1"},
    }


def test_a_refusal_says_code_reason_and_message() -> None:
    answer = deny(UID, code=403, reason="Forbidden", message="no safe node", warnings=["w"], audit={"cause": "c"})

    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": UID,
            "allowed": False,
            "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no safe node"},
            "warnings": ["w"],
            "auditAnnotations": {"cause": "c"},
        },
    }


def test_a_refusal_for_now_says_when_to_come_back() -> None:
    status = deny(UID, code=429, reason="TooManyRequests", message="later", retry_after=1)["response"]["status"]

    assert status["details"] == {"retryAfterSeconds": 1}


@pytest.mark.parametrize(
    ("warnings", "expected"),
    [
        pytest.param(["x" * 500], ["x" * 500], id="as-long-as-it-was-made"),
        pytest.param(["two\nlines\t here"], ["two lines here"], id="one-line"),
        pytest.param(["Warning: twice"], ["twice"], id="no-prefix"),
        pytest.param(["a", "b", "a"], ["a", "b"], id="each-once"),
        pytest.param(["", "  "], None, id="none-that-is-empty"),
    ],
)
def test_warnings_are_single_lines_and_each_is_said_once(warnings: list[str], expected: list[str] | None) -> None:
    assert allow(UID, warnings=warnings)["response"].get("warnings") == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def read_or_refused(value: object) -> Review | ReviewError:
    """What comes of a body; any other exception is a failure of the test."""
    try:
        return parse(value)
    except ReviewError as error:
        return error


@settings(deadline=None, max_examples=200)
@given(field=st.sampled_from([*review()["request"], "subResource"]), value=JSON)
def test_a_review_with_one_odd_field_is_read_or_refused_and_nothing_else(field: str, value: object) -> None:
    outcome = read_or_refused(review(**{field: value}))

    if isinstance(outcome, Review):
        assert isinstance(outcome.pod_manifest, dict)
    elif "is not JSON" not in str(outcome):
        assert outcome.uid == (None if field == "uid" else UID)


@settings(deadline=None)
@given(body=st.binary(max_size=200))
def test_no_bytes_at_all_make_anything_but_a_review_error(body: bytes) -> None:
    with pytest.raises(ReviewError):
        parse_review(body)
