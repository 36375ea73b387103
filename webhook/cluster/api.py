"""The API server behind a `Door`: raw JSON over the official client's connections.

One call is one HTTP request: nothing is retried, redirected or cached in here. Every status, exception and
unreadable answer becomes one of our errors. Errors name verb, resource and object; of an answer they show no
more than the message of its `Status`, and of an exception no more than its kind.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPException
from threading import Lock
from time import monotonic
from typing import Any, Final

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException

from webhook.cluster import credentials
from webhook.cluster.answers import Answer, Call, date_of, items_of, manifest_of
from webhook.cluster.api_errors import Refused, error_for, require_time
from webhook.cluster.creation import api_version
from webhook.cluster.door import Listing, Manifest, Resource
from webhook.cluster.queries import FIELD_MANAGER, list_query, path_of, write_query

POOL_SIZE: Final = 72
"""Connections kept open: the default 64 threads of a worker, and some for its own watches."""

_CHUNK: Final = 1 << 18
_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
# ValueError: an answer or a token that cannot be put into HTTP.
_NO_ANSWER: Final = (urllib3.exceptions.HTTPError, HTTPException, OSError, ConfigException, ValueError)


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
        self._configuration = configuration
        self._configuration.retries = False
        self._configuration.connection_pool_maxsize = pool_size
        self._verify_strict = verify_strict
        self._clock = clock
        self._process = process
        self._lock = Lock()
        self._pools: dict[int, urllib3.PoolManager] = {}

    @classmethod
    def from_kubeconfig(
        cls, path: str, context: str | None = None, *, pool_size: int = POOL_SIZE, verify_strict: bool = True
    ) -> ApiDoor:
        """A door by a kubeconfig file and a context of it (None: the current one). Raises SettingsError."""
        configuration = credentials.from_kubeconfig(path, context)
        return cls(configuration, pool_size=pool_size, verify_strict=verify_strict)

    @classmethod
    def in_cluster(cls, *, pool_size: int = POOL_SIZE, verify_strict: bool = True) -> ApiDoor:
        """A door by the service account of the pod that we run in. Raises SettingsError."""
        return cls(credentials.in_cluster(), pool_size=pool_size, verify_strict=verify_strict)

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
        version = str((listing.get("metadata") or {}).get("resourceVersion") or "")
        return Listing(items, version, date_of(call, answer))

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
        return manifest_of(call, self._send(call, "POST", target, timeout, body, _JSON))

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
        manifest_of(call, self._send(call, "DELETE", path, timeout, body, _JSON))

    def close(self) -> None:
        """Close the connections of this process."""
        with self._lock:
            pool = self._pools.pop(self._process(), None)
        if pool is not None:
            pool.clear()

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
            response = self._pool().request(
                method,
                self._configuration.host + target,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers(content_type),
                timeout=urllib3.Timeout(total=timeout),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            content = self._read(response, end)
        except _NO_ANSWER as error:
            raise call.unknown(_kind_of(error)) from None
        return Answer(response.status, response.headers, content)

    def _read(self, response: urllib3.BaseHTTPResponse, end: float) -> bytes:
        """The whole body, if it comes before `end`: time-outs of single reads do not bound a trickle."""
        chunks = []
        for chunk in response.stream(_CHUNK):
            chunks.append(chunk)
            if self._clock() > end:
                response.close()
                raise TimeoutError
        response.release_conn()
        return b"".join(chunks)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": _JSON, "User-Agent": FIELD_MANAGER}
        if content_type:
            headers["Content-Type"] = content_type
        settings: Mapping[str, Any] = dict(self._configuration.auth_settings())
        for setting in settings.values():
            headers[setting["key"]] = setting["value"]
        return headers

    def _pool(self) -> urllib3.PoolManager:
        # A connection shared with the process that we were forked from would mix up two conversations.
        process = self._process()
        with self._lock:
            if process not in self._pools:
                self._pools = {process: self._new_pool()}
            return self._pools[process]

    def _new_pool(self) -> urllib3.PoolManager:
        pool: urllib3.PoolManager = RESTClientObject(self._configuration).pool_manager
        if not self._verify_strict:
            context = urllib3.util.create_urllib3_context()
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            pool.connection_pool_kw["ssl_context"] = context
        return pool


def _path(call: Call, resource: Resource, namespace: str, name: str | None = None) -> str:
    try:
        return path_of(resource, namespace, name)
    except Refused as refused:
        raise error_for(call.verb, call.resource, call.name, refused.status, str(refused)) from None


def _kind_of(error: BaseException) -> str:
    """What went wrong without what was sent: the kinds of the exception and of its causes, and the system's word."""
    names = [type(error).__name__]
    cause: Any = error.__cause__ or error.__context__
    while cause is not None and len(names) < 4:
        reason = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
        names.append(f"{type(cause).__name__}{f' ({reason})' if isinstance(reason, str) else ''}")
        cause = cause.__cause__ or cause.__context__
    return " from ".join(names)
