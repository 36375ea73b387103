"""Who leads: the official client's leader election, over a Lease.

It keeps replicas from doing the same work; nothing is kept safe by it. Every write of a leader has preconditions, so
that one who was paused for too long loses the write, and no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes.client import ApiClient, ApiException, Configuration, CoordinationV1Api
from kubernetes.config import ConfigException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

logger = logging.getLogger(__name__)

LEASE_SECONDS: Final = 15
"""How long a leader that has vanished is waited for: the figure of Kubernetes' own components."""

_RENEW_SECONDS: Final = 10
_RETRY_SECONDS: Final = 2
# A call's time-out (s); the client has none of its own.
_TIMEOUT: Final = 5.0
# No Lease yet, and another one was first: both belong to an election.
_USUAL: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)

# It says at each renewal that it succeeded.
logging.getLogger("leaderelection").setLevel(logging.WARNING)


class Election:
    """Whether this process leads; to be asked more often than every `LEASE_SECONDS`."""

    def __init__(
        self, configuration: Configuration, namespace: str, name: str, identity: str, *, leaderless: str
    ) -> None:
        """`identity` is this process's own; the Lease is `name` in `namespace`, and made if it is not there.

        `leaderless` says in the log what it means that the Lease cannot be asked for.
        """
        configuration.retries = False
        # The lock makes a client of its own by the process-wide configuration, which nobody sets here.
        lock: Any = LeaseLock(name, namespace, identity)  # type: ignore[no-untyped-call]
        self._client = ApiClient(configuration)
        self._leases = lock.api_instance = _Leases(self._client)
        config: Any = electionconfig.Config(  # type: ignore[no-untyped-call]
            lock, LEASE_SECONDS, _RENEW_SECONDS, _RETRY_SECONDS, onstarted_leading=_nothing, onstopped_leading=_nothing
        )
        # One attempt at a time, not its endless loop, which no signal ends and the first broken connection does.
        self._election: Any = leaderelection.LeaderElection(config)  # type: ignore[no-untyped-call]
        self._where = f"Lease {namespace}/{name}"
        self._leaderless = leaderless
        self._problem = ""

    def leads(self) -> bool:
        """Renew the Lease, or take it if it is free; whether it is ours now."""
        self._leases.problem = ""
        try:
            leads = bool(self._election.try_acquire_or_renew())
        except (urllib3.exceptions.HTTPError, OSError, ConfigException) as error:
            leads, self._leases.problem = False, type(error).__name__
        if self._leases.problem not in ("", self._problem):
            logger.warning("%s: %s; %s", self._where, self._leases.problem, self._leaderless)
        self._problem = self._leases.problem
        return leads

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]


class _Leases:
    """The three calls of an election, each with a time-out; `problem` is what the last of them met, "" for nothing.

    The election passes over what goes wrong in silence.
    """

    def __init__(self, client: ApiClient) -> None:
        self._api = CoordinationV1Api(client)
        self.problem = ""

    def read_namespaced_lease(self, name: str, namespace: str) -> Any:
        return self._timed(self._api.read_namespaced_lease, name, namespace)

    def create_namespaced_lease(self, namespace: str, body: Any) -> Any:
        return self._timed(self._api.create_namespaced_lease, namespace, body)

    def replace_namespaced_lease(self, *, name: str, namespace: str, body: Any) -> Any:
        return self._timed(self._api.replace_namespaced_lease, name, namespace, body)

    def _timed(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments, _request_timeout=_TIMEOUT)
        except ApiException as error:
            if error.status not in _USUAL:
                self.problem = f"{error.status} {error.reason}"
            raise


def _nothing() -> None:
    """The loop that would call this is not used."""
