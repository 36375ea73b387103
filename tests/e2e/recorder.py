"""Webhooks that allow everything and keep what the API server sent them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.control_plane import ControlPlane
from e2e.objects import Object
from e2e.webhook_servers import allowed, served_webhook

SYSTEM, SERVICE = "webhook-system", "hook"
"""Namespace and name of the Service that they are behind."""

RECORDED, BESIDE = "/recorded", "/beside"
"""The paths of the one whose reviews are wanted, and of another webhook."""


class Recorder:
    """Webhooks that allow everything: what was sent, and the patches that they answer with, one call after another."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = defaultdict(list)
        self.patches: dict[str, list[list[Object]]] = defaultdict(list)

    def answer(self, path: str, body: bytes) -> Object:
        """Keep the review; its answer."""
        path = path.partition("?")[0]
        self.bodies[path].append(body)
        return allowed(body, self.patches[path].pop(0) if self.patches[path] else ())

    def found(self, request: Object) -> list[bytes]:
        """The recorded reviews of the same call."""
        keys = ("operation", "subResource", "name", "namespace", "dryRun")

        def same(body: bytes) -> bool:
            seen = json.loads(body)["request"]
            return all(seen.get(key) == request.get(key) for key in keys)

        return [body for body in self.bodies[RECORDED] if same(body)]

    @contextmanager
    def serving(self, plane: ControlPlane) -> Iterator[int]:
        """Serve with TLS on a free port, which is given."""
        with served_webhook(plane, (SYSTEM, SERVICE), self.answer) as port:
            yield port
