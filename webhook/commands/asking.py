"""What the commands that only ask have in common: which cluster, which namespace, and how trouble is told."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click

from webhook import logs
from webhook.commands import completion
from webhook.commands.parameters import SECONDS, cluster_source, output_as, setting, together
from webhook.settings import LogFormat, Settings, settings_from, variable

if TYPE_CHECKING:
    from webhook.operating.connecting import Connection

TIMEOUT: Final = 30.0

namespace = click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    envvar=variable("namespace"),
    show_envvar=True,
    help="The namespace.",
    shell_complete=completion.namespaces,
    show_default="the context's",
)

# Which cluster, and by which settings it is judged.
which_cluster = together(
    cluster_source,
    click.option(
        "--context",
        default=None,
        metavar="NAME",
        envvar=variable("context"),
        show_envvar=True,
        help="The context of the kubeconfig.",
        shell_complete=completion.contexts,
        show_default="the current one",
    ),
    click.option(
        "--timeout",
        type=SECONDS,
        default=TIMEOUT,
        envvar=variable("timeout"),
        show_envvar=True,
        show_default=f"{TIMEOUT:g} s",
        help="Give up after so long.",
    ),
    setting(
        "--expiry",
        type=SECONDS,
        help="As for serve: when an answer whose pod never appeared is over.",
    ),
    setting(
        "--other-schedulers",
        multiple=True,
        metavar="NAME[,NAME…]",
        help="As for serve: scheduler names whose pods are never pinned.",
        show_default="none",
    ),
)

asking = together(namespace, which_cluster)

assume_isolation = click.option(
    "--assume-isolation",
    is_flag=True,
    envvar=variable("assume_isolation"),
    show_envvar=True,
    help="Take it that PD keeps the copies of data apart by host (or zone) where its location-labels are not known.",
)

text_or_json = output_as("text", "json", help="Text, or JSON.")


@contextmanager
def opened(parameters: Mapping[str, Any], *, quiet: bool = False) -> Iterator[Connection]:
    """The cluster that the flags name; what cannot be read in the block becomes a sentence and exit code 3.

    `quiet`: nothing is said of what the cluster lacks.
    """
    logs.configure(LogFormat.TEXT, level=logging.ERROR)
    known = {field.name for field in fields(Settings)}
    settings = settings_from({name: value for name, value in parameters.items() if name in known}, os.environ)

    # Here, not above: see webhook/commands/__init__.py.
    from webhook.operating.connecting import connect
    from webhook.operating.failures import in_words

    with in_words(settings):
        connection = connect(
            settings,
            context=parameters.get("context"),
            namespace=parameters.get("namespace") or "",
            timeout=parameters["timeout"],
        )
        for note in () if quiet else connection.notes:
            click.echo(f"Note: {note}", err=True)
        yield connection
