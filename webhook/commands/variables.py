"""Environment variables that look like ours and are none: a misspelt one would be without effect in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import click

from webhook.settings import variable

PREFIX: Final = variable("")
# Those of `python -m certs`.
_OF_CERTIFICATES: Final = variable("certs_")
# What Kubernetes gives to every container for each Service of its namespace, such as one called tidb-ha-webhook.
_OF_A_SERVICE: Final = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)


def known_to(program: click.Command) -> frozenset[str]:
    """The variables of a program's commands."""
    commands = program.commands.values() if isinstance(program, click.Group) else (program,)
    return frozenset(str(each.envvar) for command in commands for each in command.params if each.envvar)


def unknown(environ: Mapping[str, str], known: Iterable[str]) -> Iterator[str]:
    """A sentence for each variable that begins as ours do and is read by nobody."""
    known = sorted(known)
    for name in sorted(environ):
        ours = name.startswith(PREFIX) and not name.startswith(_OF_CERTIFICATES)
        if not ours or name in known or _OF_A_SERVICE.fullmatch(name):
            continue
        near = get_close_matches(name, known, n=1)
        yield f"{name} is no variable of this program{f'; is {near[0]} meant?' if near else ''}"
