"""The floor: what the API server itself does to members, shown under failure policy Fail, so that no error hides."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART, Helm
from e2e.objects import Object
from e2e.waiting import wait_until
from webhook.core import affinity, guard, keys, pin
from webhook.core.groups import recognise
from webhook.core.manifests import pod_from
from webhook.core.model import Decision
from webhook.core.outcomes import Outcome

pytestmark = pytest.mark.e2e

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
ANNOTATION = "tidb-ha-webhook.io/guard"
V1 = {
    "app.kubernetes.io/name": "tidb-cluster",
    "app.kubernetes.io/managed-by": "tidb-operator",
    "app.kubernetes.io/instance": "db",
    "app.kubernetes.io/component": "tikv",
}
V2 = {
    **V1,
    "pingcap.com/managed-by": "tidb-operator",
    "pingcap.com/cluster": "db",
    "pingcap.com/component": "tikv",
    "pingcap.com/group": "kv",
}
V1_TERM = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": V1}}
EXISTS = {"key": keys.HOSTNAME, "operator": "Exists"}
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
ARCH = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
BY_NAME = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@pytest.fixture(scope="module")
def floor(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The chart's floor, unchanged but for its failure policy."""
    home = tmp_path_factory.mktemp("helm")
    rendered = Helm(4, home).run("template", "floor", CHART, "-n", "floors", values={"floor": {"enabled": True}})
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    objects = [found for found in yaml.safe_load_all(rendered) if found and found["kind"] in kinds]
    assert [found["kind"] for found in objects] == list(kinds)
    objects[0]["spec"]["failurePolicy"] = "Fail"
    with Api(control_plane.url, control_plane.token, control_plane.files.ca) as api:
        api.request("POST", POLICIES, objects[0])
        api.request("POST", POLICIES.replace("policies", "policybindings"), objects[1])
        try:
            wait_until(lambda: ANNOTATION in annotations_of(api, member()), "the floor to work", 30)
            yield api
        finally:
            name = objects[0]["metadata"]["name"]
            api.request("DELETE", f"{POLICIES.replace('policies', 'policybindings')}/{name}")
            api.request("DELETE", f"{POLICIES}/{name}")


def owner(api_version: str = "apps/v1", kind: str = "StatefulSet") -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": "db-tikv", "uid": "1", "controller": True}


def member(labels: dict[str, str] | None = None, **fields: Any) -> Object:
    """A pod of tidb-operator; v2's has its own kind of owner."""
    labels = V1 if labels is None else labels
    made_by = owner("core.pingcap.com/v1alpha1", "TiKV") if "pingcap.com/managed-by" in labels else owner()
    metadata = {"name": "db-tikv-0", "namespace": "default", "labels": labels, "ownerReferences": [made_by]}
    metadata |= fields.pop("metadata", {})
    container = {"name": "tikv", "image": "example.invalid/tikv"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **fields}}


def created(api: Api, pod: Object) -> Object:
    return api.create(pod, dryRun="All")


def annotations_of(api: Api, pod: Object) -> Object:
    found: Object = created(api, pod)["metadata"].get("annotations", {})
    return found


def required(pod: Object, kind: str) -> Any:
    return pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution")


def node_affinity(*terms: Object) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def anti_affinity(*terms: Object) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


