"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.api import Api, ready_for_pods
from e2e.control_plane import ControlPlane, missing_binaries
from e2e.fault_proxy import FaultProxy
from e2e.objects import Object

TIMEOUT = 300
"""Seconds for a test that says nothing else; the first one also waits for the control plane."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder a longer limit than the unit tests'."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that all tests share. A test that breaks it mends it before it ends."""
    if problem := missing_binaries():
        pytest.fail(problem, pytrace=False)
    # Below pytest's own folder: the logs of the last runs stay, older ones are cleared away.
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """The administrator's client of the first API server."""
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as client:
        yield client


@pytest.fixture
def create(api: Api) -> Iterator[Callable[..., list[Object]]]:
    """A function that creates objects, and waits for nodes to be usable; all is gone after the test."""
    created: list[Object] = []

    def create(*manifests: Object) -> list[Object]:
        made = []
        for manifest in manifests:
            made.append(api.create(manifest))
            created.append(made[-1])
        if nodes := {found["metadata"]["name"] for found in made if found["kind"] == "Node"}:
            api.wait_for("Node", lambda seen: all(ready_for_pods(n) for n in seen if n["metadata"]["name"] in nodes))
        return made

    yield create
    for found in reversed(created):
        metadata = found["metadata"]
        api.delete(found["kind"], metadata["name"], metadata.get("namespace"), missing_ok=True)
    # The next test may use the same names.
    for found in created:
        kind, metadata = found["kind"], found["metadata"]
        api.wait_for(kind, _none(metadata["uid"]), metadata.get("namespace"))


@pytest.fixture
def namespace(api: Api, create: Callable[..., list[Object]], request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace, in which pods can be created; it is deleted, and empty before the next test.

    It takes `create` so that it goes first: its claims hold the volumes.
    """
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": f"{words[:40].strip('-')}-"},
    }
    name: str = api.create(manifest)["metadata"]["name"]
    # Until the controller manager has made it, every pod is refused.
    api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
    yield name
    api.delete("Namespace", name)
    # The namespace controller begins only after 5 s, and grants the pods their grace.
    for kind in ("Pod", "PersistentVolumeClaim"):
        api.delete_all(kind, name, gracePeriodSeconds=0)
    for kind in ("Pod", "PersistentVolumeClaim"):
        api.wait_for(kind, lambda found: not found, name)


def _none(uid: str) -> Callable[[list[Object]], bool]:
    return lambda found: all(other["metadata"]["uid"] != uid for other in found)


@pytest.fixture
def fault_proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """A proxy before the first API server; without rules it is transparent."""
    with FaultProxy(control_plane.url, control_plane.ca) as proxy:
        yield proxy
