"""An API server's side of the conversation: AdmissionReviews over HTTPS, several at the same moment."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from itertools import repeat
from threading import Barrier
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from webhook.cluster.door import Manifest
from webhook.demo.server import DemoError, Endpoint

# Seconds; the API server's own default, which it also tells the webhook.
TIMEOUT = 10.0
_PATH = f"/mutate?timeout={TIMEOUT:g}s"


@dataclass(frozen=True, slots=True)
class Reply:
    """An AdmissionReview with its response, and the seconds that it took."""

    answer: dict[str, Any]
    seconds: float


class Client:
    """Sends reviews to the webhook. Raises DemoError for anything but an answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url)
        self._address = str(parts.hostname), int(parts.port or 443)
        self._trust = ssl.create_default_context(cafile=str(endpoint.certificate))

    def ask(self, reviews: Sequence[Manifest]) -> list[Reply]:
        """Send the reviews at the same moment, each on a connection of its own; the answers in their order."""
        together = Barrier(len(reviews))
        pool = ThreadPoolExecutor(len(reviews), thread_name_prefix="API server")
        try:
            with ExitStack() as stack:
                connections = [stack.enter_context(closing(self._connected())) for _ in reviews]
                return list(pool.map(_send, connections, reviews, repeat(together)))
        except (OSError, HTTPException, ValueError) as error:
            raise DemoError(f"the webhook did not answer: {error!r}") from error
        finally:
            # Not waited for: after Ctrl-C the server is ended, and with it what they wait for.
            pool.shutdown(wait=False, cancel_futures=True)

    def _connected(self) -> HTTPSConnection:
        host, port = self._address
        connection = HTTPSConnection(host, port, timeout=TIMEOUT, context=self._trust)
        connection.connect()
        return connection


def _send(connection: HTTPSConnection, review: Manifest, together: Barrier) -> Reply:
    body = json.dumps(review)
    together.wait()
    begun = perf_counter()
    connection.request("POST", _PATH, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != HTTPStatus.OK:
        raise HTTPException(f"HTTP status {response.status}: {answer[:200]!r}")
    return Reply(json.loads(answer), perf_counter() - begun)
