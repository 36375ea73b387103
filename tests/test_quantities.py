"""Quantities as Kubernetes writes them, and what a pod asks of its node."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster.quantities import LARGEST, parse_quantity, requests_of


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0", "0"),
        ("2", "2"),
        (2, "2"),
        (0.5, "0.5"),
        ("250m", "0.25"),
        ("100u", "0.0001"),
        ("5n", "0.000000005"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("2E", "2000000000000000000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1", "1"),
        ("-1", "-1"),
        ("9E", "9000000000000000000"),
        ("10E", str(LARGEST)),
        ("1e999", str(LARGEST)),
        ("-10E", str(-LARGEST)),
    ],
)
def test_a_quantity_is_read_in_base_units(written: object, amount: str) -> None:
    assert parse_quantity(written) == Decimal(amount)


@pytest.mark.parametrize(
    "written",
    [
        None,
        True,
        [],
        {},
        "",
        " 1",
        "1 ",
        "1\n",
        "1_000",
        "NaN",
        "inf",
        "1mi",
        "1ki",
        "1e",
        "1e9999",
        "m",
        "١",
        float("nan"),
    ],
    ids=repr,
)
def test_what_is_no_quantity_is_none(written: object) -> None:
    assert parse_quantity(written) is None


@given(st.text() | st.floats() | st.integers() | st.none())
def test_a_quantity_never_raises_and_is_finite(written: object) -> None:
    parsed = parse_quantity(written)
    assert parsed is None or parsed.is_finite()


def a_container(*, limits: Any = None, restart: str | None = None, **requests: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests, "limits": limits}}
    return container if restart is None else container | {"restartPolicy": restart}


def a_sidecar(**requests: str) -> dict[str, Any]:
    return a_container(restart="Always", **requests)


def asked(**spec: Any) -> dict[str, str]:
    requests = requests_of({"spec": spec})
    return {name: f"{amount.normalize():f}" for name, amount in requests.items()}


def test_containers_add_up() -> None:
    containers = [a_container(cpu="1", memory="1Ki"), a_container(cpu="500m")]
    assert asked(containers=containers) == {"cpu": "1.5", "memory": "1024", "pods": "1"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param(
            {"initContainers": [a_container(cpu="3"), a_container(cpu="2")]}, "3", id="the greatest init container"
        ),
        pytest.param({"initContainers": [a_container(cpu="1")]}, "2", id="a small init container"),
        pytest.param({"initContainers": [a_sidecar(cpu="1")]}, "3", id="a sidecar adds"),
        pytest.param(
            {"initContainers": [a_sidecar(cpu="1"), a_container(cpu="4")]}, "5", id="an init container beside a sidecar"
        ),
        pytest.param(
            {"initContainers": [a_container(cpu="4"), a_sidecar(cpu="1")]}, "4", id="an init container before a sidecar"
        ),
        pytest.param({"overhead": {"cpu": "1"}}, "3", id="overhead"),
        pytest.param({"resources": {"requests": {"cpu": "7"}}}, "7", id="the pod's own request"),
        pytest.param({"resources": {"limits": {"cpu": "7"}}}, "2", id="the pod's own limit"),
        pytest.param(
            {"resources": {"requests": {"cpu": "7"}}, "overhead": {"cpu": "1"}},
            "8",
            id="the pod's own request and overhead",
        ),
    ],
)
def test_the_greater_of_running_and_starting_counts(spec: dict[str, Any], cpu: str) -> None:
    assert asked(containers=[a_container(cpu="2")], **spec)["cpu"] == cpu


def test_a_limit_stands_for_a_request_that_is_not_there() -> None:
    container = a_container(limits={"cpu": "4", "memory": "8"}, cpu="1")
    assert asked(containers=[container]) == {"cpu": "1", "memory": "8", "pods": "1"}


def test_a_pods_limit_stands_where_nobody_asks() -> None:
    spec = {"resources": {"limits": {"memory": "8", "hugepages-2Mi": "4"}}}
    assert asked(containers=[a_container(cpu="1")], **spec) == {
        "cpu": "1",
        "memory": "8",
        "hugepages-2Mi": "4",
        "pods": "1",
    }


def test_a_pod_cannot_ask_for_extended_resources_as_a_whole() -> None:
    spec = {"resources": {"requests": {"example.com/gpu": "8"}}}
    assert asked(containers=[a_container(cpu="1")], **spec) == {"cpu": "1", "pods": "1"}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": None},
        {"spec": {"containers": None, "initContainers": 5, "overhead": "a", "resources": []}},
        {"spec": {"containers": [None, {"resources": None}, {"resources": {"requests": {"cpu": None, 5: "1"}}}]}},
    ],
    ids=["empty", "null", "wrong types", "odd containers"],
)
def test_what_is_not_there_counts_as_nothing(pod: dict[str, Any]) -> None:
    assert requests_of(pod) == {"pods": Decimal(1)}


@pytest.mark.parametrize("written", ["much", "", True, [], "-1"], ids=repr)
def test_what_cannot_be_read_is_more_than_any_node_has(written: object) -> None:
    containers = [{"resources": {"requests": {"cpu": written}}}, a_container(cpu="1")]

    assert requests_of({"spec": {"containers": containers}})["cpu"] == LARGEST


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "100u"}, {"cpu": "0.001"}, id="whole thousandths of a CPU"),
        pytest.param({"memory": "1500m"}, {"memory": "2"}, id="whole bytes"),
    ],
)
def test_amounts_are_rounded_up_as_the_scheduler_does(requests: dict[str, str], expected: dict[str, str]) -> None:
    assert asked(containers=[a_container(**requests)]) == expected | {"pods": "1"}


def resized(*, has: object, allocated: object = None, reason: str = "", kind: str = "containerStatuses") -> Any:
    """The status of a pod whose container `c` has these requests."""
    status = {"name": "c", "resources": has, "allocatedResources": allocated}
    conditions = [{"type": "PodResizePending", "reason": reason}] if reason else None
    return {kind: [status, None], "conditions": conditions}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param(None, "2", id="not running"),
        pytest.param(resized(has=None), "2", id="nothing reported"),
        pytest.param(resized(has={"requests": {"cpu": "3"}}), "3", id="has more still"),
        pytest.param(resized(has={"requests": {"cpu": "1"}}), "2", id="has less yet"),
        pytest.param(resized(has={}, allocated={"cpu": "4"}), "4", id="is allocated more"),
        pytest.param(resized(has={"requests": {"cpu": "1"}}, reason="Deferred"), "2", id="will get it later"),
        pytest.param(resized(has={"requests": {"cpu": "1"}}, reason="Infeasible"), "1", id="will never get it"),
    ],
)
def test_a_pod_that_is_being_resized_counts_for_the_most_it_has_or_gets(status: Any, cpu: str) -> None:
    requests = requests_of({"spec": {"containers": [a_container(cpu="2")]}, "status": status})

    assert requests["cpu"] == Decimal(cpu)


def test_a_sidecar_can_be_resized_too() -> None:
    status = resized(has={"requests": {"cpu": "3"}}, kind="initContainerStatuses")
    pod = {"spec": {"containers": [], "initContainers": [a_sidecar(cpu="1")]}, "status": status}

    assert requests_of(pod)["cpu"] == 3
