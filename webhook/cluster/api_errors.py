"""The one place where an HTTP status of the API server becomes an error of ours."""

from __future__ import annotations

from typing import Final

from webhook.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    OutOfTime,
    TooManyRequests,
    UnknownOutcome,
    WebhookError,
)

DETAIL_LIMIT: Final = 256
"""The most characters of a `Status` message in an error: enough to know it, too few to leak an object."""

_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}


class Refused(WebhookError):
    """Something that an API server answers with `status`; the door that was asked makes its own error of it."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def error_for(
    verb: str, resource: str, name: str, status: int | None, detail: str, *, retry_after: float = 1.0
) -> ApiError:
    """The error for an answer with this status; None is no answer.

    Every status that does not say for certain that nothing was done is an unknown outcome
    (seen on an API server: a write answered with 500 or 504 may be stored).
    """
    if status == 429:
        return TooManyRequests(verb, resource, name, retry_after=retry_after)
    kind = UnknownOutcome if status is None else _BY_STATUS.get(status, UnknownOutcome)
    return kind(verb, resource, name, status=status, detail=detail[:DETAIL_LIMIT])


def require_time(timeout: float) -> None:
    """Raise OutOfTime unless there is time for a call (s)."""
    if timeout <= 0:
        raise OutOfTime("the budget of the request is used up; the API server was not asked")
