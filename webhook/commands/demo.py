"""`tidb-ha-webhook demo`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from webhook.commands.parameters import remember_variable
from webhook.settings import variable

_NAME = "tidb-ha-webhook"


@click.command("demo", short_help="Replay the incident that this product is for.")
@click.option(
    "--emptiest",
    metavar="NODE",
    envvar=variable("emptiest"),
    show_envvar=True,
    callback=remember_variable,
    help="Make another of the six nodes the emptiest: both tables follow.  [default: the one of the report]",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    envvar=variable("keep"),
    show_envvar=True,
    callback=remember_variable,
    help="Leave the replay's dump, StatefulSets and reviews there, to go on with serve and plan. A file that is "
    "there and holds anything else is never overwritten.",
)
@click.pass_context
def command(context: click.Context, emptiest: str | None, keep: Path | None) -> None:
    """Replay pingcap/tidb-operator#264 on an embedded cluster, without and with the webhook.

    Needs no cluster, and changes nothing outside this process: the webhook's server listens on a loopback port
    that the system chooses, with a certificate that is thrown away.

    Exit code: 0 only if what the webhook answered is HA-safe, found by counting, else 1.
    """
    # Here, not above: see webhook/commands/__init__.py.
    from webhook.demo import show

    context.exit(show.run(emptiest, keep, program=program()))


def program(python: str = sys.executable) -> str:
    """What to type to run this program: its name, or its path where the shell does not find it (`make demo`)."""
    path = Path(python).with_name(_NAME)
    return _NAME if shutil.which(_NAME) or not path.exists() else os.path.relpath(path)
