"""The keeper's rights: with those of the chart it works, and without any one of them something fails by name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import Configuration

from certs.api import ApiCluster
from certs.cluster import ClusterError, Target
from certs.material import EMPTY, data_of
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART, Helm
from e2e.objects import Object
from e2e.waiting import wait_until
from leases.election import Election

pytestmark = pytest.mark.e2e

KEEPER = "certs."
KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "MutatingWebhookConfiguration")


@pytest.fixture
def rights(api: Api, release_namespace: str, tmp_path: Path) -> Iterator[list[Object]]:
    """The chart's ServiceAccount, configuration, and roles with their bindings; nothing of them runs."""
    rendered = Helm(4, tmp_path).run(
        "template", "rel", CHART, "-n", release_namespace, values={"fullnameOverride": "rel"}
    )
    kinds = (
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "MutatingWebhookConfiguration",
    )
    found = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] in kinds]
    ours = [each for each in found if "helm.sh/hook" not in each["metadata"].get("annotations", {})]
    for each in ours:
        api.create(each)
    yield ours
    for each in ours:
        metadata = each["metadata"]
        api.delete(each["kind"], metadata["name"], metadata.get("namespace"), missing_ok=True)


def configured(control_plane: ControlPlane, api: Api, namespace: str) -> Configuration:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/rel/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    configuration = Configuration(host=control_plane.url)
    configuration.ssl_ca_cert = str(control_plane.files.ca)
    configuration.api_key["BearerToken"] = f"Bearer {api.request('POST', path, request)['status']['token']}"
    return configuration


def use_every_right(configuration: Configuration, namespace: str) -> list[str]:
    """Do all that the keeper ever does; the calls that were refused, by name."""
    cluster = ApiCluster(configuration, Target(namespace, f"rel.{namespace}", "rel-certificates", "rel-certs", "rel"))
    refused: list[str] = []

    def tried(name: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ClusterError as error:
            if error.status == 403:
                refused.append(name)
            return None

    tried("create secrets", lambda: cluster.create_secret(data_of(EMPTY)))
    secret = tried("get secrets", cluster.secret)
    version = secret.version if secret else "1"
    tried("patch secrets", lambda: cluster.change_secret(version, data_of(EMPTY), rotated=False))
    published = tried("get mutatingwebhookconfigurations", cluster.configuration)
    if published is not None:
        tried("patch mutatingwebhookconfigurations", lambda: cluster.publish(published, b""))
    tried("create configmaps", lambda: cluster.probe(""))
    with closing(Election(configuration, namespace, "rel-certs", "me", leaderless="")) as election:
        # The first makes the Lease, the second renews it.
        refused += [name for name in ("lead", "renew") if not election.leads()]
    return refused


def keepers_verbs() -> list[tuple[str, str]]:
    """Resource and verb of each right that the chart's comments say the keeper needs."""
    found, resources = [], ""
    for line in (CHART / "templates" / "rbac.yaml").read_text().splitlines():
        if "resources: [" in line:
            resources = line.split("[")[1].rstrip("]")
        elif f"# {KEEPER}" in line:
            found.append((resources, line.split("#")[0].strip("- ")))
    return found


def without(role: Object, resource: str, verb: str) -> Object:
    role = copy.deepcopy(role)
    for rule in role["rules"]:
        if resource in rule["resources"]:
            rule["verbs"] = [each for each in rule["verbs"] if each != verb]
    role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
    return role


def test_with_the_rights_of_the_chart_nothing_is_refused(
    control_plane: ControlPlane, api: Api, rights: list[Object], release_namespace: str
) -> None:
    configuration = configured(control_plane, api, release_namespace)
    # New roles take a moment to reach the API server's own cache.
    wait_until(lambda: use_every_right(configuration, release_namespace) == [], "nothing to be refused", 20)


@pytest.mark.parametrize(("resource", "verb"), keepers_verbs(), ids=lambda part: part)
def test_without_any_one_of_them_something_is_refused(
    control_plane: ControlPlane, api: Api, rights: list[Object], release_namespace: str, resource: str, verb: str
) -> None:
    configuration = configured(control_plane, api, release_namespace)
    for role in rights:
        if role["kind"] in ("Role", "ClusterRole"):
            changed = without(role, resource, verb)
            metadata = changed["metadata"]
            api.patch(role["kind"], metadata["name"], {"rules": changed["rules"]}, metadata.get("namespace"))

    def refused() -> list[str]:
        for kind, name in (("Secret", "rel-certificates"), ("Lease", "rel-certs")):
            api.delete(kind, name, release_namespace, missing_ok=True)
        return use_every_right(configuration, release_namespace)

    expected = {
        ("leases", "create"): ["lead", "renew"],
        ("leases", "get"): ["lead", "renew"],
        ("leases", "update"): ["renew"],
    }.get((resource, verb), [f"{verb} {resource}"])
    wait_until(lambda: refused() == expected, f"{expected} to be refused, and nothing else", 20)
