"""HTTP calls to an API server: JSON over the official client's connections, timed, made once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException

from certs.cluster import ClusterError

USER_AGENT: Final = "tidb-ha-webhook-certs"

TIMEOUT: Final = 10.0
"""Seconds for one call: an observed call waits for a webhook of 5 s."""

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class Caller:
    """Calls with the credentials of a client configuration."""

    def __init__(self, configuration: Configuration) -> None:
        configuration.retries = False
        self._configuration = configuration
        self._pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager

    def call(
        self, what: str, method: str, path: str, body: object = None, content_type: str = JSON, **query: str
    ) -> dict[str, Any]:
        """One call; `what` names it in the `ClusterError` that it may raise."""
        target = f"{self._configuration.host}{path}{'?' + urlencode(query) if query else ''}"
        try:
            answer = self._pool.request(
                method,
                target,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers(content_type),
                timeout=TIMEOUT,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ConfigException) as error:
            raise ClusterError(what, None, type(error).__name__) from None
        return _decoded(what, answer)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content_type, "User-Agent": USER_AGENT}
        settings: Mapping[str, Any] = dict(self._configuration.auth_settings())
        return headers | {setting["key"]: setting["value"] for setting in settings.values()}


def _decoded(what: str, answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    try:
        decoded = json.loads(answer.data)
    except ValueError:
        decoded = None
    if answer.status >= HTTPStatus.BAD_REQUEST:
        message = decoded.get("message") if isinstance(decoded, dict) else None
        raise ClusterError(what, answer.status, str(message or answer.reason or ""))
    if not isinstance(decoded, dict):
        raise ClusterError(what, answer.status, "the answer is no object")
    return decoded