OTHER_TERM = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("labels", "selector"),
    [
        (V1, V1),
        (V1 | {"app.kubernetes.io/component": "pd"}, V1 | {"app.kubernetes.io/component": "pd"}),
        (
            V1 | {"app.kubernetes.io/name": "dm-cluster", "app.kubernetes.io/component": "dm-master"},
            V1 | {"app.kubernetes.io/name": "dm-cluster", "app.kubernetes.io/component": "dm-master"},
        ),
        (V2, {key: V2[key] for key in ("pingcap.com/managed-by", "pingcap.com/cluster", "pingcap.com/component")}),
    ],
    ids=["v1 tikv", "v1 pd", "v1 dm-master", "v2 tikv"],
)
def test_a_member_gets_the_whole_guard(floor: Api, labels: dict[str, str], selector: dict[str, str]) -> None:
    pod = created(floor, member(labels))
    assert pod["metadata"]["annotations"] == {ANNOTATION: keys.HOSTNAME}
    assert required(pod, "podAntiAffinity") == [
        {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": selector}}
    ]
    assert required(pod, "nodeAffinity") == {"nodeSelectorTerms": [{"matchExpressions": [EXISTS]}]}


@pytest.mark.parametrize(
    "pod",
    [
        member(V1 | {"app.kubernetes.io/component": "tidb"}),
        member(V1 | {"app.kubernetes.io/managed-by": "Helm"}),
        member(V1 | {"app.kubernetes.io/name": "other"}),
        member(V1 | {"app.kubernetes.io/instance": ""}),
        member({}),
        member(V2 | {"pingcap.com/component": "tiflash"}),
        member({key: text for key, text in V2.items() if key != "pingcap.com/cluster"}),
        member(metadata={"ownerReferences": []}),
        member(metadata={"ownerReferences": [owner("batch/v1", "Job")]}),
        member(metadata={"labels": None}),
        member(nodeName="n1"),
        member(schedulerName="tidb-scheduler"),
        member(metadata={"annotations": {"tidb-ha-webhook.io/skip": "true"}}),
        member(metadata={"annotations": {"tidb-ha-webhook.io/tikv.skip": "true"}}),
        member(V2, metadata={"annotations": {"tidb-ha-webhook.io/tikv.skip": "true"}}),
        member(V2, affinity=anti_affinity(OTHER_TERM)),
        member(affinity=anti_affinity(V1_TERM)),
        member(affinity=anti_affinity(V1_TERM | {"namespaces": ["default"]})),
    ],
    ids=[
        "another component",
        "another manager",
        "another name",
        "no instance",
        "no labels",
        "v2 of another component",
        "v2 without a cluster",
        "no owner",
        "a job's",
        "labels null",
        "placed already",
        "tidb-scheduler's",
        "skipped",
        "skipped by component",
        "v2 skipped by component",
        "v2 with anti-affinity of its own",
        "an equal term of its own",
        "an equal term of its own that names the namespace",
    ],
)
def test_these_pods_are_left_alone(floor: Api, pod: Object) -> None:
    found = created(floor, pod)
    assert ANNOTATION not in found["metadata"].get("annotations", {})
    assert found["spec"].get("affinity") == pod["spec"].get("affinity")


@pytest.mark.parametrize(
    "annotations",
    [
        {"tidb-ha-webhook.io/skip": "false"},
        {"tidb-ha-webhook.io/skip": "true", "tidb-ha-webhook.io/tikv.skip": "false"},
        {"tidb-ha-webhook.io/pd.skip": "true"},
        {"tidb-ha-webhook.io/skip": "yes"},
    ],
)
def test_what_is_not_skipped_is_guarded_and_keeps_its_annotations(floor: Api, annotations: dict[str, str]) -> None:
    found = annotations_of(floor, member(metadata={"annotations": annotations}))
    assert found == {**annotations, ANNOTATION: keys.HOSTNAME}


def test_the_users_own_anti_affinity_stays_and_comes_first(floor: Api) -> None:
    pod = created(floor, member(affinity=anti_affinity(OTHER_TERM)))
    assert required(pod, "podAntiAffinity") == [OTHER_TERM, V1_TERM]


@pytest.mark.parametrize(
    "affinity",
    [{}, {"podAntiAffinity": {}}, {"nodeAffinity": {}}, {"podAffinity": {}}, anti_affinity()],
    ids=["empty", "empty anti-affinity", "empty node affinity", "something else", "no terms"],
)
def test_parents_that_are_missing_or_empty_are_made(floor: Api, affinity: Object) -> None:
    pod = created(floor, member(affinity=affinity))
    assert required(pod, "podAntiAffinity") == [V1_TERM]
    assert required(pod, "nodeAffinity") == {"nodeSelectorTerms": [{"matchExpressions": [EXISTS]}]}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([{"matchExpressions": [ZONE]}], [{"matchExpressions": [ZONE, EXISTS]}]),
        (
            [{"matchExpressions": [ZONE]}, {"matchExpressions": [ARCH]}],
            [{"matchExpressions": [ZONE, EXISTS]}, {"matchExpressions": [ARCH, EXISTS]}],
        ),
        ([{"matchFields": [BY_NAME]}], [{"matchFields": [BY_NAME], "matchExpressions": [EXISTS]}]),
        ([{}, {"matchExpressions": [ZONE]}], [{}, {"matchExpressions": [ZONE, EXISTS]}]),
        ([{"matchExpressions": [EXISTS]}], [{"matchExpressions": [EXISTS, EXISTS]}]),
    ],
    ids=["one", "two", "fields only", "an empty one", "an equal one of its own"],
)
def test_the_key_must_exist_in_every_term_that_matches_a_node(
    floor: Api, terms: list[Object], expected: list[Object]
) -> None:
    pod = created(floor, member(affinity=node_affinity(*terms)))
    assert required(pod, "nodeAffinity") == {"nodeSelectorTerms": expected}


