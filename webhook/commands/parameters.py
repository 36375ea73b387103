"""Flags as the commands declare them: each with its environment variable and its default in `--help`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from webhook.durations import parse_seconds
from webhook.settings import Settings, variable

# What click's decorators take and return: a command's function.
Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

DEFAULTS: Final = Settings()

_VARIABLES: Final = "webhook.commands.parameters"


class SecondsType(click.ParamType):  # type: ignore[type-arg] # generic only in click >= 8.3
    """A length of time in seconds: a plain number, or a duration such as 90s, 1m30s or 500ms."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; fails with what would be right."""
        if isinstance(value, (int, float)):
            return float(value)
        seconds = parse_seconds(str(value).strip())
        if seconds is None:
            self.fail(f"{value!r} is no length of time; give seconds, as in 90, 90s or 1m30s", param, ctx)
        return seconds


SECONDS: Final = SecondsType()


def remember_variable(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The callback of an option: note where its value came out of its variable, for `variables_used`."""
    if parameter.name and ctx.get_parameter_source(parameter.name) is ParameterSource.ENVIRONMENT:
        ctx.meta.setdefault(_VARIABLES, {})[parameter.opts[0]] = parameter.envvar
    return value


def variables_used(ctx: click.Context) -> Mapping[str, str]:
    """The flags of the command that runs whose values came out of their variables, with these."""
    used: Mapping[str, str] = ctx.meta.get(_VARIABLES, {})
    return used


def setting(flag: str, **attributes: Any) -> Decorator:
    """The option of a setting; the flag `--clock-allowance` is the field `clock_allowance` of `Settings`."""
    name = flag.removeprefix("--").replace("-", "_")
    default = attributes.setdefault("default", getattr(DEFAULTS, name))
    attributes.setdefault("show_default", f"{default:g} s" if attributes.get("type") is SECONDS else True)
    attributes.setdefault("callback", remember_variable)
    return click.option(flag, name, envvar=variable(name), show_envvar=True, **attributes)


def output_as(*choices: str, **attributes: Any) -> Decorator:
    """The flag --output, -o: one of these, the first by default."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        envvar=variable("output"),
        show_envvar=True,
        **attributes,
    )


def together(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, shown in `--help` in this order."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


cluster_source = together(
    setting(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Use the API server of this kubeconfig.",
        show_default="in a pod its service account, else kubectl's own rules",
    ),
    setting("--in-cluster", is_flag=True, help="Use the service account of the pod this runs in."),
    setting(
        "--cluster",
        type=click.Path(exists=True, path_type=Path),
        metavar="FILE",
        help="Use no API server but the embedded cluster, on a dump: what `kubectl get … -A -o "
        "yaml` prints (plan --help has the kinds), one file or a folder of them.",
    ),
)
