"""`python -m certs`: issue, run, publish, status, rotate, try, clean."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
from kubernetes.client import Configuration

from certs import files, logs
from certs.access import configured
from certs.api import ApiCluster
from certs.authority import Lifetimes, issue_authority, issue_leaf, service_names
from certs.calls import Caller
from certs.cluster import ClusterError, Target
from certs.given import GIVEN_MODES, Given, given_by
from certs.removal import Leftovers, remove_all
from certs.report import report
from certs.state import Mode, Plan
from certs.trial import try_out

_DAY: Final = timedelta(days=1)


def _option(flag: str, **attributes: Any) -> Callable[[Any], Any]:
    """An option with its environment variable, `TIDB_HA_CERTS_…`."""
    variable = f"TIDB_HA_CERTS_{flag.removeprefix('--').replace('-', '_').upper()}"
    attributes.setdefault("show_default", "default" in attributes)
    return click.option(flag, envvar=variable, show_envvar=True, **attributes)


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_NAMES = _together(
    _option("--service", required=True, help="Name of the webhook's Service; the other names follow from it."),
    _option("--namespace", required=True, help="Namespace of the release."),
)
_CLUSTER = _together(
    _option("--in-cluster", is_flag=True, help="Use the service account of this pod."),
    _option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Use this kubeconfig file."),
)
_OBJECTS = _together(
    _NAMES,
    _CLUSTER,
    _option("--configuration", help="Name of the MutatingWebhookConfiguration.", show_default="SERVICE.NAMESPACE"),
    _option("--secret", help="Name of the Secret.", show_default="SERVICE-certificates"),
    _option("--lease", help="Name of the Lease.", show_default="SERVICE-certs"),
)
_LIFETIMES = _together(
    _option("--domain", default="cluster.local", help="DNS domain of the cluster."),
    _option("--ca-days", type=click.IntRange(1, 36500), default=1825, help="Life of a CA."),
    _option("--leaf-days", type=click.IntRange(1, 825), default=90, help="Life of the server's certificate."),
)
_RUNNING = _together(
    _option(
        "--directory",
        type=click.Path(file_okay=False, path_type=Path),
        required=True,
        help="Where the server reads tls.crt and tls.key; in memory, shared with its container.",
    ),
    _option("--health-port", type=click.IntRange(0, 65535), default=8082, help="Port of metrics and health, HTTP."),
    _option("--interval", type=click.FloatRange(0.1, 10), default=5.0, help="Seconds between two looks."),
    _option("--overlap", type=click.FloatRange(1), default=86400.0, help="Seconds that an old CA stays trusted."),
    _option("--log-format", type=click.Choice(["json", "text"]), default="json", help="Form of the log lines."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Certificates of the webhook's server."""


@main.command()
@_NAMES
@_LIFETIMES
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where they go.")
def issue(service: str, namespace: str, domain: str, ca_days: int, leaf_days: int, directory: Path) -> None:
    """Make a CA and a server's certificate by it: ca.crt, ca.key, tls.crt, tls.key. No cluster is asked."""
    now, lifetimes = datetime.now(UTC), Lifetimes(ca_days * _DAY, leaf_days * _DAY)
    names = service_names(service, namespace, domain)
    authority = issue_authority(now, lifetimes)
    leaf = issue_leaf(authority, names, now, lifetimes)
    contents = {"ca.crt": authority.certificate, "ca.key": authority.key}
    files.write(directory, {**contents, "tls.crt": leaf.certificate, "tls.key": leaf.key})
    click.echo(f"{directory}: a CA for {ca_days} days, a certificate for {leaf_days} days, for {', '.join(names)}")


@main.command()
@_OBJECTS
@_LIFETIMES
@_RUNNING
@_option("--probe-port", type=click.IntRange(0, 65535), default=8444, help="Port of the observed calls, HTTPS.")
@_option("--settle", type=click.FloatRange(0), default=60.0, help="Seconds that observed calls must go well.")
def run(**parameters: Any) -> None:
    """Keep the certificates: one of all replicas writes, each hands out. Ends on SIGTERM."""
    target = _target(parameters)
    plan = Plan(
        names=service_names(target.service, target.namespace, parameters["domain"]),
        lifetimes=Lifetimes(parameters["ca_days"] * _DAY, parameters["leaf_days"] * _DAY),
        overlap=timedelta(seconds=parameters["overlap"]),
        settle=timedelta(seconds=parameters["settle"]),
    )
    _run(parameters, target, plan, lambda: None)


