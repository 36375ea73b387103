"""Reads of one request: a door and the deadline that every call's timeout is cut from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from webhook.cluster.door import Door, Listing, Manifest, Resource
from webhook.deadline import Deadline
from webhook.errors import NotFound, OutOfTime

STALE: Final = "0"
"""The resourceVersion of a LIST that may be answered from a cache; good for hints, never for members."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Calls raise `errors.ApiError`, or OutOfTime when nothing is left of the deadline."""

    door: Door
    deadline: Deadline

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        resource_version: str = "",
    ) -> Listing:
        """List objects, consistently unless `resource_version` is STALE."""
        return self.door.list(
            resource,
            namespace=namespace,
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            timeout=time_left(self.deadline),
        )

    def scan(self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "") -> None:
        """Visit all objects, consistently unless `resource_version` is STALE."""
        self.door.scan(resource, visit, resource_version=resource_version, timeout=time_left(self.deadline))

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Manifest:
        """Read an object that must be there."""
        return self.door.get(resource, name, namespace=namespace, timeout=time_left(self.deadline))

    def find(self, resource: Resource, name: str, *, namespace: str = "") -> Manifest | None:
        """Read an object that may be missing, or whose kind may not be served."""
        try:
            return self.get(resource, name, namespace=namespace)
        except NotFound:
            return None


def time_left(deadline: Deadline, *, at_least: float = 0.0) -> float:
    """The seconds left, for a call's timeout. Raises OutOfTime if none are, or fewer than `at_least`."""
    left = deadline.left()
    if left <= 0 or left < at_least:
        raise OutOfTime(f"{left:.1f} s of the budget are left; nothing was sent")
    return left
