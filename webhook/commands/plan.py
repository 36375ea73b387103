"""`tidb-ha-webhook plan`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from webhook import logs
from webhook.commands.parameters import output_as, remember_variable, setting
from webhook.settings import LogFormat, settings_from, variable


@click.command("plan", short_help="Show what would be answered for pods, without a server.")
@click.option(
    "--cluster",
    type=click.Path(exists=True, path_type=Path),
    required=True,
    metavar="FILE",
    envvar=variable("cluster"),
    show_envvar=True,
    callback=remember_variable,
    help="The dump to decide on: what `kubectl get … -A -o yaml` prints (the kinds are below), one file or a "
    "folder of them.",
)
@click.option(
    "--filename",
    "-f",
    "names",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    required=True,
    multiple=True,
    metavar="FILE",
    envvar=variable("filename"),
    show_envvar=True,
    callback=remember_variable,
    help="What to create: Pods, StatefulSets (each stands for its pods that are not there) or AdmissionReviews, as "
    "YAML or JSON; - is standard input. May be repeated.",
)
@setting(
    "--other-schedulers",
    multiple=True,
    metavar="NAME[,NAME…]",
    help="As for serve: scheduler names whose pods are never pinned.",
    show_default="none",
)
@output_as(
    "table",
    "json",
    callback=remember_variable,
    help="A table, or JSON with groups, domains, warnings and the JSON Patches too.",
)
@click.pass_context
def command(
    context: click.Context, cluster: Path, names: tuple[str, ...], other_schedulers: tuple[str, ...], output: str
) -> None:
    """Show what would be answered for pods, without a server.

    The pods are decided on one after another, in the order given, on the embedded cluster of a dump: each is
    visible to those after it, as on a cluster. Nothing is written anywhere.

    Warnings go to standard error. Exit code: 0 if every member has its place within the cap, 1 if one would wait,
    be refused, be let in without a place or go back to its data above the cap, or if there is no member at all, 2
    for wrong flags, 3 if the dump lacks what the answers rest on: nodes or pods, a claim or volume that a member
    certainly has, or what owns a pod. Pods that are left alone (no members, sets of one, the option skip) and those
    that exist already are shown and do not matter.

    Options, and what groups of tidb-operator v2 want, stand on its own objects. Of v2 dump, in the place of
    tidbclusters,dmclusters: clusters.core.pingcap.com,pdgroups,pds,tikvgroups,tikvs,dmgroups,dms. Where no operator
    is installed leave them out: kubectl refuses kinds that are not there.

    \b
    Would three more stores find a place?
      kinds=nodes,ns,pods,pvc,pv,sc,sts
      kinds=$kinds,csinodes,csidrivers,csistoragecapacities,volumeattachments
      kubectl get $kinds,tidbclusters,dmclusters -A -o yaml > dump.yaml
      kubectl get sts db-tikv -n db -o json | jq '.spec.replicas = 6' |
        tidb-ha-webhook plan --cluster dump.yaml -f -
    """
    logs.configure(LogFormat.TEXT, level=logging.WARNING)
    settings = settings_from({"cluster": cluster, "other_schedulers": other_schedulers}, {})

    # Here, not above: see webhook/commands/__init__.py.
    from rich.console import Console

    from webhook.cluster import dump
    from webhook.planning import doubts, inputs, plan, report, rows

    stdin = sys.stdin.buffer.read() if inputs.STDIN in names else b""
    wanted = inputs.read_wanted(names, stdin)
    found = dump.load(cluster)
    merged = plan.with_wanted(found.objects, wanted)
    planner = plan.planner_on(merged, settings)
    answers = [row for each in wanted for row in planner.rows(each)]
    in_doubt = doubts.doubts(found.objects, merged, wanted)
    if output == "json":
        click.echo(report.as_json(answers, in_doubt))
    else:
        report.print_table(answers, in_doubt, Console(highlight=False))
    for warning in (*found.notes, *(doubt.text for doubt in in_doubt), *rows.warnings_of(answers)):
        click.echo(f"Warning: {warning}", err=True)
    context.exit(report.exit_code(answers, in_doubt))
