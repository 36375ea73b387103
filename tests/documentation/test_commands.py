"""Every command line of ours that a page shows is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from documentation.reference import ROOT
from webhook.cli import main
from webhook.errors import SettingsError
from webhook.operating.simulating.steps import step_from

PAGES = (
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if "transcript" not in page.name),
    ROOT / "README.md",
    ROOT / "charts" / "tidb-ha-webhook" / "README.md",
    ROOT / "CONTRIBUTING.md",
)
# In a block, after a prompt or a pipe or &&, or within `…`.
CALL = re.compile(
    r"(?:^ {4,}|[`|$&(\"] ?)(?:\.venv/bin/)?(?:kubectl tidb-ha|tidb-ha-webhook) ([a-z][a-z-]+\b[^`|&;#\n>)]*)", re.M
)
# Placeholders of a form, not something to type; the chart and the release are called like the program.
FORM = re.compile(r"[…<\[]|^charts|\bcharts/|^-")
ENDS = re.compile(r"\s{3,}.*")


def shown() -> Iterator[tuple[str, str]]:
    """Page and command line, each once."""
    seen = set()
    for page in PAGES:
        for found in CALL.findall(page.read_text()):
            line = ENDS.sub("", found).strip()
            if not FORM.search(line) and line not in seen:
                seen.add(line)
                yield page.name, line


def refused(line: str) -> str:
    """Why the program does not take a line, "" where it does; a file that is not here is no reason."""
    name, *arguments = shlex.split(line)
    command = main.commands.get(name)
    if command is None:
        return f"no command {name}"
    try:
        context = command.make_context(name, arguments)
    except click.MissingParameter as error:
        # "`why`" is the command's name in a sentence.
        return str(error) if arguments else ""
    except click.UsageError as error:
        return "" if "does not exist" in error.message else error.message
    try:
        for step in context.params.get("steps") or ():
            step_from(step, "default")
    except SettingsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("page", "line"), [pytest.param(*each, id=" ".join(each)) for each in shown()])
def test_a_command_line_that_a_page_shows_is_taken(page: str, line: str):
    assert refused(line) == "", page


def test_lines_of_every_command_that_asks_are_found():
    names = {line.split()[0] for _, line in shown()}

    assert names >= {"why", "audit", "can-drain", "simulate", "doctor", "plan", "serve", "demo", "completion"}


@pytest.mark.parametrize(
    "line", ["audits", "why db-pd-0 --nope", "simulate add-node", "simulate add-nodes", "audit -o svg", "doctor x"]
)
def test_a_wrong_line_is_found(line: str):
    assert refused(line) != ""
