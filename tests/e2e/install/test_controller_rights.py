"""The controller's own rights: with those of the chart it works, without any one of them something fails by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import Configuration

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART, Helm
from e2e.install.test_rights import without
from e2e.objects import Object, container
from e2e.waiting import wait_until
from leases.election import Election
from webhook.cluster import door
from webhook.cluster.api import ApiDoor
from webhook.errors import ApiError, Forbidden

pytestmark = pytest.mark.e2e

NAME = "rel-controller"
KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Lease")
TIMEOUT = 5.0
LISTED = {
    "statefulsets": (door.STATEFUL_SETS, door.ADVANCED_STATEFUL_SETS),
    "tidbclusters": (door.TIDB_CLUSTERS,),
    "dmclusters": (door.DM_CLUSTERS,),
    "clusters": (door.V2_CLUSTERS,),
}


@pytest.fixture
def rights(api: Api, release_namespace: str, tmp_path: Path) -> Iterator[list[Object]]:
    """The chart's accounts, roles with their bindings, and the Lease; nothing of them runs."""
    helm = Helm(4, tmp_path)
    rendered = helm.run("template", "rel", CHART, "-n", release_namespace, values={"fullnameOverride": "rel"})
    found = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] in KINDS]
    ours = [each for each in found if "helm.sh/hook" not in each["metadata"].get("annotations", {})]
    for each in ours:
        api.create(each)
    yield ours
    for each in ours:
        metadata = each["metadata"]
        api.delete(each["kind"], metadata["name"], metadata.get("namespace"), missing_ok=True)


@pytest.fixture
def configuration(control_plane: ControlPlane, api: Api, rights: list[Object], release_namespace: str) -> Configuration:
    path = f"/api/v1/namespaces/{release_namespace}/serviceaccounts/{NAME}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    configuration = Configuration(host=control_plane.url)
    configuration.ssl_ca_cert = str(control_plane.files.ca)
    configuration.api_key["BearerToken"] = f"Bearer {api.request('POST', path, request)['status']['token']}"
    return configuration


def use_every_right(api: Api, configuration: Configuration, namespace: str) -> set[str]:
    """Do all that only the controller does; the calls that were refused, by name."""
    reached = ApiDoor(configuration)
    pod = api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "freed-", "namespace": namespace},
            "spec": {"schedulerName": "nobody", "containers": [container("main", cpu="1m", memory="1Mi")]},
        }
    )["metadata"]
    refused: set[str] = set()

    def tried(name: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except Forbidden:
            refused.add(name)
        except ApiError:
            return

    tried("get mutatingwebhookconfigurations", lambda: reached.get(door.WEBHOOKS, f"rel.{namespace}", timeout=TIMEOUT))
    tried("list endpointslices", lambda: reached.list(door.ENDPOINT_SLICES, namespace=namespace, timeout=TIMEOUT))
    tried("get services", lambda: reached.get(door.SERVICES, "rel", namespace=namespace, timeout=TIMEOUT))
    for plural, resources in LISTED.items():
        for resource in resources:
            tried(f"list {plural}", lambda of=resource: reached.list(of, timeout=TIMEOUT))
    tried("get pods", lambda: reached.get(door.PODS, pod["name"], namespace=namespace, timeout=TIMEOUT))
    tried(
        "delete pods",
        lambda: reached.delete(
            door.PODS,
            pod["name"],
            namespace=namespace,
            uid=pod["uid"],
            resource_version=pod["resourceVersion"],
            timeout=TIMEOUT,
        ),
    )
    api.delete("Pod", pod["name"], namespace, missing_ok=True, gracePeriodSeconds=0)
    election = Election(configuration, namespace, NAME, "me", leaderless="")
    # The first takes the empty Lease, the second renews it.
    refused |= {"lead" for _ in range(2) if not election.leads()}
    election.close()
    return refused


def own_verbs() -> list[tuple[tuple[str, ...], str]]:
    """Resources and verb of each right of the controller's own roles."""
    found: list[tuple[tuple[str, ...], str]] = []
    resources, ours = (), False
    for line in (CHART / "templates" / "rbac.yaml").read_text().splitlines():
        if line.startswith("kind: "):
            ours = False
        if line.strip().startswith("name: {{") and "ontroller" in line:
            ours = True
        if "resources: [" in line:
            resources = tuple(line.split("[")[1].rstrip("]").split(", "))
        elif ours and line.strip().startswith("- ") and "# webhook." in line:
            found.append((resources, line.split("#")[0].strip("- ")))
    return found


def test_with_the_rights_of_the_chart_nothing_is_refused(
    api: Api, configuration: Configuration, release_namespace: str
) -> None:
    # New roles take a moment to reach the API server's own cache.
    wait_until(lambda: not use_every_right(api, configuration, release_namespace), "nothing to be refused", 20)


@pytest.mark.parametrize(
    ("resources", "verb"), own_verbs(), ids=lambda part: part if isinstance(part, str) else "+".join(part)
)
def test_without_any_one_of_them_the_controller_cannot_go_on(
    api: Api,
    configuration: Configuration,
    rights: list[Object],
    release_namespace: str,
    resources: tuple[str, ...],
    verb: str,
) -> None:
    for role in rights:
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"].endswith("-controller"):
            changed = without(role, resources[0], verb)
            metadata = changed["metadata"]
            api.patch(role["kind"], metadata["name"], {"rules": changed["rules"]}, metadata.get("namespace"))
    expected = {"lead"} if resources == ("leases",) else {f"{verb} {resource}" for resource in resources}
    wait_until(
        lambda: use_every_right(api, configuration, release_namespace) == expected, f"{expected} alone refused", 20
    )
