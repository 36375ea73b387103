"""The server's rights: with those of the chart it can do all that it does, and without any one of them it cannot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api
from e2e.conftest import define
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART
from e2e.install.server import Right, Server, definitions, populate, running_server, wait_allowed
from e2e.objects import Object
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e

ROLE = "server-rights"


def rights() -> list[Right]:
    """Each right that the chart's comments say the server needs."""
    found, groups, resources = [], "", ""
    # The first document is the server's role; the controller's own, which name functions of it too, are further down.
    server = (CHART / "templates" / "rbac.yaml").read_text().partition("\n---\n")[0]
    for line in server.splitlines():
        if "apiGroups: [" in line:
            groups = line.split("[")[1].rstrip("]")
        elif "resources: [" in line:
            resources = line.split("[")[1].rstrip("]")
        elif match := re.search(r"- (\w+) # webhook\.", line):
            found += [
                Right(group.strip('" '), resource.strip(), match[1])
                for group in groups.split(",")
                for resource in resources.split(",")
            ]
    return found


RIGHTS = rights()


@dataclass
class Ground:
    """A namespace with everything in it that a server can be asked about, and its account there."""

    api: Api
    plane: ControlPlane
    namespace: str
    pods: list[Object]

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{ROLE}"

    def token(self) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{ROLE}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.api.request("POST", path, request)["status"]["token"]
        return token

    def allow_all(self, but: Right | None = None) -> None:
        rules = [
            {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
            for right in RIGHTS
            if right != but
        ]
        self.api.patch("ClusterRole", ROLE, {"rules": rules})
        wait_allowed(self.api, self.user, RIGHTS, but=but)


@pytest.fixture(scope="module")
def ground(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        define(api, *definitions())
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "server-rights-"}}
        namespace: str = api.create(manifest)["metadata"]["name"]
        nodes = [f"{namespace}-{i}" for i in range(3)]
        made = [api.create(each) for each in objects.local_cluster(nodes, volumes=2)]
        subject = {"kind": "ServiceAccount", "name": ROLE, "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
        metadata = {"name": ROLE, "namespace": namespace}
        made.append(api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": ROLE}}
        made.append(api.create({**rbac, "kind": "ClusterRole", "rules": []}))
        made.append(api.create({**rbac, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}))
        found = Ground(api, control_plane, namespace, populate(api, namespace, nodes))
        # Afterwards the events are there, so that the next server has to count them up.
        found.allow_all()
        asked(found, tmp_path_factory.mktemp("first"), lambda _server: True)
        yield found
        for each in reversed(made):
            api.delete(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"), missing_ok=True)
        api.delete("Namespace", namespace)


def asked(ground: Ground, directory: Path, enough: Callable[[Server], object]) -> tuple[set[Right], set[Right]]:
    """A server's used and refused rights, after it was asked about every pod."""
    with running_server(ground.plane, directory, ground.token()) as server:
        for pod in ground.pods:
            server.review(pod)
        wait_until(lambda: enough(server), "the server to have made its calls", 40)
        return server.used(), server.refused()


def test_with_the_rights_of_the_chart_every_one_is_used_and_nothing_refused(ground: Ground, tmp_path: Path) -> None:
    ground.allow_all()
    used, refused = asked(ground, tmp_path, lambda server: server.refused() or server.used() >= set(RIGHTS))
    assert refused == set()
    assert used == set(RIGHTS)


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_without_any_one_of_them_the_server_is_refused_something(ground: Ground, tmp_path: Path, right: Right) -> None:
    ground.allow_all(but=right)
    _, refused = asked(ground, tmp_path, lambda server: server.refused())
    assert refused == {right}
