"""What the README states of the product is what the product does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from gunicorn.arbiter import Arbiter

from webhook import cli
from webhook.cli import main
from webhook.cluster import door, kinds
from webhook.core import keys
from webhook.core.caps import cap
from webhook.core.model import Cause, MemberClass, Options, Outcome
from webhook.metrics import Metrics
from webhook.settings import BIND_WITH_TLS, HEALTH_BIND_WITH_TLS, Settings, variable

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CHART = ROOT / "charts/tidb-ha-webhook"
MOST_LINES = 260
DEFAULTS = Settings()
# Defaults that the table puts into words.
IN_WORDS = {
    "bind": f"`{DEFAULTS.bind}`; `{BIND_WITH_TLS}` with TLS",
    "health_bind": f"`{DEFAULTS.health_bind}`; `{HEALTH_BIND_WITH_TLS}` with TLS",
    "tls_cert": "none: plain HTTP, on loopback only",
    "kubeconfig": "in a pod its service account, else kubectl's rules",
    "controller_namespace": "the pod's own",
}
COMMAND_LINES = [line.strip() for line in README.splitlines() if line.startswith("    ")]


def row(name: str) -> list[str]:
    """The cells of a table's row after its first one."""
    (line,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", README, re.MULTILINE)
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]


def in_the_table(value: object) -> str:
    """How the table of settings shows a default."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g} s"
    if isinstance(value, int):
        return str(value)
    return f"`{value}`" if "-" in str(value) else str(value or "none")


def test_it_is_short_but_for_the_measured_times():
    times = re.search(r"^### Times to schedule$.*?(?=^## )", README, re.MULTILINE | re.DOTALL)
    assert times is not None
    assert len(README.splitlines()) - len(times[0].splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_is_in_the_table_with_its_variable_and_default(name: str):
    (found,) = re.findall(
        rf"^\| `--{name.replace('_', '-')}(?: [^`]*)?` \| `{variable(name)}` \| (.*?) \|", README, re.MULTILINE
    )
    value = getattr(DEFAULTS, name)
    assert found == IN_WORDS.get(name, in_the_table(getattr(value, "value", value)))


@pytest.mark.parametrize(
    ("option", "default"),
    [
        (keys.SKIP, "false"),
        (keys.PLACEMENT, Options().placement.value),
        (keys.WHEN_UNPLACEABLE, Options().when_unplaceable.value),
        (keys.TOPOLOGY_KEY, Options().topology_key),
        (keys.COPIES, str(Options().copies)),
        (keys.MIN_DOMAINS, "unset"),
    ],
)
def test_every_option_is_in_the_table_with_its_default_first(option: str, default: str):
    assert row(f"`{option}`")[0].replace("`", "").partition(",")[0] == default


def test_every_command_is_shown_and_every_shown_command_and_flag_is_there():
    shown = re.findall(r"tidb-ha-webhook ([a-z-]+)((?: [^|&#>`\n]+)?)", "\n".join(COMMAND_LINES))
    typed = {name: flags for name, flags in shown if name in main.commands}

    assert set(main.commands) - set(typed) == {"completion"}
    assert "`completion`" in README
    for name, arguments in typed.items():
        flags = {flag for parameter in main.commands[name].params for flag in parameter.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", arguments)) <= flags, name


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


def test_two_domains_that_are_enough_halve_tikv():
    stated = [cap(MemberClass.REPLICATED, r, domains=2, in_use=2, copies=3, min_domains=2) for r in range(3, 10)]

    assert '`min-domains: "2"`' in README
    assert stated == [-(-r // 2) for r in range(3, 10)]


def test_every_exit_code_has_a_row():
    codes = [0, 1, cli._WrongSetting.exit_code, cli._Unanswered.exit_code, Arbiter.APP_LOAD_ERROR, cli.INTERRUPTED]
    shown = re.findall(r"^\| (\d+) \|.*`?", README.partition("## Commands and exit codes")[2], re.MULTILINE)

    assert shown == [str(code) for code in codes]
    columns = re.findall(r"`([a-z-]+)`", next(line for line in README.splitlines() if line.startswith("| | `serve`")))
    assert columns == [name for name in main.commands if name != "completion"]


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


def test_readme_and_help_name_the_kinds_of_a_dump():
    assert f"kinds={kinds.DUMPED}" in COMMAND_LINES
    assert "".join(re.findall(r"kinds=(?:\$kinds)?(\S+)", main.commands["plan"].help or "")) == kinds.DUMPED


def test_the_kinds_of_tidb_operator_are_those_that_the_third_command_finds():
    assert all("pingcap.com" in f"{kind.plural}.{kind.group}" for kind in kinds.CUSTOM)


def links() -> Iterator[str]:
    yield from (found for found in re.findall(r"\]\(([^)\s]+)\)", README) if "://" not in found)


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("link", sorted(set(links())))
def test_every_link_leads_somewhere(link: str):
    path, _, anchor = link.partition("#")
    target = ROOT / path if path else ROOT / "README.md"
    assert target.exists()
    assert not anchor or anchor in anchors(target.read_text())


def test_every_make_target_is_there():
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"`make ([a-z0-9-]+)`", README) + re.findall(
        r"^make ([a-z0-9-]+)", "\n".join(COMMAND_LINES), re.M
    )
    assert {"demo", "test", "e2e"} <= set(named)
    assert [name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []


def test_outcomes_causes_metrics_and_keys_are_those_of_the_code():
    exposed = Metrics().exposition().decode()
    pending = README.partition("## A pod is Pending")[2]

    assert set(re.findall(r"^\| `([a-z-]+)`(?:, `([a-z-]+)`)? \|", pending, re.MULTILINE)) == {
        (Outcome.PINNED.value, ""),
        (Outcome.GUARDED.value, ""),
        (Outcome.RETURNED.value, Outcome.RETURNED_WAITING.value),
    }
    assert Cause.NO_SAFE_NODE.value in pending
    assert [name for name in re.findall(r"`(tidb_ha_webhook_\w+)`", README) if f"# TYPE {name} " not in exposed] == []
    assert keys.DECISION.replace(".", r"\.") in README
    assert set(re.findall(r"tidb-ha-webhook\.io/([a-z-]+)", README)) <= {"skip", "class"}


def test_what_is_said_of_the_chart_is_so():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    helpers, deployment = ((CHART / "templates" / name).read_text() for name in ("_helpers.tpl", "deployment.yaml"))

    assert chart["kubeVersion"] == ">=1.30.0-0"
    assert "Kubernetes 1.30 or later" in README
    assert (values["webhook"]["failurePolicy"], values["webhook"]["genericFailurePolicy"]) == ("auto", "Fail")
    assert values["floor"]["enabled"] == "auto"
    assert "app.kubernetes.io/part-of: tidb-ha-webhook" in helpers
    assert "- name: webhook\n" in deployment
    assert values["image"]["repository"] == "tidb-ha-webhook"
