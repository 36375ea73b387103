"""What the keeper asks of an API server, as values and a Protocol.

The objects are one Secret, one MutatingWebhookConfiguration, and a ConfigMap that is never stored: the observed
call. A write carries the resourceVersion that was read, so that a writer who is late fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Protocol


class ClusterError(Exception):
    """A call failed; `status` is its HTTP status, None if no answer came. The text is fit for a user."""

    def __init__(self, what: str, status: int | None, detail: str) -> None:
        super().__init__(f"{what}: {status or 'no answer'} {detail}".strip())
        self.status = status
        self.detail = detail

    @property
    def lost(self) -> bool:
        """Somebody else was faster: the object was changed, made or deleted since it was read."""
        return self.status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Target:
    """The objects of one release; all but the configuration are in its namespace.

    The name of the Service is also the value by which the configuration knows a probe.
    """

    namespace: str
    configuration: str
    secret: str
    lease: str
    service: str


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """The Secret as it was read; `data` as the API has it, base64."""

    version: str
    data: Mapping[str, Any]
    rotate: bool


@dataclass(frozen=True, slots=True)
class Published:
    """The configuration as it was read: each entry's name and bundle, in order.

    `mode`: who makes the certificate now; "" where it does not say so.
    """

    version: str
    entries: tuple[tuple[str, bytes], ...]
    mode: str = ""


class Sighting(StrEnum):
    """What an observed call met."""

    MET = "met"
    OTHER = "other"
    DISTRUSTED = "distrusted"
    UNANSWERED = "unanswered"


class Cluster(Protocol):
    """What the keeper needs of an API server. Every call raises `ClusterError`."""

    def secret(self) -> StoredSecret | None:
        """The Secret."""

    def create_secret(self, data: Mapping[str, str | None]) -> None:
        """Make the Secret."""

    def change_secret(self, version: str, data: Mapping[str, str | None], *, rotated: bool) -> None:
        """Write these names of the Secret of that version; `rotated`: take the request for a new CA away."""

    def configuration(self) -> Published | None:
        """The configuration."""

    def publish(self, published: Published, bundle: bytes) -> None:
        """Write the bundle into every entry of the configuration of that version."""

    def probe(self, fingerprint: str) -> Sighting:
        """Make a call through the API server that the probe answers; whether it met that certificate."""
