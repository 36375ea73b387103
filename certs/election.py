"""One writer among the replicas: the official client's leader election, over a Lease.

The election keeps replicas from working against each other; it keeps nothing safe. Every write is a
compare-and-swap, so that a leader who was paused for too long loses the write, and no more.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import urllib3
from kubernetes.client import ApiClient, CoordinationV1Api
from kubernetes.config import ConfigException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

LEASE_SECONDS: Final = 15
"""How long a leader that has vanished is waited for: the figure of Kubernetes' own components."""

_RENEW_SECONDS: Final = 10
_RETRY_SECONDS: Final = 2

# It says at each renewal that it succeeded.
logging.getLogger("leaderelection").setLevel(logging.WARNING)


class Election:
    """Whether this replica is the one that writes; to be asked more often than every `LEASE_SECONDS`."""

    def __init__(self, client: ApiClient, namespace: str, lease: str, identity: str) -> None:
        # The lock makes a client of its own by the process-wide configuration, which nobody sets here.
        lock: Any = LeaseLock(lease, namespace, identity)  # type: ignore[no-untyped-call]
        lock.api_instance = CoordinationV1Api(client)
        config: Any = electionconfig.Config(  # type: ignore[no-untyped-call]
            lock, LEASE_SECONDS, _RENEW_SECONDS, _RETRY_SECONDS, onstarted_leading=_nothing, onstopped_leading=_nothing
        )
        # One attempt at a time, not its endless loop, which no signal ends and the first broken connection does.
        self._election: Any = leaderelection.LeaderElection(config)  # type: ignore[no-untyped-call]

    def leads(self) -> bool:
        """Renew the Lease, or take it if it is free; whether it is ours now."""
        try:
            return bool(self._election.try_acquire_or_renew())
        except (urllib3.exceptions.HTTPError, OSError, ConfigException):
            return False


def _nothing() -> None:
    """The loop that would call this is not used."""