@main.command()
@_OBJECTS
@_RUNNING
@_option("--mode", type=click.Choice(GIVEN_MODES), required=True, help="Who makes the certificate.")
@_option("--ca-bundle", default="", help="The CAs to be trusted, base64 of PEM; without it --ca-file is read.")
@_option("--ca-file", type=click.Path(dir_okay=False, path_type=Path), help="PEM file of the CAs, read at each look.")
def publish(**parameters: Any) -> None:
    """Have the API server trust CAs of somebody else, and for a while those before them. Ends on SIGTERM."""
    target = _target(parameters)
    # Of all the names the API server verifies this one.
    names = service_names(target.service, target.namespace)[2:3]
    plan = Plan(names, mode=Mode(parameters["mode"]), overlap=timedelta(seconds=parameters["overlap"]))
    try:
        given = given_by(parameters["ca_bundle"], parameters["ca_file"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _run({**parameters, "probe_port": 0}, target, plan, given)


def _run(parameters: dict[str, Any], target: Target, plan: Plan, given: Given) -> None:
    from certs.running import Options, run

    logs.configure(parameters["log_format"])
    options = Options(
        directory=parameters["directory"],
        probe_port=parameters["probe_port"],
        health_port=parameters["health_port"],
        interval=parameters["interval"],
        given=given,
    )
    run(_client(parameters), target, plan, options)


@main.command()
@_OBJECTS
def status(**parameters: Any) -> None:
    """Say what is stored and published, and whether it fits. Exit code 1 if something is amiss."""
    cluster = ApiCluster(_client(parameters), _target(parameters))
    lines, well = report(_asked(cluster.secret), _asked(cluster.configuration), datetime.now(UTC))
    click.echo("\n".join(lines))
    sys.exit(0 if well else 1)


@main.command()
@_OBJECTS
@click.option("--reason", default="asked for on the command line", help="Kept in the Secret until it begins.")
def rotate(reason: str, **parameters: Any) -> None:
    """Ask for a new CA; the running leader changes it without a failed call."""
    cluster = ApiCluster(_client(parameters), _target(parameters))
    published = _asked(cluster.configuration)
    if published is not None and published.mode not in ("", Mode.SELF_MANAGED):
        raise click.ClickException(f"certificates are made elsewhere (mode {published.mode}): change the CA there")
    _asked(lambda: cluster.request_rotation(reason))
    click.echo("asked for; watch it with: python -m certs status")


@main.command(name="try")
@_CLUSTER
@click.option("--in-namespace", default="default", show_default=True, help="Where the pod is to be.")
def try_(in_namespace: str, **parameters: Any) -> None:
    """Create a member's pod as a dry run; exit code 1 unless it comes back pinned.

    A StatefulSet that can have no pods and a claim are made for it, and removed again.
    """
    caller = Caller(_client(parameters))
    told, well = _asked(lambda: try_out(caller, in_namespace, time.sleep))
    click.echo(told)
    sys.exit(0 if well else 1)


@main.command()
@_OBJECTS
@click.option("--policy", multiple=True, help="Name of an admission policy to remove first, with its binding.")
@click.option("--certificate", multiple=True, help="Name of a Certificate of cert-manager to remove.")
@click.option("--also-secret", multiple=True, help="Name of a Secret that cert-manager has made, to be removed too.")
@click.option("--quiet-time", type=click.FloatRange(0), default=15.0, help="Seconds for which nothing may come back.")
def clean(
    policy: tuple[str, ...],
    certificate: tuple[str, ...],
    also_secret: tuple[str, ...],
    quiet_time: float,
    **parameters: Any,
) -> None:
    """Remove what the release and its replicas have made, in the order that blocks nobody.

    The policies first, then the webhook's configuration; then, when the replicas have seen that, their Secret
    and Lease. Run before an uninstall; what is gone already is no error.
    """
    cluster = ApiCluster(_client(parameters), _target(parameters))
    also = Leftovers(policy, certificate, also_secret)
    for removed in _asked(lambda: remove_all(cluster, also, quiet_time, time.sleep)):
        click.echo(f"removed {removed}")


def _target(parameters: dict[str, Any]) -> Target:
    service, namespace = parameters["service"], parameters["namespace"]
    return Target(
        namespace=namespace,
        configuration=parameters["configuration"] or f"{service}.{namespace}",
        secret=parameters["secret"] or f"{service}-certificates",
        lease=parameters["lease"] or f"{service}-certs",
        service=service,
    )


def _client(parameters: dict[str, Any]) -> Configuration:
    return configured(parameters["in_cluster"], parameters["kubeconfig"])


def _asked(call: Callable[[], Any]) -> Any:
    """What a call to the cluster gives; its failure is a line, not a traceback."""
    try:
        return call()
    except ClusterError as error:
        raise click.ClickException(str(error)) from None


def program() -> None:
    """The program. What cannot be printed or kept is one line, as every other failure."""
    try:
        main(prog_name="python -m certs")
    except OSError as error:
        # What is still in the buffer must not fail once more when the interpreter ends.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"Error: what was to be printed or kept cannot be written: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    program()
