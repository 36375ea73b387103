"""Serving HTTPS: gunicorn's processes around our worker, configured in code.

Health answers come from the workers, not from the master: an address that all of them listen on, served by the
same event loop as the reviews, so that `/livez` is answered exactly as long as reviews can be. SIGTERM reaches all
workers at once, so whichever answers knows that the server drains; a worker that is being replaced leaves the
probe to the others, or, if it is the only one, lets it wait. A master with a thread of its own would be forked
with locks held; a process of its own would know nothing of the workers.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import tempfile
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from socket import socket
from types import FrameType
from typing import Any, Final

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from webhook.errors import SettingsError
from webhook.serving.limits import Limits
from webhook.serving.listeners import open_listeners, url_of
from webhook.serving.tls import Certificates
from webhook.serving.worker import BuildApp, BuildHealth, ReviewWorker, Service
from webhook.settings import Settings

_LOG = logging.getLogger(__name__)

_NAME: Final = "tidb-ha-webhook"
# Seconds the master waits for a worker beyond what the worker allows itself, before it kills it.
_MASTER_PATIENCE: Final = 5.0
# File descriptors for everything that is not a client: libraries, watches, calls to the API server.
_OTHER_FILES: Final = 256
# In memory if possible: the root may be read-only, and disks can block.
_HEARTBEAT_DIRECTORIES: Final = (Path("/dev/shm"), Path("/tmp"))  # noqa: S108 - the file has no name
_ENDING: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})


def serve(
    settings: Settings,
    build_app: BuildApp,
    build_health: BuildHealth,
    *,
    limits: Limits | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT, then drain; returns the exit code, 0 after an ordered end.

    `build_app()` and `build_health(draining, certificate_problem)` are called in each worker, after the fork, and
    return WSGI applications; a `WebhookError` of theirs ends the server with that line and code 4.
    Raises `SettingsError` for a certificate or an address that cannot be used.

    In a worker this function does not return: it leaves by `SystemExit`. Do not catch that around it.
    """
    limits = limits or Limits()
    certificates = _certificates(settings)
    reviews = open_listeners(settings.bind, "--bind")
    health = open_listeners(settings.health_bind, "--health-bind")
    _allow_files(limits.connections)
    service = Service(build_app, build_health, reviews, health, certificates, settings.drain_seconds, limits)
    _announce(service)
    options = _options(settings, limits)
    master = os.getpid()
    code: object = 0
    try:
        _Master(_Application(service, options), [*reviews, *health]).run()
    except SystemExit as end:
        if os.getpid() != master:
            raise  # a worker; whatever follows serve() is not for it
        code = end.code
    return code if isinstance(code, int) else 0


def _certificates(settings: Settings) -> Certificates | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Certificates(settings.tls_cert, settings.tls_key)


def _announce(service: Service) -> None:
    scheme = "https" if service.certificates else "http"
    if not service.certificates:
        _LOG.warning("no --tls-cert and --tls-key: plain HTTP, which only this machine can reach")
    _LOG.info(
        "reviews at %s, health at %s",
        " and ".join(url_of(listener, scheme) for listener in service.reviews),
        " and ".join(url_of(listener, "http") for listener in service.health),
    )


def _options(settings: Settings, limits: Limits) -> Mapping[str, Any]:
    """gunicorn's settings; those that its version does not have are left out."""
    options: dict[str, Any] = {
        "worker_class": ReviewWorker,
        "workers": settings.workers,
        "threads": settings.threads,
        # gunicorn closes kept-alive connections when more than connections - threads are idle; we count ourselves.
        "worker_connections": limits.connections + settings.threads,
        "keepalive": ceil(limits.idle),
        "graceful_timeout": ceil(settings.drain_seconds + limits.finish + _MASTER_PATIENCE),
        "worker_tmp_dir": str(heartbeat_directory(_HEARTBEAT_DIRECTORIES)),
        "control_socket_disable": True,
        "proc_name": _NAME,
        "logger_class": _Log,
        "loglevel": "warning",
        "accesslog": None,
        "sendfile": False,
        # No proxy stands between the API server and us: nobody's X-Forwarded-… counts.
        "forwarded_allow_ips": "",
    }
    if settings.tls:
        # For `wsgi.url_scheme` only; gunicorn never opens the files.
        options |= {"certfile": str(settings.tls_cert), "keyfile": str(settings.tls_key)}
    return options


def heartbeat_directory(candidates: Sequence[Path]) -> Path:
    """The first directory that can be written to; raises `SettingsError` if there is none.

    Workers touch a file there to show that they live.
    """
    for directory in candidates:
        with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=directory):
            return directory
    raise SettingsError(
        f"none of {', '.join(map(str, candidates))} can be written to; mount an empty volume at one of them"
    )


def _allow_files(connections: int) -> None:
    """Raise this process's own limit of open files to what the connections need, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


class _Application(BaseApplication):  # type: ignore[misc]
    """gunicorn's view of what is served."""

    def __init__(self, service: Service, options: Mapping[str, Any]) -> None:
        self.service = service
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn, again on SIGHUP."""
        for name, value in self._options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> None:
        """Called by gunicorn's own workers; ours builds its applications itself."""


class _Master(Arbiter):  # type: ignore[misc]
    """gunicorn's master, with listeners that are open already, and an end that can be hurried."""

    def __init__(self, application: _Application, listeners: Sequence[socket]) -> None:
        self._ending = False
        super().__init__(application)
        self.LISTENERS = list(listeners)

    def signal(self, sig: int, frame: FrameType | None) -> None:
        """Called for every signal; the second one that asks for the end gets it at once."""
        if sig in _ENDING and self._ending:
            for pid in list(self.WORKERS):
                self.kill_worker(pid, signal.SIGQUIT)
        self._ending = self._ending or sig in _ENDING
        super().signal(sig, frame)

    def handle_int(self) -> None:
        """Called by gunicorn for SIGINT, which would not let the workers drain: as for SIGTERM."""
        self.handle_term()


class _Log(Logger):  # type: ignore[misc]
    """gunicorn's log lines, in the format and to the place of all others."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
