"""`tidb-ha-webhook simulate`."""

from __future__ import annotations

from typing import Any

import click

from webhook.commands import completion
from webhook.commands.asking import asking, assume_isolation, opened, text_or_json


@click.command("simulate", short_help="Scale, lose nodes or zones, add nodes, on a copy; show what becomes of it.")
@click.argument("steps", metavar="STEP...", nargs=-1, required=True, shell_complete=completion.steps)
@assume_isolation
@text_or_json
@asking
@click.pass_context
def command(
    ctx: click.Context, /, steps: tuple[str, ...], assume_isolation: bool, output: str, **parameters: Any
) -> None:
    """Show what would become of the groups if they were scaled, or if nodes or zones were lost or added: where each
    pod would go, and what each group survives after each step.

    \b
    Steps are taken in the order given:
      scale:[NAMESPACE/]NAME=REPLICAS  a StatefulSet, or a group object of tidb-operator v2
      lose-node:NODE[,NODE…]           nodes are lost for good, with what runs there
      lose-zone:ZONE                   all nodes of a zone (label topology.kubernetes.io/zone)
      add-nodes:COUNT[@ZONE]           nodes like those that members run on; it says which

    All happens on a copy in memory; nothing is written. The webhook's own rule decides. Owners, scheduler and rescue
    are played simply: what is lost is created again at once, what is pinned runs, and what waits is decided on anew
    after each step. Local volumes are bound, volumes that a driver would make follow their pods. Members that are
    scaled in are taken to leave one at a time, and to hand over what they hold where enough are left for it.

    Exit code: 0 if no quorum and no data is lost in any step and nobody waits at the end, else 1; 2 for a step that
    is wrong, 3 if the cluster cannot be read.

    \b
      kubectl tidb-ha simulate scale:db/db-tikv=6 lose-zone:eu-1a
      tidb-ha-webhook simulate --cluster dump.yaml lose-node:node-7 add-nodes:1
    """
    with opened(parameters) as connection:
        # Here, not above: see webhook/commands/__init__.py.
        from webhook.operating.simulating import text
        from webhook.operating.simulating.run import is_safe, simulate
        from webhook.operating.simulating.steps import step_from

        notes: list[str] = []
        taken = [step_from(step, connection.namespace) for step in steps]
        stages = tuple(simulate(connection, taken, notes, assume_isolation=assume_isolation))
        for note in notes:
            click.echo(f"Note: {note}", err=True)
        click.echo(text.as_json(stages) if output == "json" else "\n".join(text.lines_of(stages)))
    ctx.exit(0 if is_safe(stages) else 1)
