"""The API server behind a `Door`: raw JSON over the official client's connections.

One call is one HTTP request: nothing is retried, redirected or cached in here. Every status, exception and
unreadable answer becomes one of our errors. Errors name verb, resource and object; of an answer they show no
more than the message of its `Status`, and of an exception no more than its kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from time import monotonic
from typing import Final

import urllib3
from kubernetes.client import Configuration

from webhook.cluster.answers import (
    Answer,
    Call,
    date_of,
    error_of,
    event_of,
    item_of,
    items_of,
    manifest_of,
    require_complete,
    succeeded,
    version_of,
)
from webhook.cluster.api_errors import Refused, error_for, require_time
from webhook.cluster.connections import JSON, NO_ANSWER, Connections, reason_of
from webhook.cluster.creation import api_version
from webhook.cluster.door import Listing, Manifest, Resource, WatchEvent
from webhook.cluster.queries import list_query, path_of, watch_query, write_query
from webhook.cluster.streams import lines_in, read_list

POOL_SIZE: Final = 80
"""Connections kept open: the default 64 threads of a worker, and its own watches."""

_CHUNK: Final = 1 << 18
_MERGE_PATCH: Final = "application/merge-patch+json"


class ApiDoor:
    """A `Door` to an API server; safe to use from many threads, and in a process forked after it was made.

    `verify_strict` False takes away OpenSSL's VERIFY_X509_STRICT alone, which Python 3.13 switched on:
    certificates of older clusters' CAs lack the key identifiers that it asks for. Verification stays on.
    `clock` is monotonic, in seconds; `process` says which process we are in.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        pool_size: int = POOL_SIZE,
        verify_strict: bool = True,
        clock: Callable[[], float] = monotonic,
        process: Callable[[], int] = os.getpid,
    ) -> None:
        self._connections = Connections(
            configuration, pool_size=pool_size, verify_strict=verify_strict, process=process
        )
        self._clock = clock

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> Listing:
        """See `Door.list`."""
        call = Call("list", resource.plural)
        try:
            query = list_query(labels, fields, resource_version)
        except Refused as refused:
            raise error_for(call.verb, call.resource, "", refused.status, str(refused)) from None
        path = _path(call, resource, namespace)
        answer = self._send(call, "GET", f"{path}?{query}" if query else path, timeout)
        listing = manifest_of(call, answer)
        items = items_of(call, listing, api_version(resource), resource.kind)
        return Listing(items, version_of(listing), date_of(call, answer))

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        """See `Door.scan`. In one piece: the server ignores a limit where it may answer from its cache."""
        call = Call("list", resource.plural)
        query = list_query(None, None, resource_version)
        path = _path(call, resource, "")
        named = {"apiVersion": api_version(resource), "kind": resource.kind}
        require_time(timeout)
        end = self._clock() + timeout
        response = self._begin(call, f"{path}?{query}" if query else path, urllib3.Timeout(total=timeout), end)
        with closing(response):
            try:
                listing = read_list(self._chunks(response, end), lambda item: visit(item_of(call, item, named)))
            except (ValueError, RecursionError):
                raise call.unknown("the answer is not JSON", response.status) from None
            except NO_ANSWER as error:
                raise call.unknown(reason_of(error), response.status) from None
        require_complete(call, listing)
        return version_of(listing)

    def watch(
        self, resource: Resource, *, resource_version: str, timeout: float, silence: float
    ) -> Iterator[WatchEvent]:
        """See `Door.watch`."""
        call = Call("watch", resource.plural)
        require_time(timeout)
        target = f"{_path(call, resource, '')}?{watch_query(resource_version, timeout)}"
        waiting = urllib3.Timeout(connect=silence, read=silence)
        return _events(call, self._begin(call, target, waiting, self._clock() + silence))

    def get(self, resource: Resource, name: str, *, namespace: str = "", timeout: float) -> Manifest:
        """See `Door.get`."""
        call = Call("get", resource.plural, name)
        return manifest_of(call, self._send(call, "GET", _path(call, resource, namespace, name), timeout))

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, namespace: str = "", timeout: float
    ) -> Manifest:
        """See `Door.merge_patch`."""
        call = Call("patch", resource.plural, name)
        target = f"{_path(call, resource, namespace, name)}?{write_query()}"
        return manifest_of(call, self._send(call, "PATCH", target, timeout, patch, _MERGE_PATCH))

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        """See `Door.create`."""
        call = Call("create", resource.plural)
        target = f"{_path(call, resource, namespace)}?{write_query()}"
        body = {**manifest, "apiVersion": api_version(resource), "kind": resource.kind}
        return manifest_of(call, self._send(call, "POST", target, timeout, body, JSON))

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        timeout: float,
    ) -> None:
        """See `Door.delete`."""
        call = Call("delete", resource.plural, name)
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        path = _path(call, resource, namespace, name)
        manifest_of(call, self._send(call, "DELETE", path, timeout, body, JSON))

    def close(self) -> None:
        """Close the connections of this process."""
        self._connections.close()

    def _send(
        self,
        call: Call,
        method: str,
        target: str,
        timeout: float,
        body: Manifest | None = None,
        content_type: str = "",
    ) -> Answer:
        require_time(timeout)
        end = self._clock() + timeout
        try:
            response = self._connections.request(method, target, urllib3.Timeout(total=timeout), body, content_type)
            content = self._content(response, end)
        except NO_ANSWER as error:
            raise call.unknown(reason_of(error)) from None
        return Answer(response.status, response.headers, content)

    def _begin(self, call: Call, target: str, timeout: urllib3.Timeout, end: float) -> urllib3.BaseHTTPResponse:
        """An answer that is read while it comes. Raises `errors.ApiError` for one that is an error."""
        try:
            response = self._connections.request("GET", target, timeout)
            if succeeded(response.status):
                return response
            content = self._content(response, end)
        except NO_ANSWER as error:
            raise call.unknown(reason_of(error)) from None
        raise error_of(call, Answer(response.status, response.headers, content))

    def _content(self, response: urllib3.BaseHTTPResponse, end: float) -> bytes:
        with closing(response):
            return b"".join(self._chunks(response, end))

    def _chunks(self, response: urllib3.BaseHTTPResponse, end: float) -> Iterator[bytes]:
        """The body, if it comes before `end`: time-outs of single reads do not bound a trickle."""
        for chunk in response.stream(_CHUNK):
            yield chunk
            if self._clock() > end:
                raise TimeoutError


def _events(call: Call, response: urllib3.BaseHTTPResponse) -> Iterator[WatchEvent]:
    with closing(response):
        try:
            for line in lines_in(response.stream(_CHUNK)):
                yield event_of(call, line)
        except NO_ANSWER as error:
            raise call.unknown(reason_of(error), response.status) from None


def _path(call: Call, resource: Resource, namespace: str, name: str | None = None) -> str:
    try:
        return path_of(resource, namespace, name)
    except Refused as refused:
        raise error_for(call.verb, call.resource, call.name, refused.status, str(refused)) from None
