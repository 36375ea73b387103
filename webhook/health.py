"""The health address, plain HTTP: `/livez`, `/readyz` and `/metrics`, as a WSGI application.

`/livez` asks nobody: a process that answers is alive, and a restart mends no API server. `/readyz` is 503
with one reason per line while anything is missing, so that no review is sent here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from webhook.errors import WebhookError

PLAIN_TEXT: Final = "text/plain; charset=utf-8"

# Says in one sentence what is missing; None when nothing is.
Check = Callable[[], str | None]


class Once:
    """A check that passes for good as soon as `attempt` has succeeded once; it is tried at each question.

    `attempt` raises a `WebhookError`, whose text becomes the reason; `what` says what it is about.
    """

    def __init__(self, what: str, attempt: Callable[[], object]) -> None:
        self._what = what
        self._attempt = attempt
        self._passed = False

    def __call__(self) -> str | None:
        """What is missing still."""
        if not self._passed:
            try:
                self._attempt()
            except WebhookError as error:
                return f"{self._what}: {error}"
            self._passed = True
        return None


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    body: bytes
    content_type: str = PLAIN_TEXT


_NOT_FOUND: Final = _Answer(HTTPStatus.NOT_FOUND, b"nothing is here: try /livez, /readyz or /metrics\n")
_NOT_ALLOWED: Final = _Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET is allowed here\n")
_OK: Final = _Answer(HTTPStatus.OK, b"ok\n")


def create_health_app(
    checks: Sequence[Check], metrics: Callable[[], bytes], metrics_type: str = PLAIN_TEXT
) -> WSGIApplication:
    """The WSGI application of the health address.

    It is ready while every check returns None. `metrics` returns what `/metrics` answers, of content type
    `metrics_type`.
    """
    pages: dict[str, Callable[[], _Answer]] = {
        "/livez": lambda: _OK,
        "/readyz": lambda: _readiness(checks),
        "/metrics": lambda: _Answer(HTTPStatus.OK, metrics(), metrics_type),
    }

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        method = environ["REQUEST_METHOD"]
        page = pages.get(environ.get("PATH_INFO", ""), lambda: _NOT_FOUND)
        answer = page() if method in ("GET", "HEAD") else _NOT_ALLOWED
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
        ]
        if answer is _NOT_ALLOWED:
            headers.append(("Allow", "GET, HEAD"))
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [] if method == "HEAD" else [answer.body]

    return application


def _readiness(checks: Sequence[Check]) -> _Answer:
    reasons = [reason for check in checks if (reason := check()) is not None]
    if not reasons:
        return _OK
    # A reason is one line, whatever a foreign error's text holds.
    lines = [" ".join(f"not ready: {reason}".split()) for reason in reasons]
    body = "\n".join([*lines, ""]).encode("utf-8", "backslashreplace")
    return _Answer(HTTPStatus.SERVICE_UNAVAILABLE, body)
