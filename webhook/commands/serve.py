"""`tidb-ha-webhook serve`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import click

from webhook import logs
from webhook.commands import variables
from webhook.commands.parameters import SECONDS, cluster_source, setting, together
from webhook.settings import BIND_WITH_TLS, HEALTH_BIND_WITH_TLS, LogFormat, Settings, settings_from

logger = logging.getLogger(__name__)

_addresses = together(
    setting(
        "--bind",
        default=None,
        metavar="HOST:PORT",
        help="Address of POST /mutate; without HOST all interfaces. Loopback only without TLS files.",
        show_default=f"{Settings().bind}; {BIND_WITH_TLS} with TLS files",
    ),
    setting(
        "--health-bind",
        default=None,
        metavar="HOST:PORT",
        help="Address of /livez, /readyz and /metrics, plain HTTP.",
        show_default=f"{Settings().health_bind}; {HEALTH_BIND_WITH_TLS} with TLS files",
    ),
    setting(
        "--tls-cert",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="PEM file of the certificate chain, read again when it changes. Without it: plain HTTP.",
    ),
    setting(
        "--tls-key",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="PEM file of the certificate's private key.",
    ),
)

_process = together(
    setting("--workers", type=int, help="Processes that serve; one keeps all queues together."),
    setting("--threads", type=int, help="Threads per worker; at most half of them wait for one group."),
    setting(
        "--drain-seconds",
        type=SECONDS,
        help="How long to serve on after SIGTERM, not ready, before running requests are finished.",
    ),
    setting(
        "--log-format",
        type=click.Choice([form.value for form in LogFormat]),
        default=Settings().log_format.value,
        help="Form of the log lines on standard error.",
    ),
)

_protocol = together(
    setting(
        "--expiry",
        type=SECONDS,
        help="When an answer whose pod never appeared is over: the API server's --request-timeout "
        "plus --clock-allowance.",
    ),
    setting(
        "--clock-allowance",
        type=SECONDS,
        help="How far the clocks of several API servers may be apart.",
    ),
    setting(
        "--budget-margin",
        type=SECONDS,
        help="What is kept back of the API server's time-out, so that an answer is never late.",
    ),
    setting(
        "--other-schedulers",
        multiple=True,
        metavar="NAME[,NAME…]",
        help="Scheduler names whose pods are kept apart but never pinned. May be repeated.",
        show_default="none",
    ),
)

_controller = together(
    setting(
        "--controller",
        is_flag=True,
        help="Also free pods that were placed and cannot run there any more, and guarded ones for which there is a "
        "place by now; one replica at a time does it.",
    ),
    setting(
        "--controller-namespace",
        metavar="NAME",
        help="Namespace of the Lease by which one replica leads the controller.",
        show_default="that of the pod this runs in",
    ),
    setting("--controller-lease", metavar="NAME", help="Name of that Lease."),
    setting(
        "--controller-configuration",
        metavar="NAME",
        help="Name of the MutatingWebhookConfiguration: the controller frees no pod that nobody would ask about.",
        show_default="it is not looked at",
    ),
)


@click.command("serve", short_help="Serve the webhook.")
@_addresses
@cluster_source
@_process
@_protocol
@_controller
@click.pass_context
def command(context: click.Context, /, **parameters: Any) -> None:
    """Serve the webhook until SIGTERM or Ctrl-C.

    Pods of TiKV and PD that an API server asks about at POST /mutate are pinned to a node that keeps
    the component HA-safe, or guarded so that they wait rather than stack.

    Lengths of time are seconds (90) or durations (90s, 1m30s). A flag goes before its environment
    variable, which goes before the default.

    Exit code: 0 after SIGTERM or Ctrl-C (the first drains, a second ends it at once), 1 if the dump cannot be used,
    2 for a wrong flag, variable or address, 4 if a worker could not start, 130 for Ctrl-C before it serves.

    \b
    Try it on a dump, without a cluster:
      tidb-ha-webhook serve --cluster dump.yaml --log-format text
    """
    settings = settings_from(parameters, os.environ)
    logs.configure(settings.log_format)
    for sentence in variables.unknown(os.environ, variables.known_to(context.find_root().command)):
        logger.warning("%s", sentence)
    logger.info("works on %s", settings.describe_source())

    # Here, not above: see webhook/commands/__init__.py.
    from webhook import wiring

    context.exit(wiring.run(settings))
