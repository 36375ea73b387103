"""What both Helms make of the controller: pods, an account and a Lease of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.install.helm import CHART, MAJORS, Helm, missing
from e2e.objects import Object
from webhook.cluster.door import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS
from webhook.cluster.fleet import OWNERS

pytestmark = pytest.mark.e2e

NAMESPACE = "rendered"
NAME = "rel-controller"
BY_NAME = {"fullnameOverride": "rel"}


@pytest.fixture(params=MAJORS, ids=["helm 3", "helm 4"])
def helm(request: pytest.FixtureRequest, tmp_path: Path) -> Helm:
    if problem := missing():
        pytest.fail(problem, pytrace=False)
    return Helm(request.param, tmp_path)


def rendered(helm: Helm, values: dict[str, Any] | None = None) -> list[Object]:
    text = helm.run("template", "rel", CHART, "-n", NAMESPACE, values=BY_NAME | (values or {}))
    return [found for found in yaml.safe_load_all(text) if found]


def named(found: list[Object], kind: str, name: str = NAME) -> Object:
    return next(each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))


def verbs_of(found: list[Object], account: str) -> dict[str, set[str]]:
    """What an account may do, by resource: over all roles that are bound to it."""
    allowed: dict[str, set[str]] = {}
    roles = {(each["kind"], each["metadata"]["name"]): each for each in found if each["kind"].endswith("Role")}
    for binding in (each for each in found if each["kind"].endswith("RoleBinding")):
        if any(subject["name"] == account for subject in binding["subjects"]):
            reference = binding["roleRef"]
            for rule in roles[reference["kind"], reference["name"]]["rules"]:
                for resource in rule["resources"]:
                    allowed.setdefault(resource, set()).update(rule["verbs"])
    return allowed


def test_it_has_pods_of_its_own_that_the_service_of_the_reviews_does_not_find(helm: Helm) -> None:
    found = rendered(helm)
    labels = named(found, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for selector in (
        named(found, "Service", "rel")["spec"]["selector"],
        named(found, "Deployment", "rel")["spec"]["selector"]["matchLabels"],
    ):
        assert not selector.items() <= labels.items()
    for selector in (
        named(found, "Service")["spec"]["selector"],
        named(found, "Deployment")["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_its_account_may_list_what_an_audit_reads(helm: Helm) -> None:
    found = rendered(helm)
    allowed = verbs_of(found, NAME)
    assert all("list" in allowed[resource.plural] for resource in (PODS, CLAIMS, NODES, PERSISTENT_VOLUMES, *OWNERS))
    assert "list" not in verbs_of(found, "rel")["statefulsets"]


def test_only_its_account_may_delete_pods(helm: Helm) -> None:
    found = rendered(helm)
    assert verbs_of(found, NAME)["pods"] == {"list", "watch", "get", "delete"}
    assert verbs_of(found, "rel")["pods"] == {"list", "watch"}


def test_its_account_can_write_no_configuration_and_no_secret_and_one_lease(helm: Helm) -> None:
    found = rendered(helm)
    allowed = verbs_of(found, NAME)
    assert allowed["leases"] == {"get", "update"}
    assert not {"secrets", "configmaps"} & allowed.keys()
    assert allowed["mutatingwebhookconfigurations"] == {"get"}
    (rule,) = (
        rule
        for rule in named(found, "ClusterRole", f"rel.{NAMESPACE}-controller")["rules"]
        if rule["resources"] == ["mutatingwebhookconfigurations"]
    )
    assert rule["resourceNames"] == [f"rel.{NAMESPACE}"]
    assert named(found, "Role")["rules"][0]["resourceNames"] == [NAME]


def test_flags_account_and_lease_agree_on_names(helm: Helm) -> None:
    found = rendered(helm)
    spec = named(found, "Deployment")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == named(found, "ServiceAccount")["metadata"]["name"]
    assert f"--controller-lease={NAME}" in spec["containers"][0]["args"]
    configuration = next(each for each in found if each["kind"] == "MutatingWebhookConfiguration")["metadata"]["name"]
    assert f"--controller-configuration={configuration}" in spec["containers"][0]["args"]
    assert "spec" not in named(found, "Lease")


def test_it_decides_by_the_settings_of_the_server(helm: Helm) -> None:
    found = rendered(helm, {"webhook": {"expirySeconds": 90, "otherSchedulers": ["volcano"]}})
    of_server = named(found, "Deployment", "rel")["spec"]["template"]["spec"]["containers"][0]["args"]
    of_controller = named(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    for flag in ("--expiry=90", "--clock-allowance=60", "--other-schedulers=volcano"):
        assert flag in of_server
        assert flag in of_controller
    assert "--controller" in of_controller
    assert "--controller" not in of_server


def test_its_alerts_come_and_go_with_it(helm: Helm) -> None:
    on = {"prometheusRule": {"enabled": True}}
    off = on | {"controller": {"enabled": False}}
    assert alerts_of(rendered(helm, on)) - alerts_of(rendered(helm, off)) == {
        "TidbHaWebhookStacked",
        "TidbHaWebhookLost",
        "TidbHaWebhookNoMargin",
        "TidbHaWebhookUnknownPlaces",
        "TidbHaWebhookStuckPods",
        "TidbHaWebhookRescueHalted",
        "TidbHaWebhookNoController",
        "TidbHaWebhookNoAudit",
    }


def alerts_of(found: list[Object]) -> set[str]:
    rules = named(found, "PrometheusRule", "rel")["spec"]["groups"][0]["rules"]
    assert all(rule["expr"] and rule["annotations"]["summary"] for rule in rules)
    return {rule["alert"] for rule in rules}


def test_without_it_nothing_of_it_is_there(helm: Helm) -> None:
    found = rendered(helm, {"controller": {"enabled": False}})
    assert not [each for each in found if "controller" in each["metadata"]["name"]]
    assert NAME not in str(found)


def test_an_account_of_the_users_own_is_used_and_not_made(helm: Helm) -> None:
    found = rendered(helm, {"controller": {"serviceAccountName": "theirs"}})
    accounts = {each["metadata"]["name"] for each in found if each["kind"] == "ServiceAccount"}
    assert accounts == {"rel", "rel-clean-up", "rel-test"}
    assert named(found, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "theirs"
    assert "delete" in verbs_of(found, "theirs")["pods"]


def test_monitors_find_its_metrics(helm: Helm) -> None:
    found = rendered(helm, {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}})
    names = named(found, "PodMonitor", "rel")["spec"]["selector"]["matchExpressions"][0]["values"]
    labels = named(found, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] in names
    selector = named(found, "ServiceMonitor", "rel")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= named(found, "Service")["metadata"]["labels"].items()
