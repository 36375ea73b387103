"""Answers of the API server: their objects, their time, and their errors as errors of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

from webhook.cluster.api_errors import error_for
from webhook.cluster.door import EventType, Manifest, WatchEvent
from webhook.core.shapes import inside, integer, mapping, text
from webhook.errors import ApiError, UnknownOutcome

DEFAULT_RETRY_AFTER: Final = 1.0
"""Seconds to wait after a 429 that does not say how long."""

_EVENT_TYPES: Final = frozenset(EventType)
_SECONDS: Final = re.compile(r"[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked, in Kubernetes' words, for errors."""

    verb: str
    resource: str
    name: str = ""

    def unknown(self, detail: str, status: int | None = None) -> ApiError:
        """The error of an answer that did not come, or that cannot be read."""
        return UnknownOutcome(self.verb, self.resource, self.name, status=status, detail=detail)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer as it came."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def succeeded(status: int) -> bool:
    """Whether an HTTP status says that what was asked was done."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def manifest_of(call: Call, answer: Answer) -> Manifest:
    """The object of an answer. Raises the `errors.ApiError` for its status, or UnknownOutcome if unreadable."""
    if not succeeded(answer.status):
        raise error_of(call, answer)
    try:
        manifest = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise call.unknown("the answer is not JSON", answer.status) from error
    if not isinstance(manifest, dict):
        raise call.unknown("the answer is not an object", answer.status)
    return manifest


def items_of(call: Call, listing: Manifest, api_version: str, kind: str) -> tuple[Manifest, ...]:
    """The items of a list, each with the apiVersion and kind that the API server leaves out of most lists."""
    items = listing.get("items")
    require_complete(call, listing)
    if items is not None and not isinstance(items, list):
        raise call.unknown("items is not a list")
    named = {"apiVersion": api_version, "kind": kind}
    return tuple(item_of(call, item, named) for item in items or ())


def item_of(call: Call, item: object, named: Mapping[str, str]) -> Manifest:
    """One item of a list, with the apiVersion and kind of `named`. Raises UnknownOutcome for what is no object."""
    if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
        raise call.unknown("an item of the list is not an object")
    return {**named, **item}


def require_complete(call: Call, listing: Manifest) -> None:
    """Raise UnknownOutcome for a list that is only the first of several pages."""
    if inside(listing, "metadata", "continue"):
        raise call.unknown("the list is incomplete")


def version_of(listing: Manifest) -> str:
    """The collection's resourceVersion, "" if the list does not say."""
    return text(inside(listing, "metadata", "resourceVersion"))


def event_of(call: Call, line: bytes) -> WatchEvent:
    """The event in a line of a watch. Raises the `errors.ApiError` that it reports, UnknownOutcome if unreadable."""
    try:
        event = mapping(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise call.unknown("an event is not JSON") from error
    manifest = event.get("object")
    if event.get("type") == "ERROR":
        status = mapping(manifest)
        raise error_for(call.verb, call.resource, call.name, integer(status.get("code")), text(status.get("message")))
    if event.get("type") not in _EVENT_TYPES or not text(inside(manifest, "metadata", "resourceVersion")):
        raise call.unknown("an event cannot be understood")
    return WatchEvent(EventType(event["type"]), {**mapping(manifest)})


def date_of(call: Call, answer: Answer) -> int:
    """The server's time, in seconds since 1970. Raises UnknownOutcome if it does not say: time is not guessed."""
    try:
        return int(parsedate_to_datetime(answer.headers["Date"]).timestamp())
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise call.unknown("the answer has no usable Date header", answer.status) from error


def error_of(call: Call, answer: Answer) -> ApiError:
    """The error that an answer is."""
    status = _status_object(answer.body)
    detail = text(status.get("message"))
    return error_for(
        call.verb,
        call.resource,
        call.name,
        answer.status,
        detail,
        retry_after=_retry_after(answer.headers, status),
    )


def _status_object(body: bytes) -> Mapping[str, Any]:
    """The body if it is a Kubernetes Status; anything else, such as a proxy's page, is of no use in an error."""
    try:
        parsed = mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}
    return parsed if parsed.get("kind") == "Status" else {}


def _retry_after(headers: Mapping[str, str], status: Mapping[str, Any]) -> float:
    header = headers.get("Retry-After", "")
    if _SECONDS.fullmatch(header):
        return float(header)
    seconds = integer(inside(status, "details", "retryAfterSeconds"))
    return float(seconds) if seconds is not None and seconds >= 0 else DEFAULT_RETRY_AFTER
