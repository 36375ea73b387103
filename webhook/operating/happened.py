"""The events that tell of a pod: its own, and those on its owner that name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from webhook.cluster.door import EVENTS, Manifest
from webhook.cluster.reader import Reader
from webhook.core.shapes import inside, integer, mapping, text
from webhook.errors import Forbidden, Invalid

MOST: Final = 50


@dataclass(frozen=True, slots=True)
class Happened:
    """One event. `last` is RFC 3339 as it was written, `count` how often it was."""

    last: str
    reason: str
    message: str
    count: int
    involved: str

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.last or 'some time'}  {self.reason} on {self.involved}{times}: {self.message}"


@dataclass(frozen=True, slots=True)
class Events:
    """The newest first; `problem` says why there are none to see."""

    happened: tuple[Happened, ...] = ()
    problem: str = ""


def events_of(reader: Reader, namespace: str, pod: str, owner: str) -> Events:
    """What happened to a pod of this name; `owner` is its owner's name, "" for none.

    Raises `errors.ApiError` for all but a want of permission, which is told.
    """
    try:
        found = [*_involving(reader, namespace, pod), *(_involving(reader, namespace, owner) if owner else ())]
    except Forbidden as error:
        return Events(problem=f"not shown: not allowed to {error.verb} {error.resource}")
    telling = {_key(event): _happened(event) for event in found if _tells_of(event, pod)}
    newest = sorted(telling.values(), key=lambda each: each.last, reverse=True)
    return Events(tuple(newest[:MOST]))


def _involving(reader: Reader, namespace: str, name: str) -> Iterator[Manifest]:
    field = "involvedObject.name"
    try:
        found: Iterable[Manifest] = reader.list(EVENTS, namespace=namespace, fields={field: name}).items
    except Invalid:
        # The embedded cluster does not select by it.
        found = reader.list(EVENTS, namespace=namespace).items
    return (event for event in found if inside(event, "involvedObject", "name") == name)


def _tells_of(event: Manifest, pod: str) -> bool:
    if inside(event, "involvedObject", "kind") == "Pod":
        return bool(inside(event, "involvedObject", "name") == pod)
    # Names of pods are words of the message: db-1 is not db-10.
    words = text(event.get("message")).replace(":", " ").replace('"', " ").replace("/", " ").split()
    return pod in words


def _key(event: Manifest) -> str:
    return text(inside(event, "metadata", "uid")) or text(inside(event, "metadata", "name"))


def _happened(event: Manifest) -> Happened:
    series: Any = mapping(event.get("series"))
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
    return Happened(
        last=next(filter(None, map(text, times)), ""),
        reason=text(event.get("reason")),
        message=text(event.get("message")),
        count=integer(event.get("count")) or integer(series.get("count")) or 1,
        involved=f"{text(inside(event, 'involvedObject', 'kind'))} {text(inside(event, 'involvedObject', 'name'))}",
    )
