"""The webhook address: `POST /mutate` takes an AdmissionReview v1 and answers with one.

Two ways of saying no are kept apart. What a pod may not do is an AdmissionReview with `allowed: false`, and
final. What went wrong with a request, or with us, is a 4xx or 5xx with JSON, a call failure for the API
server, so that the `failurePolicy` decides. No answer is ever HTML.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge, UnsupportedMediaType

from webhook.admission import Reviewer
from webhook.core.review import deny, uid_in
from webhook.deadline import Deadline
from webhook.durations import parse_go_duration
from webhook.errors import ReviewError
from webhook.settings import Settings

logger = logging.getLogger(__name__)

# The API server takes requests of up to 3 MiB (MaxRequestBodyBytes), so that is the largest pod. A review of
# a CREATE holds it once (oldObject is null); 1 MiB more is for the wrapper with the requester's groups and
# extras, and for what JSON escapes (Go writes <, > and & as six characters).
BODY_LIMIT: Final = (3 + 1) * 1024 * 1024
# Seconds: a webhook's default timeoutSeconds, and the greatest that the API server accepts.
DEFAULT_TIMEOUT: Final = 10.0
LONGEST_TIMEOUT: Final = 30.0
# In the WSGI environment: when the server read the request's first byte, by the clock of the deadline. The API
# server's time-out runs from then on, also while the request waits for a thread. Without it: now.
RECEIVED_AT: Final = "tidb_ha_webhook.received_at"

_TEXTS: Final[Mapping[int, str]] = {
    400: "the request is malformed, or ended too early",
    404: "nothing is here: reviews go to POST /mutate, probes and metrics have an address of their own",
    405: "only POST is allowed here",
    413: f"the body is larger than {BODY_LIMIT} bytes",
}


def create_app(
    settings: Settings,
    admission: Reviewer,
    *,
    responded: Callable[[int], object] | None = None,
    clock: Callable[[], float] = monotonic,
) -> Flask:
    """The WSGI application of the webhook address.

    `responded` is told the HTTP status of each answer; `clock` counts the seconds of the deadline.
    """
    app = Flask("webhook", static_folder=None)
    # Werkzeug stops reading there, but takes what it has for the whole body: one byte more tells the two apart.
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT + 1
    # A path with two slashes is not found; Flask would redirect it, with an HTML body.
    app.url_map.merge_slashes = False

    def mutate() -> Response:
        arrival: float = request.environ.get(RECEIVED_AT, clock())
        budget = max(0.0, timeout_of(request.args.get("timeout")) - settings.budget_margin)
        body = _read_body()
        try:
            return _json(200, admission.review(body, Deadline(arrival + budget, clock)))
        except ReviewError as error:
            return _unreadable(error)
        except Exception:
            g.uid = uid_in(body)
            raise

    def count(response: Response) -> Response:
        if responded is not None:
            responded(response.status_code)
        return response

    app.add_url_rule("/mutate", view_func=mutate, methods=["POST"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)
    app.after_request(count)
    return app


def timeout_of(text: str | None) -> float:
    """Seconds that the caller waits, out of the `timeout` parameter, which is a Go duration.

    Absent or garbage is the default; so is 0, which means "no time-out" to Kubernetes clients.
    """
    return min(parse_go_duration(text or "") or DEFAULT_TIMEOUT, LONGEST_TIMEOUT)


def _read_body() -> bytes:
    if request.mimetype != "application/json":
        raise UnsupportedMediaType(f"the Content-Type is {request.mimetype!r}, not 'application/json'")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("the body has a Content-Encoding; send it as it is")
    if (request.content_length or 0) > BODY_LIMIT:
        raise RequestEntityTooLarge
    body = request.get_data(cache=False)
    if len(body) > BODY_LIMIT:
        raise RequestEntityTooLarge
    return body


def _unreadable(error: ReviewError) -> Response:
    """Answer a body that is not a review that we can answer: with its uid if that could be read."""
    logger.warning("unreadable review %s: %s", error.uid or "without uid", error)
    if error.uid is None:
        return _json(error.status, {"error": str(error)})
    return _json(200, deny(error.uid, code=error.status, reason="BadRequest", message=str(error)))


def _refused(error: HTTPException) -> Response:
    code = error.code or 500
    text = _TEXTS.get(code) or error.description or error.name
    logger.info("refused %s %.200s: %d %s", request.method, request.path, code, text)
    response = _json(code, {"error": text})
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(error.valid_methods)
    return response


def _failed(error: Exception) -> Response:
    """The edge at which every surprise ends: logged once, and left to the failurePolicy."""
    logger.error("review %s failed; its failurePolicy decides", g.get("uid") or "without uid", exc_info=error)
    return _json(500, {"error": f"internal error: {type(error).__name__}"})


def _json(status: int, answer: Mapping[str, Any]) -> Response:
    return Response(json.dumps(answer, separators=(",", ":")), status, mimetype="application/json")
