"""The errors of this product; every foreign error becomes one of these at the door where it enters.

WebhookError
├── SettingsError        a flag or variable is wrong
├── DumpError            a cluster dump cannot be used
├── NoAnswer             a command could not find out what it was asked
├── ReviewError          a body is not an AdmissionReview v1 of a pod
├── OutOfTime            the budget of the request is used up; nothing was sent
└── ApiError             the API server did not do what was asked
    ├── Conflict         409: the resourceVersion or uid has moved on
    ├── NotFound         404: no such object, or no such kind
    ├── Gone             410: the resourceVersion of a watch or list is too old
    ├── Forbidden        401, 403: our credentials do not allow it
    ├── Invalid          400, 422: the request itself is refused
    ├── TooManyRequests  429: asked to wait
    └── UnknownOutcome   exception, 5xx, 504: a write may or may not have been applied

Errors that do not leave their package's callers stand where they are raised, as kinds of WebhookError: PatchError
(`core/jsonpatch.py`), SetError and AnswerError (`embedded`), DemoError (`demo`), Refused (`cluster/api_errors.py`).
"""

from __future__ import annotations


class WebhookError(Exception):
    """Any error that this product raises on purpose; its text is fit for a user."""


class SettingsError(WebhookError):
    """A flag or environment variable has a wrong value; the text names it, the value and what is right."""


class DumpError(WebhookError):
    """A cluster dump cannot be used; the text names the file, the document and the field."""


class NoAnswer(WebhookError):
    """A command could not find out what it was asked: the cluster cannot be read; the text says what to do."""


class ReviewError(WebhookError):
    """A request body is not an AdmissionReview v1 that can be answered with a review.

    `uid` is the request's uid where one could be read, else None; `status` is the HTTP status to answer.
    """

    def __init__(self, message: str, *, uid: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.uid = uid
        self.status = status


class OutOfTime(WebhookError):
    """The request's budget is used up. Nothing was sent."""


class ApiError(WebhookError):
    """A call to the API server failed.

    `verb`, `resource` and `name` are Kubernetes' own words ("list", "persistentvolumeclaims"); `status` is
    the HTTP status, or None where no answer came.
    """

    def __init__(
        self, verb: str, resource: str, name: str = "", *, status: int | None = None, detail: str = ""
    ) -> None:
        target = f"{resource} {name}".strip()
        super().__init__(f"{verb} {target}: {status or 'no answer'} {detail}".strip())
        self.verb = verb
        self.resource = resource
        self.name = name
        self.status = status
        self.detail = detail


class Conflict(ApiError):
    """409: the object has changed since it was read."""


class NotFound(ApiError):
    """404: no such object, or the API server does not serve the kind."""


class Gone(ApiError):
    """410: the resourceVersion is too old to continue from."""


class Forbidden(ApiError):
    """401 or 403: the credentials do not allow this verb on this resource."""


class Invalid(ApiError):
    """400 or 422: the API server refuses the request itself."""


class TooManyRequests(ApiError):
    """429: the API server asks to wait `retry_after` seconds."""

    def __init__(self, verb: str, resource: str, name: str = "", *, retry_after: float = 1.0) -> None:
        super().__init__(verb, resource, name, status=429, detail=f"retry after {retry_after:g} s")
        self.retry_after = retry_after


class UnknownOutcome(ApiError):
    """No answer, or a 5xx: if the call was a write, it may have been applied, or may still be."""
