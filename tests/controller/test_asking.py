"""Nobody is freed whom the webhook might not be asked about again: the registration, and the breaker."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    a_generic_pod,
    a_pod,
    a_set,
    a_v1_world,
    claims,
    generic_world,
    labels_v1,
    nodes,
    with_floor,
)
from controller.standing import Leader, cordon, play_owner, pods_of
from stand import Stand

from webhook.cluster.door import ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES, WEBHOOKS, Manifest
from webhook.cluster.kinds import CUSTOM
from webhook.controller.asking import SERVICE_LABEL
from webhook.controller.memory import FIRST_PAUSE, REPLACEMENT_TIME
from webhook.core import keys
from webhook.core.manifests import pod_from
from webhook.errors import Forbidden, UnknownOutcome

CONFIGURATION = "rel.hooks"
PODS_OF_SET = [a_pod(f"db-tikv-{ordinal}") for ordinal in range(3)]
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
SERVICE = {"namespace": "hooks", "name": "rel", "path": "/mutate"}

WITHOUT_SELECTOR: Manifest = {"ports": [{"port": 443}]}


def a_webhook(**changes: Any) -> Manifest:
    client = {"service": SERVICE, "caBundle": "Q0E="}
    return {"name": "pods.tidb-ha-webhook.io", "rules": [RULE], "clientConfig": client, **changes}


def a_slice(*ready: bool | None) -> Manifest:
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {} if each is None else {"ready": each}} for each in ready]
    metadata = {"name": "rel-abc", "namespace": "hooks", "labels": {SERVICE_LABEL: "rel"}}
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, "endpoints": endpoints}


def a_bad_pin(
    *webhooks: Manifest,
    slices: tuple[Manifest, ...] = (),
    node_count: int = 5,
    service: Manifest | None = WITHOUT_SELECTOR,
) -> Stand:
    """Two of a set run; the third is pinned to a node that was cordoned, and others are possible."""
    stand = Stand(*a_v1_world(node_count=node_count), serve=(*CUSTOM, WEBHOOKS, ENDPOINT_SLICES, SERVICES))
    if service is not None:
        stand.cluster.create(SERVICES, {"metadata": {"name": "rel"}, "spec": service}, namespace="hooks", timeout=1)
    namespace = {"metadata": {"name": SPACE, "labels": {"kubernetes.io/metadata.name": SPACE}}}
    stand.cluster.create(NAMESPACES, namespace, timeout=1)
    if webhooks:
        configuration = {"metadata": {"name": CONFIGURATION}, "webhooks": list(webhooks)}
        stand.cluster.create(WEBHOOKS, configuration, timeout=1)
    for each in slices:
        stand.cluster.create(ENDPOINT_SLICES, each, namespace="hooks", timeout=1)
    for each in PODS_OF_SET[:2]:
        stand.bind(each["metadata"]["name"], stand.admit(each).node)
    cordon(stand, stand.admit(PODS_OF_SET[2]).node)
    return stand


def members(stand: Stand) -> list[Any]:
    return [pod_from(manifest) for manifest in pods_of(stand).values()]


# --- the registration


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param((), id="no slices: the Service has no selector"),
        pytest.param((a_slice(False, True),), id="one of two is ready"),
        pytest.param((a_slice(None),), id="readiness is not known"),
    ],
)
def test_a_pod_is_freed_whom_the_webhook_will_be_asked_about(slices: tuple[Manifest, ...]) -> None:
    stand = a_bad_pin(a_webhook(), slices=slices)
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(10)
    assert (leader.deleted, leader.figures.held_back) == (["db-tikv-2"], 0)


def test_a_webhook_that_is_called_by_url_has_no_endpoints_to_look_at() -> None:
    stand = a_bad_pin(a_webhook(clientConfig={"url": "https://hook.example.com/mutate", "caBundle": "Q0E="}))
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]


@pytest.mark.parametrize(
    ("webhooks", "slices", "why"),
    [
        pytest.param((), (), f"MutatingWebhookConfiguration {CONFIGURATION} is not there", id="deleted"),
        pytest.param(
            (a_webhook(namespaceSelector={"matchLabels": {"placed": "yes"}}),),
            (),
            f"MutatingWebhookConfiguration {CONFIGURATION} does not select it",
            id="namespace left out",
        ),
        pytest.param(
            (a_webhook(objectSelector={"matchLabels": {"placed": "yes"}}),), (), "does not select it", id="pod left out"
        ),
        pytest.param((a_webhook(rules=[{**RULE, "operations": ["UPDATE"]}]),), (), "does not select it", id="no rule"),
        pytest.param((a_webhook(rules=[{**RULE, "scope": "Cluster"}]),), (), "does not select it", id="no scope"),
        pytest.param((a_webhook(rules=[{**RULE, "apiVersions": ["v2"]}]),), (), "does not select it", id="no version"),
        pytest.param((a_webhook(clientConfig={"service": SERVICE}),), (), "has no caBundle", id="no bundle"),
        pytest.param((a_webhook(),), (a_slice(),), "no endpoint of the Service of", id="no replica"),
        pytest.param((a_webhook(),), (a_slice(False, False),), "no endpoint of the Service of", id="none is ready"),
    ],
)
def test_a_pod_is_not_freed_whom_nobody_would_ask_about_and_that_is_said_once(
    webhooks: tuple[Manifest, ...], slices: tuple[Manifest, ...], why: str
) -> None:
    stand = a_bad_pin(*webhooks, slices=slices)
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(120)
    assert (leader.deleted, leader.reasons) == ([], ["PodNotFreed"])
    assert (leader.figures.held_back, leader.figures.halted) == (1, False)
    message = leader.notices[0].message
    assert message.startswith("db-tikv-2 of shop/db/tikv is not deleted to be created again, though n")
    assert why in message


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(None, id="the Service was deleted, and its slices with it"),
        pytest.param({**WITHOUT_SELECTOR, "selector": {"app": "webhook"}}, id="its slices are not there yet"),
    ],
)
def test_a_service_without_slices_is_asked_only_if_somebody_else_says_where_it_leads(service: Manifest | None) -> None:
    stand = a_bad_pin(a_webhook(), service=service)
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(30)
    assert (leader.deleted, leader.reasons) == ([], ["PodNotFreed"])
    assert "no endpoint of the Service of" in leader.notices[0].message


def test_a_service_that_is_a_name_outside_of_the_cluster_has_no_slices_whatever_its_selector_says() -> None:
    outside = {"type": "ExternalName", "externalName": "hook.example.com", "selector": {"app": "webhook"}}
    leader = Leader(a_bad_pin(a_webhook(), service=outside), configuration=CONFIGURATION)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]


def test_once_the_configuration_is_back_the_pod_is_freed() -> None:
    stand = a_bad_pin()
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(20)
    stand.cluster.create(WEBHOOKS, {"metadata": {"name": CONFIGURATION}, "webhooks": [a_webhook()]}, timeout=1)
    leader.turns(5)
    assert leader.deleted == ["db-tikv-2"]
    leader.turns(5)
    assert leader.figures.held_back == 0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("get mutatingwebhookconfigurations", Forbidden("get", "mutatingwebhookconfigurations", status=403)),
        ("list namespaces", UnknownOutcome("list", "namespaces")),
        ("list endpointslices", Forbidden("list", "endpointslices", status=403)),
        ("get services", Forbidden("get", "services", status=403)),
    ],
)
def test_where_the_registration_cannot_be_read_nobody_is_freed(call: str, error: Exception) -> None:
    stand = a_bad_pin(a_webhook())
    stand.door.fails(call, error)
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(60)
    assert (leader.deleted, leader.reasons) == ([], ["PodNotFreed"])
    assert f"cannot be read how the API server is told of the webhook: {error}" in leader.notices[0].message


def test_a_pod_that_can_run_again_is_not_held_back_any_more() -> None:
    stand = a_bad_pin()
    leader = Leader(stand, configuration=CONFIGURATION)
    leader.turns(20)
    assert leader.figures.held_back == 1
    cordon(stand, *(f"n{number}" for number in range(1, 6)), uncordon=True)
    leader.turns(5)
    assert leader.figures.held_back == 0


# --- the breaker


def come_past_us(stand: Stand, pod: Manifest) -> None:
    """Its owner creates it, and nobody asks."""
    stand.cluster.admit(pod, namespace=SPACE)


def broken(stand: Stand) -> Leader:
    """A leader whose first freed pod has come again without a decision; a second group's pod waits."""
    leader = Leader(stand)
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2"]
    come_past_us(stand, PODS_OF_SET[2])
    leader.turns(0)
    return leader


