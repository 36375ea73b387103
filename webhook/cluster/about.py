"""What an API server says of itself, beside the objects that it keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import urllib3
from kubernetes.client import Configuration

from webhook.cluster.answers import Answer, Call, manifest_of
from webhook.cluster.connections import NO_ANSWER, Connections, reason_of
from webhook.cluster.patience import Patience


class ServerAbout:
    """Asks an API server for its version."""

    def __init__(self, configuration: Configuration, patience: Patience) -> None:
        self._patience = patience
        self._connections = Connections(configuration, pool_size=1, verify_strict=True, process=os.getpid)

    def version(self, timeout: float) -> Mapping[str, Any]:
        """`major`, `minor` and `gitVersion` as the server has them. Raises `errors.ApiError`."""
        return self._patience.ask(self._version, timeout)

    def _version(self, timeout: float) -> Mapping[str, Any]:
        call = Call("get", "version")
        try:
            with closing(self._connections.request("GET", "/version", urllib3.Timeout(total=timeout))) as response:
                answer = Answer(response.status, response.headers, response.read())
        except NO_ANSWER as error:
            raise call.unknown(reason_of(error)) from None
        return manifest_of(call, answer)
