"""`tidb-ha-webhook why`."""

from __future__ import annotations

from typing import Any

import click

from webhook.commands import completion
from webhook.commands.asking import asking, opened


@click.command("why", short_help="Explain one pod: what was decided, why, and what would be now.")
@click.argument("pod", metavar="POD", shell_complete=completion.pods)
@asking
def command(pod: str, **parameters: Any) -> None:
    """Explain one pod: what was decided, on which counts and cap, which nodes were passed over and why, and
    whether it would be decided the same now.

    Works for pods that are pinned, waiting, guarded, left alone, or refused; also for one that its StatefulSet
    should have created and could not. The answer is in the first five lines, the rest is what it rests on.
    Nothing is written.

    Exit code: 0 if the pod could be explained, 2 if nobody knows it or a flag is wrong, 3 if the cluster cannot
    be read.

    \b
      kubectl tidb-ha why db-tikv-1 -n db
      tidb-ha-webhook why db-tikv-1 -n db --cluster dump.yaml
    """
    with opened(parameters) as connection:
        # Here, not above: see webhook/commands/__init__.py.
        from webhook.operating.why import tell
        from webhook.operating.why_page import page_of

        name = pod.removeprefix("pods/").removeprefix("pod/")
        click.echo(page_of(tell(connection, connection.namespace, name)))
