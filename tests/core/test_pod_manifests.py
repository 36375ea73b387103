from __future__ import annotations

from typing import Any

import pytest

from webhook.core.manifests import pod_from
from webhook.core.objects import Claim, HostPort, LabelSelector, PodAffinityTerm, Requirement, SpreadConstraint

LABELS = {"app": "tikv", "revision": "r1"}
SELECTOR = {"matchLabels": {"app": "tikv"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_pod(**spec: Any) -> Any:
    return pod_from({"metadata": {"namespace": "t1", "name": "db-0", "labels": LABELS}, "spec": spec})


def test_label_keys_of_an_affinity_term_become_requirements_as_the_api_server_makes_them_after_admission():
    term = {
        "topologyKey": "zone",
        "labelSelector": SELECTOR,
        "matchLabelKeys": ["revision", "absent"],
        "mismatchLabelKeys": ["app"],
    }

    pod = a_pod(affinity={"podAffinity": {REQUIRED: [term]}, "podAntiAffinity": {REQUIRED: [term]}})

    expected = PodAffinityTerm(
        "zone",
        LabelSelector(
            {"app": "tikv"}, (Requirement("revision", "In", ("r1",)), Requirement("app", "NotIn", ("tikv",)))
        ),
    )
    assert (pod.affinity, pod.anti_affinity) == ((expected,), (expected,))


def test_label_keys_beside_no_selector_make_none():
    term = {"topologyKey": "zone", "matchLabelKeys": ["revision"]}

    assert a_pod(affinity={"podAffinity": {REQUIRED: [term]}}).affinity == (PodAffinityTerm("zone", None),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, SpreadConstraint("zone", 1, LabelSelector({"app": "tikv"})), id="as Kubernetes fills it in"),
        pytest.param(
            {"minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            SpreadConstraint("zone", 1, LabelSelector({"app": "tikv"}), 3, honors_affinity=False, honors_taints=True),
            id="everything",
        ),
        pytest.param(
            {"matchLabelKeys": ["revision"]},
            SpreadConstraint("zone", 1, LabelSelector({"app": "tikv"}, (Requirement("revision", "In", ("r1",)),))),
            id="label keys",
        ),
        pytest.param({"labelSelector": None}, SpreadConstraint("zone", 1, None), id="no selector"),
        pytest.param(
            {"maxSkew": "1", "minDomains": True},
            SpreadConstraint("zone", 0, LabelSelector({"app": "tikv"})),
            id="unreadable numbers allow less",
        ),
        pytest.param({"whenUnsatisfiable": "ScheduleAnyway"}, None, id="a wish"),
    ],
)
def test_a_spread_constraint_that_forbids_is_read(fields, expected):
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": SELECTOR,
    }

    found = a_pod(topologySpreadConstraints=[constraint | fields]).spread

    assert found == ((expected,) if expected else ())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"ports": [{"containerPort": 80}]}]}, (), id="no host port"),
        pytest.param({"containers": [{"ports": [{"hostPort": 80}]}]}, (HostPort(80),), id="a host port"),
        pytest.param(
            {"containers": [{"ports": [{"hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]},
            (HostPort(80, "UDP", "10.0.0.1"),),
            id="protocol and address",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]},
            (HostPort(80),),
            id="in the node's network every port is one",
        ),
        pytest.param(
            {"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]},
            (HostPort(80),),
            id="a sidecar",
        ),
        pytest.param({"initContainers": [{"ports": [{"hostPort": 80}]}]}, (), id="gone before the pod runs"),
        pytest.param(
            {"containers": [{"ports": [{"hostPort": 80}]}, {"ports": [{"hostPort": 80}]}]}, (HostPort(80),), id="twice"
        ),
        pytest.param({"containers": [{"ports": [{"hostPort": "80"}, {"hostPort": -1}, None]}]}, (), id="unreadable"),
    ],
)
def test_the_host_ports_are_those_that_are_taken_for_the_pod_s_life(spec, expected):
    assert a_pod(**spec).host_ports == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (0, True), id="as Kubernetes fills it in"),
        pytest.param({"priority": 100, "preemptionPolicy": "PreemptLowerPriority"}, (100, True), id="preempts"),
        pytest.param({"priority": 100, "preemptionPolicy": "Never"}, (100, False), id="never preempts"),
    ],
)
def test_the_priority_and_whether_it_preempts_are_read(spec, expected):
    pod = a_pod(**spec)

    assert (pod.priority, pod.preempts) == expected


def test_the_claim_of_an_ephemeral_volume_is_as_its_template_says():
    template = {"spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "other"}, None]

    pod = a_pod(volumes=volumes)

    assert pod.claim_names == ("db-0-scratch",)
    assert pod.ephemeral_claims == (
        Claim("t1", "db-0-scratch", "", "", storage_class="fast", access_modes=("ReadWriteOnce",)),
    )
