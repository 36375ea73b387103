"""`python -m certs run`: the keeper with its probe and health servers, until SIGTERM."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Final

from kubernetes.client import Configuration

from certs.api import ApiCluster
from certs.calls import TimedApiClient
from certs.cluster import Target
from certs.election import Election
from certs.figures import Figures, health_application, health_server
from certs.keeper import Keeper, Surroundings
from certs.probe import ProbeServer
from certs.state import Plan

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How this replica runs; `interval`: seconds between two looks, at most two thirds of a Lease."""

    directory: Path
    probe_port: int
    health_port: int
    interval: float


def run(configuration: Configuration, target: Target, plan: Plan, options: Options) -> None:
    """Keep the certificates until SIGTERM or SIGINT. Raises OSError if a port cannot be had."""
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ended.set())
    figures, probe = Figures(), ProbeServer(options.probe_port)
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    election = Election(TimedApiClient(configuration), target.namespace, target.lease, identity)
    surroundings = Surroundings(
        cluster=ApiCluster(configuration, target),
        leads=election.leads,
        present=probe.present,
        clock=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
    )
    keeper = Keeper(surroundings, plan, options.directory, figures)
    health = health_server(options.health_port, health_application(figures, keeper.problem, keeper.started))
    Thread(target=health.serve_forever, daemon=True).start()
    probe.start()
    _LOG.info("keeps the certificates of %s for %s", plan.names[2], identity)
    while True:
        keeper.look()
        if ended.wait(options.interval):
            break
    probe.stop()
    health.shutdown()
    health.server_close()
