"""The configuration reference, made from settings, commands, options and chart values.

`python -m documentation.reference` writes docs/configuration.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import yaml
from chart.chart_values import VALUES, table

from certs.figures import Figures
from webhook.cli import main
from webhook.core import keys, options
from webhook.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "configuration.md"

LEAD = """\
# Configuration reference

<!-- Made by `make reference` from settings, commands and chart values; a test compares it with them. -->

Every flag is an environment variable too. A flag goes before its variable, that before the default. Lengths of time are
seconds (`90`) or durations (`1m30s`).
"""

CLUSTER_OPTIONS = """\
## Options of a cluster

Annotations `tidb-ha-webhook.io/<option>`, or `tidb-ha-webhook.io/<component>.<option>`, which goes first. The first
object that has one decides. A value that cannot be used becomes the stricter default, and a warning.
"""

CHART = """\
## Values of the chart

`helm install tidb-ha-webhook charts/tidb-ha-webhook --set KEY=VALUE`. The
[README of the chart](../charts/tidb-ha-webhook/README.md) says what belongs together.
"""

METRICS = """\
## Metrics

`/metrics` on the health address of the webhook and of the controller, and of the container `certs`, in Prometheus' text
format. Labels have few values: outcomes, causes and kinds are enumerations, components those of members, and of the
margins of groups the 200 least are shown. A counter ends in `_total`, a histogram in `_bucket`, `_sum` and `_count`.
"""

# Where each option is looked for.
_OF_PODS = "pod; v2 group object or generic StatefulSet; TidbCluster, DMCluster or v2 Cluster"
_OF_GROUPS = "v2 group object or generic StatefulSet; TidbCluster, DMCluster or v2 Cluster"
_OPTIONS = (
    (options.SKIP, _OF_PODS, "leave the pod alone; it still counts"),
    (options.PLACEMENT, _OF_PODS, "only ever guard, where autoscalers must be free to move pods"),
    (options.WHEN_UNPLACEABLE, _OF_PODS, "what a pod gets for which there is no answer"),
    (options.TOPOLOGY_KEY, _OF_GROUPS, f"what is a domain; `{keys.UPSTREAM_TOPOLOGY_KEY}` is honoured too"),
    (options.COPIES, _OF_GROUPS, "copies of each piece of TiKV's data"),
    (options.MIN_DOMAINS, _OF_GROUPS, "domains that are enough; caps follow from it"),
)


def page() -> str:
    """The whole page."""
    parts = [LEAD]
    for name, command in main.commands.items():
        parts.append(f"## `{name}`\n\n{_first_sentence(command)}\n")
        if rows := list(_flags(command)):
            parts.append("\n".join(("| flag | variable | default | |", "|---|---|---|---|", *rows)) + "\n")
    parts.append(CLUSTER_OPTIONS)
    parts.append(
        "\n".join(("| option | values (default first) | read from | |", "|---|---|---|---|", *_options())) + "\n"
    )
    parts.append(METRICS)
    parts.append("\n".join(("| metric | type | |", "|---|---|---|", *_metrics())) + "\n")
    parts.append(CHART)
    parts.append(table(yaml.safe_load(VALUES.read_text())))
    return "\n".join(parts)


def _first_sentence(command: click.Command) -> str:
    return f"{(command.short_help or '').rstrip('.')}."


def _flags(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            flags = ", ".join(f"`{flag}`" for flag in sorted(parameter.opts, key=len, reverse=True))
            cells = (flags, f"`{parameter.envvar}`", _default(parameter), parameter.help or "")
            yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _default(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    if option.is_flag:
        return "no"
    if option.required:
        return "required"
    # click 8.3 has a mark of its own for a default that nobody gave, which is nothing to show.
    return f"`{option.default}`" if isinstance(option.default, (str, int, float)) and option.default != "" else "none"


def _options() -> Iterable[str]:
    for option, where, what in _OPTIONS:
        default = {True: "true", False: "false", None: "unset"}.get(option.default, str(option.default))  # type: ignore[call-overload]
        yield f"| `{option.name}` | `{default}`; {option.right} | {where} | {what} |"


def _metrics() -> Iterator[str]:
    for exposition in (Metrics().exposition(), Figures().exposition()):
        texts: dict[str, str] = {}
        for line in exposition.decode().splitlines():
            name, rest = [*line.split(" ", 3)[2:], "", ""][:2]
            if line.startswith("# HELP tidb_ha_webhook_"):
                texts[name] = rest
            elif line.startswith("# TYPE tidb_ha_webhook_") and not name.endswith("_created"):
                yield f"| `{name}` | {rest} | {texts[name]} |"


if __name__ == "__main__":
    PAGE.write_text(page())
