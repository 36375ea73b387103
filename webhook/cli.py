"""The command line: what the user types, and what the shell is told.

Errors of ours are one line on standard error. Exit codes: 0 fine, 1 it did not work (of a question: the answer is
no), 2 a flag, variable or argument is wrong, 3 the question could not be answered, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from webhook.commands import audit, can_drain, completion, demo, doctor, plan, serve, simulate, why
from webhook.errors import NoAnswer, SettingsError, WebhookError

# The commands in the order of `--help`; a new one is a module of webhook/commands and a place here.
COMMANDS: Final = (
    serve.command,
    plan.command,
    demo.command,
    why.command,
    audit.command,
    can_drain.command,
    simulate.command,
    doctor.command,
    completion.command,
)

INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it


class _Failure(click.ClickException):
    """One of our errors, which click shows as one line."""

    def __init__(self, error: WebhookError) -> None:
        super().__init__(" ".join(str(error).split()))


class _WrongSetting(_Failure):
    """The user's mistake, with the exit code of click's own usage errors."""

    exit_code = 2


class _Unanswered(_Failure):
    """Neither yes nor no."""

    exit_code = 3


class _Group(click.Group):
    """A group whose commands end with a line and an exit code, never with a traceback of an error of ours."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise _WrongSetting(error) from error
        except NoAnswer as error:
            raise _Unanswered(error) from error
        except WebhookError as error:
            raise _Failure(error) from error
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands' names in the order in which they were added."""
        return list(self.commands)


@click.group(
    cls=_Group,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="tidb-ha-webhook", message="%(prog)s %(version)s")
def main() -> None:
    """Keep the TiKV and PD pods of a TiDB cluster off each other's nodes, at admission.

    Every flag may also be given as an environment variable: --log-format as TIDB_HA_LOG_FORMAT.
    """


def complete_for_kubectl() -> None:
    """Complete `kubectl tidb-ha …`: the entry point that kubectl finds as `kubectl_complete-tidb_ha`."""
    click.echo(completion.for_kubectl(main, sys.argv[1:]))
