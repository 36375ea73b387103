"""`tidb-ha-webhook can-drain`."""

from __future__ import annotations

from typing import Any

import click

from webhook.commands import completion
from webhook.commands.asking import assume_isolation, opened, text_or_json, which_cluster
from webhook.settings import variable


@click.command("can-drain", short_help="Say whether nodes, or a zone, can be lost now.")
@click.argument("nodes", metavar="[NODE]...", nargs=-1, shell_complete=completion.nodes)
@click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="NAME",
    envvar=variable("zone"),
    show_envvar=True,
    help="Also all nodes of this zone (label topology.kubernetes.io/zone). May be repeated.",
    show_default="none",
    shell_complete=completion.zones,
)
@assume_isolation
@text_or_json
@which_cluster
@click.pass_context
def command(
    ctx: click.Context,
    /,
    nodes: tuple[str, ...],
    zones: tuple[str, ...],
    assume_isolation: bool,
    output: str,
    **parameters: Any,
) -> None:
    """Say whether losing these nodes, all at once and now, would break the quorum or the data of any group.

    What does not run now counts as lost already, and its data on these nodes as a copy that goes. "No" also where it
    cannot be known: of TiKV, where more stores go than copies may, and PD's location-labels are not known to keep
    copies apart. Whether the members find a place elsewhere is another question: see simulate.

    Exit code: 0 if nothing would break, 1 if something would, or might; 2 for a node or zone that is not there, or
    a wrong flag; 3 if the cluster cannot be read.

    \b
      kubectl tidb-ha can-drain node-7 && kubectl drain node-7 --ignore-daemonsets
      kubectl tidb-ha can-drain --zone eu-1a
    """
    with opened(parameters) as connection:
        # Here, not above: see webhook/commands/__init__.py.
        from webhook.operating import drain_text
        from webhook.operating.auditing import read_report
        from webhook.operating.draining import nodes_of, raise_if_blind, verdict_on

        report = read_report(connection)
        named = nodes_of(report, nodes, zones)
        raise_if_blind(connection)
        verdict = verdict_on(report, named, assume_isolation=assume_isolation)
        click.echo(drain_text.as_json(verdict) if output == "json" else drain_text.as_text(verdict))
    ctx.exit(0 if verdict.safe else 1)
