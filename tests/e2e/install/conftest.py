"""Fixtures of the chart's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.helm import Helm, missing
from e2e.install.release import Release, running_release

_RELEASES = pytest.StashKey[list[Release]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show what the pods of a test's releases have said, beside a failure."""
    report: pytest.TestReport = yield
    if report.failed and report.when == "call":
        said = [line for release in item.stash.get(_RELEASES, []) for line in release.kubelet.logs()]
        report.sections.append(("pods", "\n".join(said)))
    return report


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Callable[[int], Helm]:
    """Helm of a major version, as the administrator."""
    if problem := missing():
        pytest.fail(problem, pytrace=False)
    return lambda major: Helm(major, tmp_path, control_plane.kubeconfig)


@pytest.fixture
def release_namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for a release, gone after the test."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "tidb-admin-"}}
    name: str = api.create(manifest)["metadata"]["name"]
    api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
    yield name
    api.delete("Namespace", name, missing_ok=True)


@pytest.fixture
def new_release(
    control_plane: ControlPlane,
    api: Api,
    helm: Callable[[int], Helm],
    release_namespace: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Release]]:
    """Makes releases whose processes run until the test ends; nothing is installed yet."""
    made = request.node.stash.setdefault(_RELEASES, [])
    with ExitStack() as stack:

        def make(major: int = 4, name: str = "rel", namespace: str = release_namespace) -> Release:
            release = Release(control_plane, api, helm(major), namespace, tmp_path / f"{namespace}-{name}", name)
            made.append(release)
            return stack.enter_context(running_release(release))

        yield make


@pytest.fixture
def release(new_release: Callable[..., Release]) -> Release:
    """An installed release with two ready replicas."""
    made = new_release()
    made.install()
    made.kubelet.wait_ready(2)
    return made
