"""The command line: what the user types, and what the shell is told.

Errors of ours are one line on standard error. Exit codes: 0 fine, 1 it did not work (of a question: the answer is
no), 2 a flag, variable or argument is wrong, 3 the question could not be answered, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import click

from webhook.commands import audit, can_drain, completion, demo, doctor, plan, serve, simulate, variables, why
from webhook.commands.parameters import variables_used
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


# What keeps standard output from taking any more: no room, too large, the disk or the terminal gone.
UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@contextmanager
def _told_if_unwritable() -> Iterator[None]:
    """Where what is printed or kept in the block cannot be written, that is one line and exit code 1."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        # What is still in the buffer must not fail once more when the interpreter ends.
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"Error: what was to be printed or kept cannot be written: {error.strerror}", err=True)
        sys.exit(1)


class _Failure(click.ClickException):
    """One of our errors, which click shows as one line."""

    def __init__(self, error: WebhookError, variables: Mapping[str, str] | None = None) -> None:
        said = " ".join(str(error).split())
        used = [
            f"{flag} is from the variable {name}"
            for flag, name in (variables or {}).items()
            if re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", said)
        ]
        super().__init__(f"{said} ({', '.join(used)})" if used else said)


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
            raise _WrongSetting(error, variables_used(ctx)) from error
        except NoAnswer as error:
            raise _Unanswered(error) from error
        except WebhookError as error:
            raise _Failure(error) from error
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for. Variables that nobody reads are warned of; `serve` does it in its log."""
        found = super().resolve_command(ctx, args)
        if found[1] is not serve.command and not ctx.resilient_parsing:
            for sentence in variables.unknown(os.environ, variables.known_to(self)):
                click.echo(f"Warning: {sentence}", err=True)
        return found

    def main(self, *arguments: Any, **parameters: Any) -> Any:
        """Run the program."""
        with _told_if_unwritable():
            return super().main(*arguments, **parameters)

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
    with _told_if_unwritable():
        click.echo(completion.for_kubectl(main, sys.argv[1:]))
