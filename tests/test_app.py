"""The HTTP contract of the webhook address: what comes in, what goes out, and that it is JSON every time."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from webhook.app import BODY_LIMIT, RECEIVED_AT, create_app, timeout_of
from webhook.core.review import allow, parse_review
from webhook.deadline import Deadline
from webhook.errors import ReviewError, UnknownOutcome
from webhook.settings import Settings

JSON = "application/json"
NOW = 1000.0


class Admission:
    """Answers as scripted: `answer` makes the answer out of the body, or raises; the deadlines are kept."""

    def __init__(self, answer: Callable[[bytes], dict[str, Any]]) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self.deadlines: list[Deadline] = []

    def review(self, body: bytes, deadline: Deadline) -> dict[str, Any]:
        self.bodies.append(body)
        self.deadlines.append(deadline)
        return self.answer(body)


def admit(body: bytes) -> dict[str, Any]:
    """What the real one does with a pod that is no member."""
    return allow(parse_review(body).uid)


def raising(error: Exception) -> Callable[[bytes], dict[str, Any]]:
    def answer(_body: bytes) -> dict[str, Any]:
        raise error

    return answer


class Webhook:
    """The app with a scripted admission, a clock that stands still, and the statuses that it reported."""

    def __init__(self, answer: Callable[[bytes], dict[str, Any]] = admit, **settings: Any) -> None:
        self.admission = Admission(answer)
        self.statuses: list[int] = []
        self.client = Client(
            create_app(Settings(**settings), self.admission, responded=self.statuses.append, clock=lambda: NOW)
        )

    def post(self, body: bytes, path: str = "/mutate", content_type: str | None = JSON, **more: Any) -> TestResponse:
        return self.client.post(path, data=body, content_type=content_type, **more)


def review(**changes: Any) -> bytes:
    """A review of a pod's CREATE, with `changes` to the request; a value of None takes the key away."""
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web-0",
        "namespace": "t1",
        "operation": "CREATE",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}, "spec": {}},
        **changes,
    }
    request = {key: value for key, value in request.items() if value is not None}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def error_of(answer: TestResponse) -> str:
    """The text of an answer that is no review; that it is JSON and nothing else is part of every test."""
    assert answer.headers["Content-Type"] == JSON
    content = json.loads(answer.data)
    assert list(content) == ["error"]
    return str(content["error"])


def test_a_review_is_answered_with_a_review():
    answer = Webhook().post(review())

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, JSON)
    assert json.loads(answer.data) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


def test_the_body_reaches_the_admission_byte_for_byte():
    webhook = Webhook()
    body = review(name="web-ü") + b" \n"

    webhook.post(body)

    assert webhook.admission.bodies == [body]


@pytest.mark.parametrize(
    "content_type",
    [
        JSON,
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
        "Application/JSON; charset=iso-8859-1; other=1",
        "application/json ; charset=x",
    ],
)
def test_json_of_any_charset_is_taken(content_type: str):
    assert Webhook().post(review(), content_type=content_type).status_code == 200


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/yaml",
        "application/json-patch+json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/vnd.kubernetes.protobuf",
        "json",
        ";",
    ],
)
def test_any_other_content_type_is_refused(content_type: str | None):
    webhook = Webhook()

    answer = webhook.post(review(), content_type=content_type)

    assert answer.status_code == 415
    assert "'application/json'" in error_of(answer)
    assert webhook.admission.bodies == []


def test_a_compressed_body_is_refused():
    answer = Webhook().post(review(), headers={"Content-Encoding": "gzip"})

    assert answer.status_code == 415
    assert "Content-Encoding" in error_of(answer)


V1BETA1 = review().replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="array"),
        pytest.param(b"[" + review() + b"]", id="review in an array"),
        pytest.param(b"null", id="null"),
        pytest.param(b'"AdmissionReview"', id="string"),
        pytest.param(b"{}", id="empty object"),
        pytest.param(b"uid: u-1", id="not JSON"),
        pytest.param(review()[:-20], id="truncated"),
        pytest.param(b"\xff\xfe\x00", id="not text"),
        pytest.param(b"<html></html>", id="HTML"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', id="no request"),
        pytest.param(review(uid=None), id="no uid"),
        pytest.param(review(uid=7), id="uid is a number"),
        pytest.param(review(uid=["u-1"]), id="uid is a list"),
        pytest.param(review(uid=""), id="uid is empty"),
        pytest.param(b"[" * 100_000, id="100,000 brackets"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="100,000 objects in each other"),
        pytest.param(b"9" * 100_000, id="a number of 100,000 digits"),
    ],
)
def test_a_body_without_a_readable_uid_is_a_clean_400(body: bytes, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    answer = Webhook().post(body)

    assert answer.status_code == 400
    assert 0 < len(error_of(answer)) < 300
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(review(operation="PATCH"), id="unknown operation"),
        pytest.param(review(object=None), id="no object"),
        pytest.param(review(object=["pod"]), id="object is a list"),
    ],
)
def test_a_bad_review_with_a_uid_is_answered_with_that_uid(body: bytes):
    answer = Webhook().post(body)

    content = json.loads(answer.data)
    assert answer.status_code == 200
    assert (content["apiVersion"], content["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert content["response"]["uid"] == "u-1"
    assert content["response"]["allowed"] is False
    status = content["response"]["status"]
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert status["message"]


def test_an_unreadable_review_is_answered_as_its_error_says():
    answer = Webhook(raising(ReviewError("too odd", status=422))).post(review())

    assert (answer.status_code, error_of(answer)) == (422, "too odd")


def test_the_largest_body_is_taken():
    body = review(name="web-0")
    padded = body + b" " * (BODY_LIMIT - len(body))

    assert Webhook().post(padded).status_code == 200


def test_a_body_of_a_3_mib_pod_with_its_review_is_taken():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"a": "x" * (3 * 1024 * 1024)}}}

    assert Webhook().post(review(object=pod)).status_code == 200


