"""What can be said of the chart without Helm: documentation, schema and code agree."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest
import yaml

from chart.chart_values import CHART, VALUES, described, leaves, table
from webhook.core.groups import MEMBER_CLASSES, STATEFUL_SET_API_GROUPS, V1_NAMES, V2_API_GROUP
from webhook.settings import Settings

TEMPLATES = sorted((CHART / "templates").rglob("*.yaml"))
DEFAULTS: dict[str, Any] = yaml.safe_load(VALUES.read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())


def test_every_value_is_explained() -> None:
    explained = described()
    assert set(leaves(DEFAULTS, explained)) == set(explained)


def test_the_readme_shows_the_values_as_they_are() -> None:
    assert (CHART / "README.md").read_text().endswith("## Values\n\n" + table(DEFAULTS))


def test_the_schema_knows_every_value_and_no_other() -> None:
    def keys(schema: dict[str, Any], values: dict[str, Any], path: str = "") -> None:
        if schema.get("additionalProperties") is not False:
            return
        assert set(schema["properties"]) - {"global"} == set(values) or path.endswith("issuerRef"), path
        for key, child in values.items():
            if isinstance(child, dict):
                keys(schema["properties"][key], child, f"{path}.{key}")

    keys(SCHEMA, DEFAULTS)


def test_nothing_but_what_is_explained_is_accepted_at_any_depth_of_our_own() -> None:
    ours = [SCHEMA, *(SCHEMA["properties"][key] for key in ("webhook", "floor", "certificates", "flowControl"))]
    assert all(each["additionalProperties"] is False for each in ours)


def test_chart_and_code_have_one_list_of_members() -> None:
    text = (CHART / "templates" / "_members.tpl").read_text()
    members = re.search(r'define "webhook.members" -}}\n(.*)\n', text)
    assert members is not None
    assert sorted(json.loads(members[1])) == sorted(MEMBER_CLASSES)
    assert text.count('include "webhook.members"') == 2


def test_chart_and_code_have_one_idea_of_names_and_owners() -> None:
    text = (CHART / "templates" / "_members.tpl").read_text()
    names = re.search(r'app.kubernetes.io/name"\].orValue\(""\) in (\[.*?\])', text)
    assert names is not None
    assert sorted(json.loads(names[1])) == sorted(V1_NAMES)
    groups = re.findall(r'apiVersion.startsWith\("(.*?)/"\)', text)
    assert sorted(groups) == sorted([*STATEFUL_SET_API_GROUPS, V2_API_GROUP])


@pytest.mark.parametrize(
    ("value", "setting"),
    [
        ("workers", "workers"),
        ("threads", "threads"),
        ("expirySeconds", "expiry"),
        ("clockAllowanceSeconds", "clock_allowance"),
        ("budgetMarginSeconds", "budget_margin"),
        ("drainSeconds", "drain_seconds"),
        ("logFormat", "log_format"),
    ],
)
def test_the_chart_has_the_defaults_of_the_program(value: str, setting: str) -> None:
    assert DEFAULTS["webhook"][value] == getattr(Settings(), setting)


def test_each_verb_names_a_function_that_exists() -> None:
    text = "\n".join(path.read_text() for path in TEMPLATES)
    verbs = re.findall(r"^ +- (?:get|list|watch|create|update|patch|delete)(?: (.*))?$", text, re.MULTILINE)
    assert verbs
    for comment in verbs:
        named = re.match(r"# (webhook|certs)((?:\.\w+)+)", comment)
        assert named is not None, comment
        assert _exists(named[1], named[2].strip(".").split(".")), comment


def _exists(package: str, path: list[str]) -> bool:
    """Whether a dotted path leads to a module or to something in one."""
    found: Any = importlib.import_module(package)
    for name in path:
        if not hasattr(found, name):
            try:
                importlib.import_module(f"{found.__name__}.{name}")
            except (ImportError, AttributeError):
                return False
        found = getattr(found, name)
    return True


def test_nothing_that_the_product_writes_is_rendered() -> None:
    for path in TEMPLATES:
        text = path.read_text()
        assert "kind: Secret\n" not in text, path
        assert not re.search(r"genCA|genSigned|genSelfSigned|randAlpha|lookup|now ", text), path


def _is_exposed(name: str) -> bool:
    """Whether the server or the keeper has a metric of that name."""
    from certs.figures import Figures
    from webhook.metrics import Metrics

    shown = Metrics().exposition().decode() + Figures().exposition().decode()
    exposed = set(re.findall(r"^# TYPE (\w+)", shown, re.MULTILINE))
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return bool({name, base, name.removesuffix("_total")} & exposed)


def test_alerts_and_dashboard_ask_for_metrics_that_exist() -> None:
    asked = (CHART / "templates" / "alerts.yaml").read_text() + (CHART / "files" / "dashboard.json").read_text()
    for name in re.findall(r"tidb_ha_webhook_\w+", asked):
        assert _is_exposed(name), name


def test_the_dashboard_is_json_whose_panels_have_titles_and_queries() -> None:
    panels = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels) >= 10
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_each_alert_leads_to_a_section_of_the_runbook_and_each_section_to_an_alert() -> None:
    runbook = (CHART.parents[1] / "docs" / "runbook.md").read_text()
    alerts = re.findall(r'\(list "(\w+)"', (CHART / "templates" / "alerts.yaml").read_text())
    assert len(alerts) >= 13
    assert re.findall(r"^## (\w+)$", runbook, re.MULTILINE) == alerts
    # Anchors are the headings in small letters, which is what the rule's runbook_url asks for.
    links = re.findall(r"\(#([\w-]+)\)", runbook)
    assert set(links) <= {alert.lower() for alert in alerts}
    assert "index . 0 | lower" in (CHART / "templates" / "alerts.yaml").read_text()
    assert (CHART.parents[1] / DEFAULTS["prometheusRule"]["runbook"]).is_file()


def test_the_runbook_names_only_values_and_metrics_that_exist() -> None:
    runbook = (CHART.parents[1] / "docs" / "runbook.md").read_text()
    for name in re.findall(r"tidb_ha_webhook_\w+", runbook):
        assert _is_exposed(name), name
    values = {".".join(path) for path in leaves(DEFAULTS, {})}
    for name in re.findall(r"`([a-z]\w+(?:\.\w+)+)`", runbook):
        assert name in values, name


def test_the_tests_that_the_documentation_names_exist() -> None:
    files = [path for path in (CHART.parents[1] / "tests").rglob("test_*.py")]
    defined = {name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}
    for page in (CHART.parents[1] / "docs" / "install.md", CHART / "CHECKLIST.md"):
        named = set(re.findall(r"`(test_\w+)(?:\.py)?`", page.read_text()))
        assert named - defined - {path.stem for path in files} == set(), page.name
