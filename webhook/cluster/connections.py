"""HTTP to the API server over the official client's connections and credentials: one request is sent once."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPException
from threading import Lock
from typing import Any, Final

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException

from webhook.cluster.door import Manifest
from webhook.cluster.queries import FIELD_MANAGER

# ValueError: an answer or a token that cannot be put into HTTP.
NO_ANSWER: Final = (urllib3.exceptions.HTTPError, HTTPException, OSError, ConfigException, ValueError)
"""What is raised instead of an answer."""

JSON: Final = "application/json"

# A connection whose other end went without a word (a dead node, a NAT entry that timed out) is given up after
# 25 s, also while nothing is asked over it: the next call does not have to find that out.
_SOCKET_OPTIONS: Final = (
    *urllib3.connection.HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class Connections:
    """The connections of each process that uses them; safe to use from many threads."""

    def __init__(
        self, configuration: Configuration, *, pool_size: int, verify_strict: bool, process: Callable[[], int]
    ) -> None:
        """`process` says which process we are in."""
        self._configuration = configuration
        self._configuration.retries = False
        self._configuration.connection_pool_maxsize = pool_size
        self._configuration.socket_options = list(_SOCKET_OPTIONS)
        self._verify_strict = verify_strict
        self._process = process
        self._lock = Lock()
        self._pools: dict[int, urllib3.PoolManager] = {}

    def request(
        self,
        method: str,
        target: str,
        timeout: urllib3.Timeout,
        body: Manifest | None = None,
        content_type: str = "",
    ) -> urllib3.BaseHTTPResponse:
        """Send one request; its answer, the body not read yet. Raises one of NO_ANSWER."""
        return self._pool().request(
            method,
            self._configuration.host + target,
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers(content_type),
            timeout=timeout,
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def close(self) -> None:
        """Close the idle connections of this process."""
        with self._lock:
            pool = self._pools.pop(self._process(), None)
        if pool is not None:
            pool.clear()

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "User-Agent": FIELD_MANAGER}
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


def reason_of(error: BaseException) -> str:
    """What went wrong without what was sent: the kinds of the exception and of its causes, and the system's word."""
    names = [type(error).__name__]
    cause: Any = error.__cause__ or error.__context__
    while cause is not None and len(names) < 4:
        reason = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
        names.append(f"{type(cause).__name__}{f' ({reason})' if isinstance(reason, str) else ''}")
        cause = cause.__cause__ or cause.__context__
    return " from ".join(names)
