"""AdmissionReview v1 in and out: bytes to a `Review`, decisions to whole answers.

Shapes are those of `k8s.io/api/admission/v1`. Only `admission.k8s.io/v1` is spoken; v1beta1 went away with
Kubernetes 1.22. The pod stays the plain dict that came in: it is never taken through a model, so fields that
this product does not know survive.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, NotRequired, TypedDict

from webhook.core.shapes import inside, mapping, text
from webhook.errors import ReviewError

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")


class StatusDetails(TypedDict):
    """`metav1.StatusDetails`; the API server turns the number into a `Retry-After` header."""

    retryAfterSeconds: int


class Status(TypedDict):
    """The `metav1.Status` of a refusal."""

    status: str
    code: int
    reason: str
    message: str
    details: NotRequired[StatusDetails]


class AdmissionResponse(TypedDict):
    """The `response` of an AdmissionReview; `patch` is base64 of a JSON Patch."""

    uid: str
    allowed: bool
    status: NotRequired[Status]
    patch: NotRequired[str]
    patchType: NotRequired[str]
    warnings: NotRequired[list[str]]
    auditAnnotations: NotRequired[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Review:
    """A request to admit something, as the API server sent it.

    `namespace` is the request's and wins over the object's. `name` is "" where the server will make one from
    generateName. `resource` is the plural ("pods"), `sub_resource` "" for the pod itself. `pod_manifest` is
    the object, {} where the operation has none (DELETE). `kind` is the object's kind.
    """

    uid: str
    operation: str
    namespace: str
    name: str
    dry_run: bool
    resource: str
    sub_resource: str
    pod_manifest: dict[str, Any]
    kind: str


def uid_in(body: bytes) -> str:
    """The uid of a review that was parsed before, for the log; "" where there is none."""
    try:
        return parse_review(body).uid
    except ReviewError as error:
        return error.uid or ""


def parse_review(body: bytes) -> Review:
    """The review in a request body.

    Raises ReviewError (status 400), with the request's uid where one could be read, for anything that is not
    an AdmissionReview v1 of a pod.
    """
    top = _json_object(body)
    request = mapping(top.get("request"))
    uid = text(request.get("uid")) or None
    if top.get("apiVersion") != API_VERSION or top.get("kind") != KIND:
        found = f"apiVersion is {_shown(top.get('apiVersion'))}, kind is {_shown(top.get('kind'))}"
        _refuse(f"not an {KIND} of {API_VERSION}: its {found}", uid)
    if not isinstance(top.get("request"), dict):
        _refuse("the review has no request", None)
    if uid is None:
        _refuse("request.uid is missing or no string", None)
    operation = text(request.get("operation"))
    if operation not in OPERATIONS:
        found = _shown(request.get("operation"))
        _refuse(f"request.operation is {found}; one of {', '.join(OPERATIONS)} is right", uid)
    resource = _resource(request, uid)
    return Review(
        uid=uid,
        operation=operation,
        namespace=_namespace(request, operation, resource, uid),
        name=text(request.get("name")) or text(inside(request, "object", "metadata", "name")),
        dry_run=request.get("dryRun") is True,
        resource=resource,
        sub_resource=text(request.get("subResource")),
        pod_manifest=_manifest(request, operation, uid),
        kind=text(inside(request, "kind", "kind")) or text(inside(request, "object", "kind")),
    )


def allow(
    uid: str,
    *,
    patch: list[dict[str, Any]] | None = None,
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The whole answer that admits the object, changed by the JSON Patch `patch` if there is one.

    `audit`: keys without prefix (the API server puts the webhook's name before them).
    """
    response = AdmissionResponse(uid=uid, allowed=True)
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch, separators=(",", ":")).encode()).decode()
    return _answer(response, warnings, audit)


def deny(
    uid: str,
    *,
    code: int,
    reason: str,
    message: str,
    retry_after: int | None = None,
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The whole answer that refuses the object: HTTP status `code`, Kubernetes' `reason` ("Forbidden"), text.

    `retry_after` (s) asks the client to wait and try again; clients of Kubernetes do so for 429.
    """
    status = Status(status="Failure", code=code, reason=reason, message=message)
    if retry_after is not None:
        status["details"] = StatusDetails(retryAfterSeconds=retry_after)
    return _answer(AdmissionResponse(uid=uid, allowed=False, status=status), warnings, audit)


def _answer(response: AdmissionResponse, warnings: Sequence[str], audit: Mapping[str, str] | None) -> dict[str, Any]:
    shown = [line for line in dict.fromkeys(map(_warning, warnings)) if line]
    if shown:
        response["warnings"] = shown
    if audit:
        response["auditAnnotations"] = dict(audit)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _warning(warning: str) -> str:
    """One line (the API server drops a warning with a line break), as long as `messages.py` has made it."""
    return " ".join(warning.split()).removeprefix("Warning:").lstrip()


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        top = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        # RecursionError: a body of nothing but brackets.
        raise ReviewError(f"the body is not JSON: {error}") from error
    if not isinstance(top, dict):
        _refuse("the body is not a JSON object", None)
    return top


def _no_constant(name: str) -> NoReturn:
    """NaN and Infinity are Python's JSON, not everybody's: they would not survive in a patch."""
    raise ValueError(f"{name} is not JSON")


def _resource(request: Mapping[str, Any], uid: str) -> str:
    """The plural; a hand-made review may leave the field out."""
    raw = mapping(request.get("resource"))
    group, plural = text(raw.get("group")), text(raw.get("resource")) or "pods"
    if group or plural != "pods":
        _refuse(f"the review is about {plural}{group and '.' + group}, not about pods", uid)
    return plural


def _manifest(request: Mapping[str, Any], operation: str, uid: str) -> dict[str, Any]:
    """The object; only a pod that is to be created must be there and be one (a subresource has its own kinds)."""
    raw = request.get("object")
    manifest: dict[str, Any] = raw if isinstance(raw, dict) else {}
    if operation != "CREATE" or text(request.get("subResource")):
        return manifest
    if not isinstance(raw, dict):
        _refuse("request.object is not an object", uid)
    kind = text(inside(request, "kind", "kind")) or text(manifest.get("kind")) or "Pod"
    if kind != "Pod":
        _refuse(f"the object is a {kind}, not a Pod", uid)
    return manifest


def _shown(value: object) -> str:
    """A foreign value inside a message: quoted, never long; what is null or not there is missing."""
    shown = "missing" if value is None else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _namespace(request: Mapping[str, Any], operation: str, resource: str, uid: str) -> str:
    """The request's namespace, else the object's: a hand-made review may leave the first out."""
    namespace = text(request.get("namespace")) or text(inside(request, "object", "metadata", "namespace"))
    if not namespace and operation == "CREATE" and resource == "pods":
        # Its claims would be looked for in no namespace, and be missing.
        _refuse("request.namespace is missing: a pod belongs to one", uid)
    return namespace


def _refuse(message: str, uid: str | None) -> NoReturn:
    raise ReviewError(message, uid=uid)
