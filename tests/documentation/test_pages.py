"""What the pages state is what the product does."""

from __future__ import annotations

import re

import pytest

from documentation.reference import PAGE, ROOT, page
from webhook.cli import main
from webhook.core.outcomes import Outcome
from webhook.core.texts import TEXTS

DOCS = ROOT / "docs"


def test_the_reference_is_made_from_settings_commands_and_values():
    assert PAGE.read_text() == page(), "run `make reference`"


def test_the_reference_shows_no_mark_of_a_library_for_a_default():
    assert "Sentinel" not in page()


@pytest.mark.parametrize("name", ["why", "audit", "can-drain", "simulate", "doctor"])
def test_every_command_that_asks_is_described(name: str):
    assert f"## {name}\n" in (DOCS / "operating.md").read_text()


def test_the_transcript_shows_every_command_that_asks_and_both_pages_of_metrics():
    text = (DOCS / "operating-transcript.md").read_text()

    for name in ("why", "audit", "can-drain", "simulate", "doctor"):
        assert f"\n$ kubectl tidb-ha {name}" in text
    for which in ("REPLICA", "CONTROLLER"):
        assert f"\n$ curl -s http://{which}:8081/metrics" in text


def test_commands_that_pages_show_exist():
    shown = {
        name
        for path in DOCS.glob("*.md")
        for name in re.findall(r"(?:kubectl tidb-ha|tidb-ha-webhook) ([a-z][a-z-]+)\b", path.read_text())
        if not path.name.startswith("design") and "transcript" not in path.name
    }

    assert shown - set(main.commands) - {"charts"} == set()


def test_whose_data_is_on_a_node_that_is_gone_is_led_to_what_gives_it_up():
    assert "docs/emergency.md" in TEXTS[Outcome.RETURNED_WAITING].remedy
    assert "\n## A node is gone for good\n" in (DOCS / "emergency.md").read_text()


def test_no_page_upgrades_with_the_defaults_of_the_chart_before():
    commands = [
        (path.name, line)
        for path in (*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "charts" / "tidb-ha-webhook" / "README.md")
        for line in path.read_text().splitlines()
        if line.strip().startswith("helm ")
    ]

    assert [each for each in commands if " --reuse-values" in each[1]] == []
    assert [
        each for each in commands if " upgrade " in each[1] and " --set " in each[1] and "--reset-then" not in each[1]
    ] == []
    assert [each for each in commands if " install " in each[1] and not each[1].endswith("\\")] == []


def test_every_page_is_reached_from_the_first():
    index = (DOCS / "index.md").read_text()
    listed = [line.strip() for line in index.splitlines()]

    for path in DOCS.glob("*.md"):
        name = path.stem
        assert name == "index" or name in listed or name.startswith(("install", "runbook")), name


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_no_table_is_torn_apart_by_an_empty_line(path):
    text = path.read_text()

    # A table of its own begins with a head, whose next line is a rule.
    assert re.findall(r"\n\|.*\n\n(\|.*)\n(?!\|-)", text) == []