class Body(io.RawIOBase):
    """A body as the server hands it over, made by `fill`; `given` counts the bytes that were taken."""

    def __init__(self, fill: Callable[[memoryview], int]) -> None:
        self.fill = fill
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        taken = self.fill(buffer)
        self.given += taken
        return taken


def gone(_buffer: memoryview) -> int:
    raise ConnectionResetError("gone")


def ended(_buffer: memoryview) -> int:
    return 0


def endless(buffer: memoryview) -> int:
    buffer[:] = b" " * len(buffer)
    return len(buffer)


def post_stream(webhook: Webhook, body: io.IOBase, length: int | None = None) -> TestResponse:
    """Post a body as the server does, with a Content-Length or else in chunks."""
    framing = {"HTTP_TRANSFER_ENCODING": "chunked"} if length is None else {"CONTENT_LENGTH": str(length)}
    environ = {"wsgi.input": body, "wsgi.input_terminated": True, "CONTENT_TYPE": JSON, **framing}
    return webhook.client.post("/mutate", environ_overrides=environ)


def test_a_length_beyond_the_limit_is_refused_before_anything_is_read():
    webhook, body = Webhook(), Body(endless)

    answer = post_stream(webhook, body, length=BODY_LIMIT + 1)

    assert answer.status_code == 413
    assert str(BODY_LIMIT) in error_of(answer)
    assert (body.given, webhook.admission.bodies) == (0, [])


def test_a_body_without_length_is_read_up_to_the_limit_only():
    body = Body(endless)

    answer = post_stream(Webhook(), body)

    assert answer.status_code == 413
    assert "larger than" in error_of(answer)
    assert body.given <= BODY_LIMIT + 1024 * 1024


def test_a_length_beyond_the_limit_by_much_is_refused_too():
    answer = post_stream(Webhook(), Body(endless), length=10**12)

    assert (answer.status_code, "larger than" in error_of(answer)) == (413, True)


@pytest.mark.parametrize("length", [pytest.param(None, id="chunks"), pytest.param(len(review()), id="length")])
def test_a_body_that_ends_in_time_is_taken(length: int | None):
    assert post_stream(Webhook(), io.BytesIO(review()), length).status_code == 200


@pytest.mark.parametrize("fill", [pytest.param(gone, id="reset"), pytest.param(ended, id="ended early")])
def test_a_caller_that_goes_away_is_no_error_of_ours(
    fill: Callable[[memoryview], int], caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)

    answer = post_stream(Webhook(), Body(fill), length=10)

    assert answer.status_code == 400
    assert error_of(answer)
    assert [record.exc_info for record in caplog.records] == [None]


def test_a_host_that_is_no_host_is_a_clean_400():
    answer = Webhook().post(review(), headers={"Host": "bad host/"})

    assert answer.status_code in (200, 400)
    assert answer.headers["Content-Type"] == JSON


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param(None, 10.0, id="absent"),
        pytest.param("", 10.0, id="empty"),
        pytest.param("10s", 10.0, id="usual"),
        pytest.param("3s", 3.0, id="short"),
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("1m0.5s", 30.0, id="longer than any webhook's"),
        pytest.param("29.5s", 29.5, id="fraction"),
        pytest.param("30s", 30.0, id="longest"),
        pytest.param("9" * 60 + "h", 30.0, id="absurd"),
        pytest.param("0s", 10.0, id="zero is none"),
        pytest.param("10", 10.0, id="no unit"),
        pytest.param("5", 10.0, id="no unit either"),
        pytest.param("-5s", 10.0, id="negative"),
        pytest.param("5 s", 10.0, id="space"),
        pytest.param("soon", 10.0, id="word"),
        pytest.param("nan", 10.0, id="not a number"),
        pytest.param("1" * 100_000 + "s", 10.0, id="endless"),
    ],
)
def test_the_timeout_is_a_go_duration_and_garbage_is_the_default(text: str | None, seconds: float):
    assert timeout_of(text) == seconds