def waiting_again(stand: Stand) -> None:
    """One more member is pinned to a node that goes bad."""
    stand.delete(PODS, "db-tikv-1")
    cordon(stand, stand.admit(PODS_OF_SET[1]).node)


def test_after_a_freed_pod_came_again_without_a_decision_nobody_is_freed() -> None:
    stand = a_bad_pin(node_count=7)
    leader = broken(stand)
    assert (leader.reasons, leader.figures.halted) == (["PodReplaced", "WebhookNotAsked"], True)
    assert "db-tikv-2 of shop/db/tikv was created again without a decision" in leader.notices[1].message
    waiting_again(stand)
    leader.turns(4 * FIRST_PAUSE)
    assert leader.deleted == ["db-tikv-2"]
    assert leader.reasons == ["PodReplaced", "WebhookNotAsked", "PodNotFreed"]
    assert "shop/db-tikv-2 was created without a decision" in leader.notices[2].message
    assert leader.figures.held_back == 1


def test_a_member_that_comes_later_with_a_decision_lets_rescue_go_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stand = a_bad_pin(node_count=7)
    leader = broken(stand)
    leader.rescue.seen(members(stand))
    leader.rescue.seen(members(stand))
    assert leader.figures.halted
    # Audits are a minute apart; a creationTimestamp has whole seconds.
    stand.clock.elapsed += 60
    waiting_again(stand)
    leader.rescue.seen(members(stand))
    assert not leader.figures.halted
    assert "pods are freed again" in caplog.text
    leader.turns(10)
    assert leader.deleted == ["db-tikv-2", "db-tikv-1"]


