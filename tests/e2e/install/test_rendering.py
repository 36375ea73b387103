"""What both Helms make of the chart, and what the API server says of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART, MAJORS, Helm, HelmError, missing
from e2e.objects import Object

pytestmark = pytest.mark.e2e

NAMESPACE = "rendered"
EVERYTHING: dict[str, Any] = {
    "floor": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "podMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}
BUNDLE = base64.b64encode(b"theirs").decode()
MODES: dict[str, dict[str, Any]] = {
    "selfManaged": {},
    "certManager": {"certificates": {"mode": "certManager"}},
    "published": {"certificates": {"mode": "certManager", "certManager": {"injector": False}}},
    "existingSecret": {
        "certificates": {"mode": "existingSecret", "existingSecret": {"name": "theirs", "caBundle": BUNDLE}}
    },
    "nobody's": {"certificates": {"mode": "existingSecret", "existingSecret": {"name": "theirs"}}},
}
# The Pod, a test's, needs its ServiceAccount first; the test of Pod Security creates it.
LEFT_OUT = ("Pod", "ServiceMonitor", "PodMonitor", "PrometheusRule", "Certificate", "Issuer")


@pytest.fixture(params=MAJORS, ids=["helm 3", "helm 4"])
def helm(request: pytest.FixtureRequest, tmp_path: Path) -> Helm:
    if problem := missing():
        pytest.fail(problem, pytrace=False)
    return Helm(request.param, tmp_path)


def rendered(helm: Helm, values: dict[str, Any] | None = None, namespace: str = NAMESPACE) -> list[Object]:
    text = helm.run("template", "rel", CHART, "-n", namespace, values=values or {})
    return [found for found in yaml.safe_load_all(text) if found]


def one(found: list[Object], kind: str) -> Object:
    return next(each for each in found if each["kind"] == kind)


@pytest.mark.parametrize("mode", MODES)
def test_lint_finds_nothing(helm: Helm, mode: str) -> None:
    helm.run("lint", "--strict", CHART, "-n", NAMESPACE, values={**EVERYTHING, **MODES[mode]})


@pytest.mark.parametrize("mode", MODES)
def test_rendering_twice_gives_the_same_bytes(helm: Helm, mode: str) -> None:
    arguments = ("template", "rel", CHART, "-n", NAMESPACE)
    first, second = (helm.run(*arguments, values={**EVERYTHING, **MODES[mode]}) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("mode", MODES)
def test_no_secret_and_no_bundle_of_ours_is_rendered(helm: Helm, mode: str) -> None:
    found = rendered(helm, {**EVERYTHING, **MODES[mode]})
    assert not [each for each in found if each["kind"] == "Secret"]
    assert all(
        "caBundle" not in each["clientConfig"] for each in one(found, "MutatingWebhookConfiguration")["webhooks"]
    )


def keeper_of(found: list[Object]) -> list[str]:
    """The arguments of the container beside the server; none where there is no such container."""
    containers = one(found, "Deployment")["spec"]["template"]["spec"].get("initContainers", [])
    return containers[0]["args"] if containers else []


@pytest.mark.parametrize(
    ("mode", "arguments", "by"),
    [
        ("selfManaged", ["run", "--directory=/run/tls"], "selfManaged"),
        ("certManager", [], "injector"),
        ("published", ["publish", "--mode=certManager", "--ca-file=/run/tls/ca.crt"], "certManager"),
        ("existingSecret", ["publish", "--mode=existingSecret", f"--ca-bundle={BUNDLE}"], "existingSecret"),
        ("nobody's", [], "nobody"),
    ],
)
def test_each_mode_says_who_publishes_and_has_a_container_for_it_where_that_is_us(
    helm: Helm, mode: str, arguments: list[str], by: str
) -> None:
    found = rendered(helm, MODES[mode])
    assert [each for each in arguments if each not in keeper_of(found)] == []
    assert bool(keeper_of(found)) == bool(arguments)
    annotations = one(found, "MutatingWebhookConfiguration")["metadata"]["annotations"]
    assert annotations["tidb-ha-webhook.io/certificates"] == by
    assert ("cert-manager.io/inject-ca-from" in annotations) == (by == "injector")
    # Who writes nothing may write nothing.
    roles = [each for each in found if each["kind"] == "Role" and "helm.sh/hook" not in str(each["metadata"])]
    may_write = any("secrets" in rule["resources"] for role in roles for rule in role["rules"])
    assert may_write == bool(arguments)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"nosuch": 1}, "nosuch"),
        ({"webhook": {"nosuch": 1}}, "nosuch"),
        ({"webhook": {"failurePolicy": "Maybe"}}, "'auto', 'Ignore', 'Fail'"),
        ({"webhook": {"timeoutSeconds": 60}}, "/webhook/timeoutSeconds"),
        ({"webhook": {"otherSchedulers": ["tidb-scheduler"]}}, "otherSchedulers"),
        ({"webhook": {"expirySeconds": 70}}, "request time-out: it must be at least 30"),
        ({"webhook": {"timeoutSeconds": 2}}, "no write is sent in the last second"),
        ({"webhook": {"healthPort": 8443}}, "must all differ"),
        ({"controller": {"enabled": "yes"}}, "/controller/enabled"),
        ({"controller": {"nosuch": 1}}, "nosuch"),
        ({"certificates": {"mode": "none"}}, "'selfManaged', 'certManager', 'existingSecret'"),
        ({"certificates": {"mode": "existingSecret"}}, "/certificates"),
        ({"certificates": {"existingSecret": {"name": "both"}}}, "/certificates"),
        ({"certificates": {"certManager": {"issuerRef": {"name": "both"}}}}, "/certificates"),
        ({"certificates": {"certManager": {"injector": False}}}, "/certificates"),
        ({"finalCheck": {"actions": ["Warn", "Deny"]}}, "/finalCheck/actions"),
        ({"terminationGracePeriodSeconds": 10}, "a pod that is killed earlier fails the reviews"),
        ({"serviceAccount": {"create": False}}, "give serviceAccount.name"),
        ({"serviceAccount": {"create": False, "name": "theirs"}}, "give controller.serviceAccountName too"),
        ({"controller": {"serviceAccountName": "rel-tidb-ha-webhook"}}, "must not be that of the webhook"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_wrong_values_are_refused_in_words(helm: Helm, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HelmError) as refused:
        rendered(helm, values)
    assert sentence in str(refused.value)


def test_the_systems_namespaces_are_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="install into a namespace of its own"):
        rendered(helm, namespace="kube-system")


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, "Fail"),
        ({"floor": {"enabled": True}}, "Ignore"),
        ({"floor": {"enabled": True}, "webhook": {"failurePolicy": "Fail"}}, "Fail"),
        ({"webhook": {"failurePolicy": "Ignore"}}, "Ignore"),
    ],
    ids=["no floor", "floor", "Fail by hand", "Ignore by hand"],
)
def test_the_failure_policy_follows_the_floor(helm: Helm, values: dict[str, Any], policy: str) -> None:
    entries = one(rendered(helm, values), "MutatingWebhookConfiguration")["webhooks"]
    assert [entry["failurePolicy"] for entry in entries] == [policy, "Fail", "Fail"]


def test_entries_match_no_more_than_creates_of_pods_elsewhere(helm: Helm) -> None:
    for entry in one(rendered(helm), "MutatingWebhookConfiguration")["webhooks"][:2]:
        assert entry["rules"] == [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ]
        assert entry["namespaceSelector"]["matchExpressions"][0]["values"][-1] == NAMESPACE
        assert (entry["sideEffects"], entry["reinvocationPolicy"]) == ("NoneOnDryRun", "IfNeeded")


@pytest.mark.parametrize("name", [None, "short", "a-name-of-more-than-fifty-characters-that-somebody-chose"])
def test_service_configuration_and_flags_agree_on_names(helm: Helm, name: str | None) -> None:
    found = rendered(helm, {"fullnameOverride": name or ""})
    service = one(found, "Service")["metadata"]["name"]
    entries = one(found, "MutatingWebhookConfiguration")["webhooks"]
    assert {entry["clientConfig"]["service"]["name"] for entry in entries} == {service}
    assert {entry["clientConfig"]["service"]["namespace"] for entry in entries} == {NAMESPACE}
    keeper = one(found, "Deployment")["spec"]["template"]["spec"]["initContainers"][0]
    assert f"--service={service}" in keeper["args"]
    assert f"--configuration={one(found, 'MutatingWebhookConfiguration')['metadata']['name']}" in keeper["args"]
    assert entries[2]["objectSelector"]["matchLabels"] == {"tidb-ha-webhook.io/probe": service}
    assert len(service) <= 50


@pytest.mark.parametrize("mode", MODES)
def test_the_api_server_accepts_every_object(
    api: Api, control_plane: ControlPlane, helm: Helm, mode: str, release_namespace: str
) -> None:
    found = rendered(helm, {**EVERYTHING, **MODES[mode]}, release_namespace)
    ours = {"kind": "List", "apiVersion": "v1", "items": [each for each in found if each["kind"] not in LEFT_OUT]}
    arguments = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    done = control_plane.kubectl(*arguments, stdin=json.dumps(ours))
    assert done.returncode == 0, done.stderr


def test_every_pod_passes_pod_security_restricted(
    api: Api, control_plane: ControlPlane, helm: Helm, release_namespace: str
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch("Namespace", release_namespace, {"metadata": {"labels": labels}})
    found = rendered(helm, EVERYTHING, release_namespace)
    specs = [each["spec"]["template"]["spec"] for each in found if each["kind"] in ("Deployment", "Job")]
    specs += [each["spec"] for each in found if each["kind"] == "Pod"]
    assert len(specs) == 4
    for spec in specs:
        plain = {**spec, "serviceAccountName": "default"}
        metadata = {"generateName": "restricted-", "namespace": release_namespace, "name": "restricted"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plain}
        done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
        assert done.returncode == 0, done.stderr
