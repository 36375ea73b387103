"""`tidb-ha-webhook doctor`."""

from __future__ import annotations

from typing import Any

import click

from webhook.commands.asking import opened, text_or_json, which_cluster

_COLOURS = {"ok": "green", "--": "bright_black", "warn": "yellow", "fail": "red"}


@click.command("doctor", short_help="Find what keeps the webhook from doing its work.")
@text_or_json
@which_cluster
@click.pass_context
def command(ctx: click.Context, /, output: str, **parameters: Any) -> None:
    """Find what keeps the webhook from doing its work: API server, permissions, configuration and floor, bundle and
    certificate, selectors that leave members out, others that change affinity, records, clocks, versions.

    Each line is ok, warn, fail, or -- for what cannot be looked at here; below warn and fail is what to do. On a
    dump only the groups are looked at. Nothing is written.

    The last line is the verdict. Exit code: 0 if nothing fails, 1 if something does, 2 for a wrong flag, 3 if the API
    server does not answer, or nothing fails and something could not be checked.
    """
    with opened(parameters) as connection:
        # Here, not above: see webhook/commands/__init__.py.
        from webhook.operating.doctor.examine import examine
        from webhook.operating.doctor.lines import as_json, exit_code, verdict
        from webhook.operating.page import one_line

        lines = tuple(examine(connection))
        if output == "json":
            click.echo(as_json(lines))
        for line in lines if output == "text" else ():
            level = click.style(f"{line.level.value:<4}", fg=_COLOURS[line.level.value])
            click.echo(f"{level}  {line.about}: {one_line(line.found)}")
            if line.to_do:
                click.echo(f"      -> {line.to_do}")
        if output == "text":
            click.echo(verdict(lines))
    ctx.exit(exit_code(lines))
