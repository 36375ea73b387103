"""The process that serves: one event loop that owns all sockets, and threads that only ever see whole requests.

gunicorn's own `gthread` worker lets a pool thread wait for the TLS handshake and for the request, so as many
stalled clients as it has threads stop it. Here the loop does all waiting:
handshakes, heads, bodies and the sending of what a client does not take at once. gunicorn keeps what it is good
at: the processes, the parser, the WSGI environment and the answer's headers.

Stopping: SIGTERM makes `draining` true at once (readiness fails). For the drain time everything is served as
before, but each answer says `Connection: close`: an API server goes on using its connections to a terminating
pod, and new ones come until the endpoint is gone everywhere. Then nothing more
is accepted, and what runs may finish.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from socket import socket
from time import monotonic
from types import FrameType
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from webhook.app import RECEIVED_AT
from webhook.errors import WebhookError
from webhook.serving.connections import Connection
from webhook.serving.frontend import Frontend
from webhook.serving.incoming import Answer, Incoming, Refusal
from webhook.serving.limits import Limits
from webhook.serving.mailbox import Mailbox
from webhook.serving.tls import Certificates

_LOG = logging.getLogger(__name__)

# Probes must be answered while every review thread waits for a lock.
_HEALTH_THREADS: Final = 2
# Far more than a kubelet and some scrapers open, far less than the reviews may.
_HEALTH_CONNECTIONS: Final = 100
# Seconds between two looks at time-outs and at the parent, and two signs of life for the master.
_TICK: Final = 1.0

BuildApp = Callable[[], WSGIApplication]
BuildHealth = Callable[[Callable[[], bool], Callable[[], str | None]], WSGIApplication]


@dataclass(frozen=True, slots=True)
class Service:
    """What a worker serves, made before the fork except for the applications, which are built after it."""

    build_app: BuildApp
    """The application for reviews."""

    build_health: BuildHealth
    """The application of the health address, from `draining` and `certificate_problem`."""

    reviews: Iterable[socket]
    health: Iterable[socket]
    certificates: Certificates | None
    """None: plain HTTP."""

    drain_seconds: float
    limits: Limits

    def certificate_problem(self) -> str | None:
        """Why no client would accept our certificate; None if all is well, or if there is no TLS."""
        return self.certificates.certificate_problem() if self.certificates else None


class ReviewWorker(ThreadWorker):  # type: ignore[misc]
    """A gunicorn worker with an event loop of its own."""

    alive: bool
    """False from SIGTERM on; gunicorn then says `Connection: close` in every answer."""

    def init_process(self) -> None:
        """Called by gunicorn after the fork; returns when the process has nothing more to do."""
        self._service: Service = self.app.service
        self._mailbox = Mailbox()
        self._stop_at: float | None = None
        self._asked_by = ""
        self._health_pool = ThreadPoolExecutor(_HEALTH_THREADS, thread_name_prefix="health")
        super().init_process()

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """The threads that decide reviews."""
        return ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="review")

    def load_wsgi(self) -> None:
        """Build the applications; an error of ours ends the server with its text instead of a traceback."""
        try:
            self._app = self._service.build_app()
            self._health_app = self._service.build_health(self._draining, self._service.certificate_problem)
        except WebhookError as error:
            _LOG.error("%s", error)
            raise SystemExit(Arbiter.APP_LOAD_ERROR) from error
        self.wsgi = _route

    def handle_exit(self, number: int, _frame: FrameType | None) -> None:
        """SIGTERM: begin to drain. Only the master counts signals, since a process group may get each one twice."""
        if self.alive:
            self._asked_by = signal.Signals(number).name
            self._stop_at = monotonic() + self._service.drain_seconds
            self.alive = False
            self._mailbox.wake()

    def handle_quit(self, number: int, frame: FrameType | None) -> None:
        """SIGINT, which a terminal sends to the whole group: as SIGTERM. SIGQUIT: end at once, whatever runs."""
        if number == signal.SIGINT:
            self.handle_exit(number, frame)
            return
        os._exit(0)

    def run(self) -> None:
        """Serve until SIGTERM, then drain."""
        self.poller.register(self._mailbox, EVENT_READ, self._mailbox.deliver)
        limits = self._service.limits
        context = self._service.certificates.context if self._service.certificates else None
        reviews = self._frontend(self._service.reviews, limits, self.tpool, self._app, context)
        few = replace(limits, connections=min(limits.connections, _HEALTH_CONNECTIONS))
        health = self._frontend(self._service.health, few, self._health_pool, self._health_app, None)
        self._serve(reviews, health)
        self._finish(reviews, health)
        for frontend in (reviews, health):
            frontend.close()
        for pool in (self.tpool, self._health_pool):
            pool.shutdown(wait=False)

    def _frontend(
        self,
        listeners: Iterable[socket],
        limits: Limits,
        pool: ThreadPoolExecutor,
        application: WSGIApplication,
        context: Any,
    ) -> Frontend:
        run = partial(self._submit, pool, application)
        return Frontend(listeners, self.poller, limits, run, context, self.cfg)

    def _serve(self, *frontends: Frontend) -> None:
        while self.alive:
            self._turn(frontends, _TICK)
            if os.getppid() != self.ppid:
                _LOG.error("the master process has gone; stopping")
                return
        _LOG.info(
            "%s: no longer ready; serving on for %g s, closing connections; a second signal ends it at once",
            self._asked_by,
            self._service.drain_seconds,
        )
        while (left := (self._stop_at or 0.0) - monotonic()) > 0:
            self._turn(frontends, min(left, _TICK))

    def _finish(self, reviews: Frontend, health: Frontend) -> None:
        self.alive = False
        reviews.stop_accepting()
        until = monotonic() + self._service.limits.finish
        while reviews.busy and monotonic() < until:
            self._turn((reviews, health), min(self._service.limits.linger, _TICK))
        _LOG.info("stopped%s", " with requests unfinished" if reviews.busy else "")

    def _turn(self, frontends: Iterable[Frontend], timeout: float) -> None:
        self.notify()
        for key, _events in self.poller.select(timeout):
            key.data()
        for frontend in frontends:
            frontend.cut_overdue()

    def _draining(self) -> bool:
        return not self.alive

    # --- from the loop to a thread and back

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        application: WSGIApplication,
        frontend: Frontend,
        connection: Connection,
        incoming: Incoming,
    ) -> None:
        future = pool.submit(self._answer, application, connection, incoming)
        future.add_done_callback(lambda done: self._mailbox.put(partial(self._answered, frontend, connection, done)))

    def _answer(self, application: WSGIApplication, connection: Connection, incoming: Incoming) -> None:
        """Runs in a thread, which has the connection to itself."""
        answer = Answer(connection.client, connection.server, application, connection.received_at)
        connection.keep = bool(self.handle_request(incoming.message, answer))
        connection.unsent = bytes(answer.data)
        # At once, not after the loop's turn; what goes wrong here goes wrong again there, and is handled there.
        with contextlib.suppress(OSError):
            connection.send()

    def _answered(self, frontend: Frontend, connection: Connection, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            _LOG.error("the application failed", exc_info=error)
            refusal = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the server's log has it")
            connection.unsent, connection.keep = refusal.answer(), False
        frontend.finish(connection)


def _route(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Call the application of the address that the request came in at."""
    answer: Answer = environ["gunicorn.socket"]
    environ[RECEIVED_AT] = answer.received_at
    return answer.application(environ, start_response)