def test_a_v2_pod_with_node_affinity_of_its_own_gets_the_first_half_only(floor: Api) -> None:
    pod = created(floor, member(V2, affinity=node_affinity({"matchExpressions": [ZONE]})))
    assert required(pod, "nodeAffinity") == {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}
    assert len(required(pod, "podAntiAffinity")) == 1


@pytest.mark.parametrize(
    "asked",
    [
        member(),
        member(V2),
        member(affinity=anti_affinity(OTHER_TERM) | node_affinity({"matchExpressions": [EXISTS]})),
        member(affinity=node_affinity({"matchExpressions": [ZONE]}, {"matchFields": [BY_NAME]})),
        member(V2, affinity=node_affinity({"matchExpressions": [ZONE]})),
    ],
    ids=["v1", "v2", "v1 with its own", "v1 with two terms", "v2 with node affinity"],
)
def test_the_webhook_recognises_the_guard_as_ours_and_takes_it_out_again(floor: Api, asked: Object) -> None:
    guarded = created(floor, asked)
    group = recognise(pod_from(guarded)).group
    assert group is not None
    assert any(guard.is_guard_term(term, group, keys.HOSTNAME) for term in guard.terms_of(guarded))
    result = affinity.patch_for(copy.deepcopy(guarded), group, Decision(Outcome.UNTOUCHED), None)
    for kind in ("podAntiAffinity", "nodeAffinity"):
        assert required(result.patched, kind) == required(asked, kind), kind
    assert ANNOTATION not in result.patched["metadata"]["annotations"]


def test_a_pin_takes_the_guards_place(floor: Api) -> None:
    guarded = created(floor, member())
    group = recognise(pod_from(guarded)).group
    decision = Decision(Outcome.PINNED, node="n1", domain="n1", topology_key=keys.HOSTNAME)
    patched = affinity.patch_for(guarded, group, decision, "token").patched
    assert pin.terms_of(patched) == [{"matchFields": [pin.pin_to("n1")]}]
    assert not guard.terms_of(patched)


def test_a_pod_that_the_floor_has_guarded_is_valid(floor: Api) -> None:
    terms = [{"matchExpressions": [ZONE]}, {"matchFields": [BY_NAME]}]
    pod = member(affinity=anti_affinity(OTHER_TERM) | node_affinity(*terms), metadata={"name": "floor-valid"})
    try:
        floor.create(pod)
    except ApiError as error:
        pytest.fail(str(error))
    floor.delete("Pod", "floor-valid", "default", gracePeriodSeconds=0)