@pytest.mark.parametrize(
    ("query", "margin", "left"),
    [
        pytest.param("", 1.0, 9.0, id="default"),
        pytest.param("?timeout=5s", 1.0, 4.0, id="given"),
        pytest.param("?timeout=5s&timeout=20s", 1.0, 4.0, id="first of two"),
        pytest.param("?timeout=5s", 2.5, 2.5, id="another margin"),
        pytest.param("?timeout=500ms", 1.0, 0.0, id="less than the margin"),
        pytest.param("?timeout=%FF", 1.0, 9.0, id="not text"),
        pytest.param("?Timeout=5s", 1.0, 9.0, id="another parameter"),
    ],
)
def test_the_deadline_is_the_timeout_less_the_margin(query: str, margin: float, left: float):
    webhook = Webhook(budget_margin=margin)

    webhook.post(review(), path=f"/mutate{query}")

    assert [deadline.at - NOW for deadline in webhook.admission.deadlines] == [left]
    assert webhook.admission.deadlines[0].left() == left


def test_time_spent_waiting_for_a_thread_is_counted():
    webhook = Webhook()

    webhook.post(review(), path="/mutate?timeout=10s", environ_overrides={RECEIVED_AT: NOW - 4.0})

    assert webhook.admission.deadlines[0].left() == 5.0


@pytest.mark.parametrize(
    "path", ["/", "/mutate/", "/mutate/x", "//mutate", "/Mutate", "/static/x", "/livez", "/%ff", "/../mutate"]
)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_any_other_address_is_not_found(path: str, method: str):
    answer = Webhook().client.open(path, method=method)

    assert answer.status_code == 404
    assert "POST /mutate" in error_of(answer)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_only_post_is_allowed(method: str):
    answer = Webhook().client.open("/mutate", method=method)

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"
    assert "POST" in error_of(answer)


def test_a_head_request_is_not_allowed_either():
    assert Webhook().client.head("/mutate").status_code == 405


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ZeroDivisionError("secret detail"), id="surprise"),
        pytest.param(UnknownOutcome("list", "pods", detail="secret detail"), id="error of ours that got away"),
        pytest.param(RecursionError("secret detail"), id="recursion"),
        pytest.param(MemoryError("secret detail"), id="memory"),
        pytest.param(OSError("secret detail"), id="file"),
    ],
)
def test_a_failure_of_ours_is_a_500_in_json_and_logged_once(error: Exception, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    answer = Webhook(raising(error)).post(review())

    assert answer.status_code == 500
    assert error_of(answer) == f"internal error: {type(error).__name__}"
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    uid = json.loads(review())["request"]["uid"]
    assert record.getMessage() == f"review {uid} failed; its failurePolicy decides"


def test_a_failure_over_a_body_without_a_uid_is_logged_too(caplog: pytest.LogCaptureFixture):
    Webhook(raising(ZeroDivisionError())).post(b"{}")

    assert caplog.records[0].getMessage() == "review without uid failed; its failurePolicy decides"


def test_an_answer_that_cannot_be_written_as_json_is_a_500():
    answer = Webhook(lambda _body: {"response": object()}).post(review())

    assert (answer.status_code, error_of(answer)) == (500, "internal error: TypeError")


def test_an_answer_with_any_text_is_ascii_json():
    answer = Webhook(lambda _body: {"message": "数据库 \ud800"}).post(review())

    assert answer.status_code == 200
    assert json.loads(answer.data.decode("ascii")) == {"message": "数据库 \ud800"}


def test_what_cannot_happen_goes_up_to_the_server():
    with pytest.raises(KeyboardInterrupt):
        Webhook(raising(KeyboardInterrupt())).post(review())  # type: ignore[arg-type]


def test_the_status_of_every_answer_is_reported():
    webhook = Webhook(lambda body: {} if body == b"fine" else raising(ValueError())(body))

    webhook.post(b"fine")
    webhook.post(b"not fine")
    webhook.post(b"", content_type="text/plain")
    webhook.post(b"", path="/nowhere")
    webhook.client.get("/mutate")

    assert webhook.statuses == [200, 500, 415, 404, 405]


def test_an_app_that_reports_to_nobody_works():
    client = Client(create_app(Settings(), Admission(admit)))

    assert client.post("/mutate", data=review(), content_type=JSON).status_code == 200


def test_a_path_in_the_log_is_short(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    Webhook().client.get("/" + "x" * 5000)

    assert len(caplog.records[0].getMessage()) < 400
