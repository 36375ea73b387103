"""`tidb-ha-webhook audit`."""

from __future__ import annotations

from typing import Any

import click

from webhook.commands import completion
from webhook.commands.asking import opened, which_cluster
from webhook.commands.parameters import output_as
from webhook.settings import variable


@click.command("audit", short_help="Hold every group against its cap, and say what it survives now.")
@click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    envvar=variable("namespace"),
    show_envvar=True,
    help="Only the groups of this namespace.",
    shell_complete=completion.namespaces,
    show_default="all",
)
@output_as("table", "json", "html", help="A table, JSON, or a page with a picture: one file that needs no network.")
@which_cluster
@click.pass_context
def command(ctx: click.Context, /, namespace: str, output: str, **parameters: Any) -> None:
    """Hold every group against its cap, and say what it survives now.

    Breaches are: more members in a domain than the cap, members in an unknown domain or on nodes without the
    topology key, quorum or data that may be lost already, and no domain that could be lost. Notes are worth
    knowing: members that never passed the webhook, guarded ones that run, options that cannot be used.

    What is said of TiKV holds whatever PD does, or names the level by which PD has to keep copies apart; "not
    checked" where its location-labels could not be read. Nothing is written.

    Exit code: 0 only if all is well, 1 if there is a breach or a group could not be judged, 2 for wrong flags or
    an unknown namespace, 3 if the cluster cannot be read.

    \b
      kubectl tidb-ha audit
      kubectl tidb-ha audit -n db -o html > audit.html
    """
    with opened({**parameters, "namespace": namespace}) as connection:
        # Here, not above: see webhook/commands/__init__.py.
        from rich.console import Console

        from webhook.operating import audit_page, audit_text
        from webhook.operating.auditing import read_report

        report = read_report(connection, namespace)
        if output == "json":
            click.echo(audit_text.as_json(report))
        elif output == "html":
            click.echo(audit_page.page_of(report, connection.settings.describe_source()))
        else:
            audit_text.print_table(report, Console(highlight=False))
    ctx.exit(0 if report.all_well else 1)