def test_members_that_come_without_a_decision_change_nothing() -> None:
    stand = a_bad_pin(node_count=7)
    leader = broken(stand)
    leader.rescue.seen(members(stand))
    stand.delete(PODS, "db-tikv-1")
    come_past_us(stand, PODS_OF_SET[1])
    leader.rescue.seen(members(stand))
    assert leader.figures.halted


def test_a_pod_that_came_again_with_a_decision_or_with_the_guard_of_the_floor_stops_nobody() -> None:
    for again in (None, with_floor(a_pod("db-tikv-2"))):
        stand = a_bad_pin()
        leader = Leader(stand)
        leader.turns(10)
        if again is None:
            play_owner(stand, *PODS_OF_SET)
        else:
            come_past_us(stand, again)
        leader.turns(0)
        assert not leader.figures.halted


def test_a_decision_that_was_copied_from_another_pod_is_none() -> None:
    stand = a_bad_pin()
    leader = Leader(stand)
    copied = pods_of(stand)["db-tikv-0"]["metadata"]["annotations"]
    leader.turns(10)
    come_past_us(stand, a_pod("db-tikv-2", annotations=copied))
    leader.turns(0)
    assert leader.figures.halted


def test_what_came_again_and_is_no_member_any_more_stops_nobody() -> None:
    stand = a_bad_pin()
    leader = Leader(stand)
    leader.turns(10)
    come_past_us(stand, a_pod("db-tikv-2", labels={"app": "something else"}))
    leader.turns(0)
    assert not leader.figures.halted


def test_whoever_leads_next_begins_with_the_breaker_closed() -> None:
    stand = a_bad_pin(node_count=7)
    leader = broken(stand)
    leader.rescue.forget()
    assert not leader.figures.halted


def test_a_group_that_nobody_asks_about_loses_one_pod_whatever_others_come_with() -> None:
    stand = Stand(*nodes(9), *(part for each in "ab" for part in (a_set(cluster=each), *claims(3, "tikv", each))))
    lost = [a_pod(f"a-tikv-{ordinal}", labels=labels_v1("tikv", "a")) for ordinal in range(3)]
    asked = a_pod("b-tikv-0", labels=labels_v1("tikv", "b"))
    cordon(stand, *[stand.admit(each).node for each in lost])
    leader = Leader(stand)
    for _ in range(20):
        for _ in range(12):
            leader.turns(0)
            stand.clock.elapsed += 5
            for each in lost:
                if each["metadata"]["name"] not in pods_of(stand):
                    come_past_us(stand, each)
        leader.rescue.seen(members(stand))
        if "b-tikv-0" in pods_of(stand):
            stand.delete(PODS, "b-tikv-0")
        stand.admit(asked)
    assert (len(leader.deleted), leader.figures.halted) == (1, True)
    # Of the other group it is known that it is asked about: there rescue goes on.
    stand.clock.elapsed += 60
    stand.delete(PODS, "b-tikv-0")
    cordon(stand, stand.admit(asked).node)
    leader.rescue.seen(members(stand))
    leader.turns(10)
    assert leader.deleted[1:] == ["b-tikv-0"]


def test_a_member_that_an_audit_could_not_read_before_is_none_that_came_later() -> None:
    stand = a_bad_pin(node_count=7)
    leader = broken(stand)
    leader.rescue.seen([])
    leader.rescue.seen(members(stand))
    assert leader.figures.halted


def test_an_owner_that_is_slow_to_create_costs_one_pod_and_opens_the_breaker_when_it_does() -> None:
    stand = Stand(*a_v1_world(node_count=9))
    cordon(stand, *[stand.admit(pod).node for pod in PODS_OF_SET])
    leader = Leader(stand)
    leader.turns(10 + 2 * REPLACEMENT_TIME)
    assert (len(leader.deleted), leader.figures.halted) == (1, False)
    come_past_us(stand, next(pod for pod in PODS_OF_SET if pod["metadata"]["name"] == leader.deleted[0]))
    leader.turns(60)
    assert (len(leader.deleted), leader.figures.halted) == (1, True)
    assert "WebhookNotAsked" in leader.reasons


def test_a_pod_whose_set_has_opted_out_meanwhile_stops_nobody() -> None:
    stand = Stand(*generic_world(), *nodes(6)[3:])
    pods = [a_generic_pod(ordinal) for ordinal in range(3)]
    for pod in pods[:2]:
        stand.bind(pod["metadata"]["name"], stand.admit(pod).node)
    cordon(stand, stand.admit(pods[2]).node)
    leader = Leader(stand)
    leader.turns(10)
    opted_out = a_generic_pod(2)
    del opted_out["metadata"]["labels"][keys.CLASS_LABEL]
    stand.admit(opted_out)
    leader.turns(0)
    assert (leader.reasons, leader.figures.halted) == (["PodReplaced"], False)
