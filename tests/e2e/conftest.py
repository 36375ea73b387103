"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api, wait_until_usable
from e2e.chart import SWITCH
from e2e.control_plane import ControlPlane, missing_binaries
from e2e.fault_proxy import FaultProxy
from e2e.kinds import kind_of
from e2e.namespaces import define, fresh_namespace, registered
from e2e.objects import Object
from e2e.place import Create, Place
from e2e.replicas import SERVICE, Webhook, wait_until_called

# It asserts for the tests.
pytest.register_assert_rewrite("e2e.disturbed")

TIMEOUT = 300
"""Seconds for a test that says nothing else; the first one also waits for the control plane."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder a longer limit than the unit tests'."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


COUNTED = "counted"


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A function that puts a line into the summary at the end: what a scenario counted."""
    # It travels with the test's report, also from another process.
    return lambda fact: request.node.user_properties.append((COUNTED, fact))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the scenarios counted."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    facts = [
        f"{report.nodeid.rpartition('::')[2]}: {fact}"
        for report in sorted(calls, key=lambda report: report.nodeid)
        for name, fact in report.user_properties
        if name == COUNTED
    ]
    if facts:
        terminalreporter.section("what the scenarios counted")
        for fact in facts:
            terminalreporter.line(fact)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that all tests share. A test that breaks it mends it before it ends."""
    if problem := missing_binaries():
        pytest.fail(problem, pytrace=False)
    # Below pytest's own folder: the logs of the last runs stay, older ones are cleared away.
    folder = tmp_path_factory.mktemp("control-plane")
    # The default limit of 20 calls/s would stretch every round, and pull the creates of a burst apart.
    with ControlPlane(folder, controller_manager_flags=["--kube-api-qps=100", "--kube-api-burst=200"]) as plane:
        yield plane


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """The administrator's client of the first API server."""
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as client:
        yield client


@pytest.fixture
def create(api: Api) -> Iterator[Callable[..., list[Object]]]:
    """A function that creates objects, and waits for nodes and volumes to be usable; all is gone after the test."""
    created: list[Object] = []

    def create(*manifests: Object) -> list[Object]:
        made = []
        for manifest in manifests:
            made.append(api.create(manifest))
            created.append(made[-1])
        wait_until_usable(api, made)
        return made

    yield create
    for found in reversed(created):
        metadata = found["metadata"]
        api.delete(kind_of(found), metadata["name"], metadata.get("namespace"), missing_ok=True)
    # The next test may use the same names.
    uids: dict[tuple[str, str | None], set[str]] = {}
    for found in created:
        where = kind_of(found), found["metadata"].get("namespace")
        uids.setdefault(where, set()).add(found["metadata"]["uid"])
    for (kind, namespace), gone in uids.items():
        api.wait_for(kind, _none_of(gone), namespace)


@pytest.fixture
def namespace(api: Api, create: Create, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace, in which pods can be created; it is deleted, and empty before the next test.

    It takes `create` so that it goes first: its claims hold the volumes.
    """
    with fresh_namespace(api, request.node.name) as name:
        yield name


def _none_of(uids: set[str]) -> Callable[[list[Object]], bool]:
    return lambda found: all(other["metadata"]["uid"] not in uids for other in found)


@pytest.fixture
def open_place(api: Api, create: Create, namespace: str) -> Place:
    """A namespace whose pods go to no webhook."""
    return Place(api, namespace, create)


@pytest.fixture(scope="session")
def service_namespace(control_plane: ControlPlane) -> str:
    """The namespace of the Service that the webhook configurations name."""
    name = "webhook-system"
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        api.create(objects.external_name_service(name, SERVICE))
    return name


@pytest.fixture(scope="session")
def webhook(
    control_plane: ControlPlane, service_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """Three replicas that nobody disturbs, for the namespaces that are labelled with their name."""
    folder = tmp_path_factory.mktemp("webhook")
    with (
        Webhook(control_plane, folder, replicas=3, chart_rights=True, service=(service_namespace, SERVICE)) as webhook,
        Api(control_plane.url, control_plane.token, control_plane.files.ca) as api,
    ):
        api.create(webhook.configuration("undisturbed", failure_policy="Fail"))
        yield webhook
        api.delete("MutatingWebhookConfiguration", "undisturbed")


@pytest.fixture
def place(api: Api, create: Create, webhook: Webhook, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace whose members go to the undisturbed webhook."""
    with fresh_namespace(api, request.node.name, {SWITCH: "undisturbed"}) as name:
        wait_until_called(api, name)
        yield Place(api, name, create)


@pytest.fixture
def second_place(api: Api, create: Create, webhook: Webhook, request: pytest.FixtureRequest) -> Iterator[Place]:
    """One more of these."""
    with fresh_namespace(api, request.node.name, {SWITCH: "undisturbed"}) as name:
        wait_until_called(api, name)
        yield Place(api, name, create)


@pytest.fixture(scope="session")
def frail(
    control_plane: ControlPlane, service_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """Three replicas, each behind a fault proxy; a test leaves them running and without rules."""
    folder = tmp_path_factory.mktemp("frail")
    with Webhook(
        control_plane, folder, replicas=3, proxied=True, chart_rights=True, service=(service_namespace, SERVICE)
    ) as webhook:
        yield webhook


@pytest.fixture
def time_out() -> int:
    """Seconds that the API server waits for the frail replicas; a test that waits them out asks for fewer."""
    return 10


@pytest.fixture
def frail_place(
    api: Api, create: Create, frail: Webhook, time_out: int, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """A namespace whose members go to the frail replicas."""
    with registered(api, create, frail, request.node.name, timeoutSeconds=time_out) as place:
        yield place
    for proxy in frail.proxies:
        proxy.set_rules()


@pytest.fixture(scope="session")
def advanced_sets(control_plane: ControlPlane) -> None:
    """The kind of the advanced StatefulSet, without its controller."""
    definition = objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets")
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        define(api, definition)


@pytest.fixture(scope="session")
def tidb_cluster_kind(control_plane: ControlPlane) -> None:
    """The kind TidbCluster, without its controller."""
    definition = objects.custom_resource_definition("pingcap.com", "v1alpha1", "TidbCluster", "tidbclusters")
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        define(api, definition)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the ends of the replicas' logs beside a failure."""
    report: pytest.TestReport = yield
    if report.failed:
        webhooks = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Webhook)]
        report.sections += [("webhook", webhook.logs()) for webhook in webhooks]
    return report


@pytest.fixture
def fault_proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """A proxy before the first API server; without rules it is transparent."""
    with FaultProxy(control_plane.url, control_plane.ca) as proxy:
        yield proxy
