"""Who is a member of which group, who only looks like one, and which claims are the group's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from builders import make_claim, make_group, make_pod
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.groups import (
    MEMBER_CLASSES,
    claims_of,
    is_member,
    needs_owner,
    ordinal_of,
    owns_claim,
    recognise,
)
from webhook.core.model import Family, Group, MemberClass
from webhook.core.objects import OwnerReference, Pod
from webhook.core.outcomes import Cause

STATEFUL_SET = OwnerReference("apps/v1", "StatefulSet", "db-tikv", "o1")
ADVANCED = OwnerReference("apps.pingcap.com/v1", "StatefulSet", "db-tikv", "o1")
INSTANCE = OwnerReference("core.pingcap.com/v1alpha1", "TiKV", "kv-x1y2z3", "o2")
JOB = OwnerReference("batch/v1", "Job", "backup-db", "o3")
REPLICA_SET = OwnerReference("apps/v1", "ReplicaSet", "db-discovery", "o4")

V1_LABELS = {
    keys.V1_MANAGED_BY: "tidb-operator",
    keys.V1_NAME: "tidb-cluster",
    keys.V1_INSTANCE: "db",
    keys.V1_COMPONENT: "tikv",
}
V2_LABELS = {
    keys.V2_MANAGED_BY: "tidb-operator",
    keys.V2_CLUSTER: "db",
    keys.V2_COMPONENT: "tikv",
    keys.V2_GROUP: "kv",
}
GENERIC_LABELS = {"app": "store", keys.CLASS_LABEL: "replicated"}


def v1_pod(labels: Mapping[str, str] | None = None, **changes: Any) -> Pod:
    """A TiKV pod of tidb-operator v1."""
    return replace(make_pod("db-tikv-0", labels=V1_LABELS | dict(labels or {}), owner=STATEFUL_SET), **changes)


def v2_pod(labels: Mapping[str, str] | None = None, **changes: Any) -> Pod:
    """A TiKV pod of tidb-operator v2, which carries the labels of v1 too."""
    all_labels = V1_LABELS | V2_LABELS | dict(labels or {})
    return replace(make_pod("kv-tikv-x1y2z3", labels=all_labels, owner=INSTANCE), **changes)


def generic_pod(labels: Mapping[str, str] | None = None, **changes: Any) -> Pod:
    """A pod of a generic StatefulSet that opts in."""
    owner = OwnerReference("apps/v1", "StatefulSet", "store", "o5")
    return replace(make_pod("store-0", labels=GENERIC_LABELS | dict(labels or {}), owner=owner), **changes)


def stateful_set(match_labels: object) -> dict[str, Any]:
    """The StatefulSet of `generic_pod`."""
    return {"metadata": {"name": "store"}, "spec": {"selector": {"matchLabels": match_labels}}}


GENERIC_GROUP = Group("t1", "store", "replicated", Family.GENERIC, MemberClass.REPLICATED, (("app", "store"),))
V2_GROUP = Group(
    namespace="t1",
    cluster="db",
    component="tikv",
    family=Family.OPERATOR_V2,
    member_class=MemberClass.REPLICATED,
    selector=(
        (keys.V2_MANAGED_BY, "tidb-operator"),
        (keys.V2_CLUSTER, "db"),
        (keys.V2_COMPONENT, "tikv"),
    ),
)


def test_three_components_are_kept_apart_and_no_other() -> None:
    assert MEMBER_CLASSES == {
        "pd": MemberClass.QUORUM,
        "dm-master": MemberClass.QUORUM,
        "tikv": MemberClass.REPLICATED,
    }


@pytest.mark.parametrize("owner", [STATEFUL_SET, ADVANCED], ids=["apps", "apps.pingcap.com"])
def test_a_pod_of_operator_v1_is_in_the_group_of_its_instance(owner: OwnerReference) -> None:
    assert recognise(v1_pod(owner=owner)).group == make_group("tikv")


def test_the_dm_master_of_a_dm_cluster_is_a_quorum_member() -> None:
    group = recognise(v1_pod({keys.V1_NAME: "dm-cluster", keys.V1_COMPONENT: "dm-master"})).group

    assert group is not None
    assert (group.member_class, group.component) == (MemberClass.QUORUM, "dm-master")
    assert dict(group.selector)[keys.V1_NAME] == "dm-cluster"


def test_a_pod_of_operator_v2_is_recognised_as_such_though_it_carries_the_labels_of_v1() -> None:
    assert recognise(v2_pod()).group == V2_GROUP


def test_a_v2_pod_without_a_group_object_is_a_member_of_its_cluster() -> None:
    labels = {key: value for key, value in v2_pod().labels.items() if key != keys.V2_GROUP}

    assert recognise(replace(v2_pod(), labels=labels)).group == V2_GROUP


def test_a_generic_pod_takes_the_selector_of_its_set() -> None:
    assert recognise(generic_pod(), stateful_set({"app": "store"})).group == GENERIC_GROUP


def test_the_labels_of_operator_v1_go_before_the_opt_in() -> None:
    group = recognise(v1_pod({keys.CLASS_LABEL: "quorum"})).group

    assert group is not None
    assert group.family is Family.OPERATOR_V1


def test_a_component_that_is_not_kept_apart_may_opt_in_by_label() -> None:
    pod = v1_pod({keys.V1_COMPONENT: "tiflash", keys.CLASS_LABEL: "replicated"})
    owner = stateful_set({keys.V1_INSTANCE: "db", keys.V1_COMPONENT: "tiflash"})

    group = recognise(pod, owner).group

    assert group is not None
    assert (group.family, group.cluster) == (Family.GENERIC, "db-tikv")


def test_a_pod_that_has_no_name_yet_is_still_told_from_others() -> None:
    assert recognise(v1_pod(name="")).group == make_group("tikv")


@pytest.mark.parametrize(
    ("pod", "detail"),
    [
        pytest.param(make_pod("web-0", labels={}), "no labels of tidb-operator", id="unlabelled"),
        pytest.param(v1_pod({keys.V1_MANAGED_BY: "helm"}), "no labels of tidb-operator", id="another-manager"),
        pytest.param(
            v1_pod({keys.V1_MANAGED_BY: "backup-operator", keys.V1_COMPONENT: "backup"}, owner=JOB),
            "no labels of tidb-operator",
            id="v1-backup-job",
        ),
        pytest.param(
            v1_pod({keys.V1_MANAGED_BY: "restore-operator", keys.V1_COMPONENT: "restore"}, owner=JOB),
            "no labels of tidb-operator",
            id="v1-restore-job",
        ),
        pytest.param(v1_pod({keys.V1_NAME: "tidb-monitor"}), "no labels of tidb-operator", id="v1-monitor"),
        pytest.param(v1_pod({keys.V1_COMPONENT: "tiflash"}), "component tiflash", id="v1-tiflash"),
        pytest.param(
            v1_pod({keys.V1_COMPONENT: "discovery"}, owner=REPLICA_SET), "component discovery", id="v1-discovery"
        ),
        pytest.param(v1_pod({keys.V1_COMPONENT: "dm-worker"}), "component dm-worker", id="v1-dm-worker"),
        pytest.param(v1_pod({keys.V1_INSTANCE: ""}), "app.kubernetes.io/instance is missing", id="v1-no-instance"),
        pytest.param(v1_pod(owner=None), "its controller is nobody", id="v1-bare-pod"),
        pytest.param(v1_pod(owner=JOB), "its controller is Job backup-db of batch", id="v1-job"),
        pytest.param(v1_pod(owner=REPLICA_SET), "its controller is ReplicaSet", id="v1-replica-set"),
        pytest.param(
            v1_pod(owner=replace(STATEFUL_SET, api_version="v1")), "of core, not a StatefulSet", id="v1-odd-api-group"
        ),
        pytest.param(v2_pod({keys.V2_COMPONENT: "tidb"}), "component tidb of tidb-operator v2", id="v2-tidb"),
        pytest.param(
            v2_pod({keys.V2_COMPONENT: "tibr"}, owner=STATEFUL_SET), "component tibr", id="v2-tibr-by-stateful-set"
        ),
        pytest.param(v2_pod({keys.V2_COMPONENT: ""}, owner=JOB), "component (none)", id="v2-backup-job"),
        pytest.param(v2_pod({keys.V2_CLUSTER: ""}), "pingcap.com/cluster is missing", id="v2-no-cluster"),
        pytest.param(v2_pod(owner=STATEFUL_SET), "its controller is StatefulSet", id="v2-by-stateful-set"),
        pytest.param(v2_pod(owner=None), "its controller is nobody", id="v2-bare-pod"),
        pytest.param(generic_pod(owner=JOB), "its controller is Job", id="opted-in-job"),
        pytest.param(generic_pod(owner=None), "its controller is nobody", id="opted-in-bare-pod"),
    ],
)
def test_look_alikes_and_others_are_no_members_and_the_reason_is_said(pod: Pod, detail: str) -> None:
    recognised = recognise(pod, stateful_set({"app": "store"}))

    assert (recognised.group, recognised.cause) == (None, Cause.NOT_A_MEMBER)
    assert detail in recognised.detail


def test_a_set_that_opts_in_by_a_class_that_is_none_is_a_group_all_the_same() -> None:
    group = recognise(generic_pod({keys.CLASS_LABEL: "Quorum"}), stateful_set({"app": "store"})).group

    assert group is not None
    assert (group.member_class, group.component) == (MemberClass.QUORUM, "quorum")


@pytest.mark.parametrize(
    ("owner", "detail"),
    [
        pytest.param(None, "was not found", id="set-not-there"),
        pytest.param(stateful_set(None), "no matchLabels", id="null"),
        pytest.param(stateful_set({}), "no matchLabels", id="empty"),
        pytest.param({"spec": {"selector": {"matchExpressions": [{}]}}}, "no matchLabels", id="expressions-only"),
        pytest.param(stateful_set({"app": "other"}), "does not select this pod", id="of-other-pods"),
    ],
)
def test_a_generic_set_without_a_usable_selector_is_left_alone(owner: dict[str, Any] | None, detail: str) -> None:
    recognised = recognise(generic_pod(), owner)

    assert (recognised.group, recognised.cause) == (None, Cause.UNUSABLE_SELECTOR)
    assert detail in recognised.detail


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(generic_pod(), True, id="generic"),
        pytest.param(v1_pod(), False, id="v1"),
        pytest.param(v1_pod({keys.CLASS_LABEL: "quorum"}), False, id="v1-that-opts-in"),
        pytest.param(v2_pod({keys.CLASS_LABEL: "quorum"}), False, id="v2-that-opts-in"),
        pytest.param(generic_pod(owner=JOB), False, id="job"),
        pytest.param(make_pod("web-0", labels={}), False, id="unlabelled"),
    ],
)
def test_only_a_generic_set_has_to_be_read_to_recognise_its_pod(pod: Pod, expected: bool) -> None:
    assert needs_owner(pod) is expected


@pytest.mark.parametrize(
    ("group", "pod", "expected"),
    [
        pytest.param(make_group(), v1_pod(), True, id="v1"),
        pytest.param(make_group(), v1_pod(owner=ADVANCED), True, id="v1-advanced"),
        pytest.param(make_group(), v1_pod(owner=None), True, id="v1-orphaned-while-its-set-is-replaced"),
        pytest.param(make_group(), v1_pod(owner=JOB), False, id="v1-labels-on-a-job"),
        pytest.param(make_group(), v2_pod(), False, id="v1-group-never-owns-a-v2-pod"),
        pytest.param(make_group(), v1_pod({keys.V1_INSTANCE: "db-2"}), False, id="v1-name-with-the-same-prefix"),
        pytest.param(make_group(), v1_pod(namespace="t2"), False, id="v1-other-namespace"),
        pytest.param(make_group("pd"), v1_pod(), False, id="v1-other-component"),
        pytest.param(V2_GROUP, v2_pod(), True, id="v2"),
        pytest.param(V2_GROUP, v2_pod({keys.V2_GROUP: "kv-2"}), True, id="v2-of-another-group-object"),
        pytest.param(V2_GROUP, v2_pod(owner=None), True, id="v2-orphaned"),
        pytest.param(V2_GROUP, v2_pod(owner=STATEFUL_SET), False, id="v2-labels-on-a-set"),
        pytest.param(V2_GROUP, v1_pod(), False, id="v2-group-never-owns-a-v1-pod"),
        pytest.param(V2_GROUP, v2_pod({keys.V2_CLUSTER: "db-2"}), False, id="v2-name-with-the-same-prefix"),
        pytest.param(GENERIC_GROUP, generic_pod(), True, id="generic"),
        pytest.param(GENERIC_GROUP, generic_pod({keys.CLASS_LABEL: ""}), True, id="generic-from-before-the-opt-in"),
        pytest.param(GENERIC_GROUP, generic_pod(owner=None), True, id="generic-orphaned"),
        pytest.param(
            GENERIC_GROUP, generic_pod(owner=None, name="store-2-0"), False, id="generic-orphan-of-another-set"
        ),
        pytest.param(
            GENERIC_GROUP,
            generic_pod(owner=OwnerReference("apps/v1", "StatefulSet", "store-2", "o6")),
            False,
            id="generic-set-with-an-overlapping-selector",
        ),
        pytest.param(GENERIC_GROUP, generic_pod(owner=JOB), False, id="generic-labels-on-a-job"),
    ],
)
def test_a_listed_pod_is_a_member_only_of_its_own_group(group: Group, pod: Pod, expected: bool) -> None:
    assert is_member(group, pod) is expected


@pytest.mark.parametrize(
    ("group", "name", "labels", "namespace", "expected"),
    [
        pytest.param(make_group(), "tikv-db-tikv-0", V1_LABELS, "t1", True, id="v1"),
        pytest.param(make_group(), "by-hand", V1_LABELS, "t1", True, id="v1-labelled-by-hand"),
        pytest.param(make_group(), "tikv-db-tikv-0", {}, "t1", False, id="v1-unlabelled"),
        pytest.param(make_group(), "tikv-db-tikv-0", V1_LABELS, "t2", False, id="v1-other-namespace"),
        pytest.param(make_group(), "data-kv-tikv-a", V1_LABELS | V2_LABELS, "t1", False, id="v1-group-v2-claim"),
        pytest.param(V2_GROUP, "data-kv-tikv-a", V2_LABELS, "t1", True, id="v2"),
        pytest.param(V2_GROUP, "tikv-db-tikv-0", V1_LABELS, "t1", False, id="v2-group-v1-claim"),
        pytest.param(GENERIC_GROUP, "data-store-0", GENERIC_LABELS, "t1", True, id="generic"),
        pytest.param(GENERIC_GROUP, "data-store-2-0", GENERIC_LABELS, "t1", False, id="generic-of-another-set"),
        pytest.param(GENERIC_GROUP, "store-0", GENERIC_LABELS, "t1", False, id="generic-without-template"),
        pytest.param(GENERIC_GROUP, "by-hand", GENERIC_LABELS, "t1", False, id="generic-by-hand"),
    ],
)
def test_a_claim_is_the_groups_by_its_labels(
    group: Group, name: str, labels: Mapping[str, str], namespace: str, expected: bool
) -> None:
    assert owns_claim(group, make_claim(name, labels=labels, namespace=namespace)) is expected


CLAIMS = tuple(
    make_claim(name) for name in ("tikv-db-tikv-0", "tikv-db-tikv-10", "tikv-wal-db-tikv-0", "tikv-x-db-tikv-1")
)


def test_the_claims_of_a_pod_are_those_it_names_in_its_order() -> None:
    pod = make_pod("db-tikv-0", claim_names=("tikv-wal-db-tikv-0", "elsewhere", "tikv-db-tikv-0"))

    found = claims_of("db-tikv-0", pod, CLAIMS)

    assert [claim.name for claim in found] == ["tikv-wal-db-tikv-0", "tikv-db-tikv-0"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("db-tikv-0", ["tikv-db-tikv-0", "tikv-wal-db-tikv-0"], id="every-template"),
        pytest.param("db-tikv-10", ["tikv-db-tikv-10"], id="not-by-prefix"),
        pytest.param("db-tikv-2", [], id="none"),
        pytest.param("", [], id="without-a-name"),
    ],
)
def test_the_claims_of_an_absent_member_are_found_by_their_names(name: str, expected: list[str]) -> None:
    assert [claim.name for claim in claims_of(name, None, CLAIMS)] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-tikv-0", 0),
        ("db-tikv-12", 12),
        ("a-2-3", 3),
        ("db", None),
        ("-3", None),
        ("db-", None),
        ("db-x1", None),
        ("db-²", None),
        ("", None),
        ("db-" + "9" * 5000, None),
    ],
    ids=lambda value: str(value)[:12] or "empty",
)
def test_the_ordinal_is_the_number_after_the_last_dash(name: str, expected: int | None) -> None:
    assert ordinal_of(name) == expected


LABEL_VALUES = st.sampled_from(["tidb-operator", "tidb-cluster", "tikv", "pd", "tibr", "db", "quorum", ""])
LABELS = st.dictionaries(st.sampled_from([*V1_LABELS, *V2_LABELS, keys.CLASS_LABEL, "app"]), LABEL_VALUES)
OWNERS = st.sampled_from([None, STATEFUL_SET, ADVANCED, INSTANCE, JOB, REPLICA_SET])


@settings(deadline=None, max_examples=300)
@given(labels=LABELS, owner=OWNERS)
def test_a_recognised_pod_is_a_member_of_its_group_and_of_no_other_family(
    labels: dict[str, str], owner: OwnerReference | None
) -> None:
    pod = make_pod("db-tikv-0", labels=labels, owner=owner)
    recognised = recognise(pod, stateful_set({"app": labels.get("app", "")}))

    if recognised.group is None:
        assert recognised.detail
    else:
        assert is_member(recognised.group, pod)
        assert recognised.cause is Cause.NONE
        assert (recognised.group.family is Family.GENERIC) == needs_owner(pod)
