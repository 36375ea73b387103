"""What the README states of the product is what the product does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from webhook.cli import main
from webhook.cluster import door, kinds
from webhook.core import keys
from webhook.core.caps import cap
from webhook.core.model import MemberClass
from webhook.settings import Settings, variable

README = (Path(__file__).parents[1] / "README.md").read_text()
OPTIONS = (keys.SKIP, keys.PLACEMENT, keys.WHEN_UNPLACEABLE, keys.TOPOLOGY_KEY, keys.COPIES, keys.MIN_DOMAINS)


def row(name: str) -> list[str]:
    """The cells of a table's row after its first one."""
    (line,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", README, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_is_in_the_table_with_its_variable(name: str):
    assert re.search(rf"^\| `--{name.replace('_', '-')}[ `].*`{variable(name)}`", README, re.MULTILINE)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_in_the_table(option: str):
    assert row(f"`{option}`")


def test_every_command_and_its_own_variables_are_named():
    names = {
        str(parameter.envvar) for command in main.commands.values() for parameter in command.params if parameter.envvar
    }
    assert [name for name in (*names, *(f"`{command}`" for command in main.commands)) if name not in README] == []


@pytest.mark.parametrize(
    ("name", "member_class", "in_use"),
    [
        ("pd, dm-master", MemberClass.QUORUM, 3),
        ("tikv, 3 or more domains in use", MemberClass.REPLICATED, 3),
        ("tikv, fewer domains in use", MemberClass.REPLICATED, 2),
    ],
)
def test_the_caps_are_those_of_the_code(name: str, member_class: MemberClass, in_use: int):
    caps = [cap(member_class, r, domains=6, in_use=in_use, copies=3, min_domains=None) for r in range(2, 13)]

    assert row(name) == ["-", *("none" if each is None else str(each) for each in caps)]


def test_a_dump_is_of_every_kind_that_decisions_look_at():
    short = {
        "ns": door.NAMESPACES,
        "pvc": door.CLAIMS,
        "pv": door.PERSISTENT_VOLUMES,
        "sc": door.STORAGE_CLASSES,
        "sts": door.STATEFUL_SETS,
    }
    plural = {resource.plural: resource for resource in kinds.BUILT_IN}

    named = {(short | plural)[name] for name in kinds.DUMPED.split(",")}

    assert named == set(kinds.BUILT_IN) - {door.EVENTS}


def test_the_help_of_plan_names_the_kinds_of_a_dump():
    assert "".join(re.findall(r"kinds=(?:\$kinds)?(\S+)", main.commands["plan"].help or "")) == kinds.DUMPED
