"""`python -m certs run`: the keeper with its probe and health servers, until SIGTERM."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Final

from kubernetes.client import Configuration

from certs.api import ApiCluster
from certs.authority import Pair
from certs.cluster import Target
from certs.figures import Figures, health_application, health_server
from certs.keeper import Keeper, Surroundings
from certs.probe import ProbeServer
from certs.state import Mode, Plan
from leases.election import Election

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How this replica runs; `interval`: seconds between two looks, at most two thirds of a Lease.

    `given`: the CAs of whoever else makes the certificate, None where we do; there is no probe then.
    """

    directory: Path
    probe_port: int
    health_port: int
    interval: float
    given: Callable[[], tuple[bytes, ...] | None] = lambda: None


def run(configuration: Configuration, target: Target, plan: Plan, options: Options) -> None:
    """Keep the certificates until SIGTERM or SIGINT. Raises OSError if a port cannot be had."""
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ended.set())
    figures = Figures()
    probe = ProbeServer(options.probe_port) if plan.mode is Mode.SELF_MANAGED else None
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    election = Election(
        configuration, target.namespace, target.lease, identity, leaderless="nobody keeps the certificates"
    )
    surroundings = Surroundings(
        cluster=ApiCluster(configuration, target),
        leads=election.leads,
        present=_nobody if probe is None else probe.present,
        clock=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        given=options.given,
    )
    keeper = Keeper(surroundings, plan, options.directory, figures)
    health = health_server(options.health_port, health_application(figures, keeper.problem, keeper.started))
    Thread(target=health.serve_forever, daemon=True).start()
    if probe is not None:
        probe.start()
    _LOG.info("keeps what is trusted for %s (mode %s), as %s", plan.names[-1], plan.mode, identity)
    while True:
        keeper.look()
        if ended.wait(options.interval):
            break
    if probe is not None:
        probe.stop()
    health.shutdown()
    health.server_close()


def _nobody(_pair: Pair) -> None:
    """There is no probe to show a pair at."""
