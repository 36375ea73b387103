"""What the owners of a group want: replicas, ordinals with holes, members given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from builders import make_group
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core.desired import NAMED_MEMBERS, desired_generic, desired_ordinals, desired_v1, desired_v2
from webhook.core.model import Desired, Family

GENERIC = make_group(cluster="store", component="replicated", family=Family.GENERIC)
V2 = make_group(family=Family.OPERATOR_V2)


def stateful_set(
    replicas: object = 3, *, api_version: str = "apps/v1", slots: str | None = None, start: object = None
) -> dict[str, Any]:
    """The StatefulSet db-tikv."""
    return {
        "apiVersion": api_version,
        "metadata": {"name": "db-tikv", "annotations": {} if slots is None else {"delete-slots": slots}},
        "spec": {"replicas": replicas} | ({} if start is None else {"ordinals": {"start": start}}),
    }


def advanced(slots: str | None, replicas: int = 3) -> dict[str, Any]:
    """The same as an Advanced StatefulSet."""
    return stateful_set(replicas, api_version="apps.pingcap.com/v1", slots=slots)


def tidb_cluster(
    *, status: Mapping[str, object] | None = None, annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A TidbCluster (or DMCluster)."""
    return {"metadata": {"name": "db", "annotations": dict(annotations or {})}, "status": dict(status or {})}


def ordinals(desired: Desired) -> list[int]:
    """The ordinals of the desired members of db-tikv."""
    assert desired.members is not None
    assert all(name.startswith("db-tikv-") for name in desired.members)
    return [int(name.removeprefix("db-tikv-")) for name in desired.members]


@pytest.mark.parametrize(
    ("replicas", "start", "slots", "expected"),
    [
        pytest.param(3, 0, [], (0, 1, 2), id="none"),
        pytest.param(3, 0, [2], (0, 1, 3), id="the-last"),
        pytest.param(3, 0, [0, 1], (2, 3, 4), id="the-first-two"),
        pytest.param(3, 0, [3], (0, 1, 2), id="beyond-the-end-does-nothing"),
        pytest.param(3, 0, [3, 1], (0, 2, 4), id="one-slot-brings-the-next-into-reach"),
        pytest.param(3, 0, [-1], (0, 1, 2), id="negative-does-nothing"),
        pytest.param(2, 5, [], (5, 6), id="start"),
        pytest.param(2, 5, [1, 6], (5, 7), id="start-and-slots"),
        pytest.param(0, 0, [0], (), id="no-replicas"),
        pytest.param(-1, 0, [], (), id="fewer-than-none"),
    ],
)
def test_the_ordinals_of_a_set_leave_the_slots_out(
    replicas: int, start: int, slots: list[int], expected: tuple[int, ...]
) -> None:
    assert desired_ordinals(replicas, start, slots) == expected


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 5), st.sets(st.integers(-3, 40)))
def test_a_set_always_has_as_many_ordinals_as_replicas_and_none_in_a_slot(
    replicas: int, start: int, slots: set[int]
) -> None:
    found = desired_ordinals(replicas, start, slots)

    assert len(found) == replicas
    assert not slots.intersection(found)
    assert list(found) == sorted(set(found))


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [(3, 3), (0, 0), (None, 1), ("3", 1), (True, 1), (-2, 0)],
    ids=["number", "zero", "null-is-kubernetes-default", "text", "boolean", "negative"],
)
def test_the_replicas_are_those_of_the_stateful_set(replicas: object, expected: int) -> None:
    desired = desired_v1(stateful_set(replicas), None, make_group())

    assert (desired.replicas, len(desired.members or ())) == (expected, expected)


def test_members_are_named_by_ordinal_from_the_start_on() -> None:
    desired = desired_v1(stateful_set(2, start=3), None, make_group())

    assert desired.members == ("db-tikv-3", "db-tikv-4")


@pytest.mark.parametrize("start", ["3", -3, None], ids=["text", "negative", "null"])
def test_a_start_that_makes_no_sense_is_none(start: object) -> None:
    assert ordinals(desired_v1(stateful_set(2, start=start), None, make_group())) == [0, 1]


def test_ten_members_are_in_the_order_of_their_ordinals() -> None:
    desired = desired_v1(stateful_set(12), None, make_group())

    assert desired.position("db-tikv-10") == 10


def test_an_absurd_number_of_replicas_costs_nothing() -> None:
    desired = desired_v1(stateful_set(2**31 - 1), None, make_group())

    assert (desired.replicas, desired.members) == (2**31 - 1, None)
    assert NAMED_MEMBERS < 2**31 - 1


def test_a_set_without_a_name_has_no_named_members() -> None:
    assert desired_v1({"spec": {"replicas": 3}}, None, make_group()) == Desired(replicas=3)


WISH = {"tikv.tidb.pingcap.com/delete-slots": "[1]"}


@pytest.mark.parametrize(
    ("owner", "annotations", "expected"),
    [
        pytest.param(advanced("[1]"), {}, [0, 2, 3], id="advanced-set"),
        pytest.param(advanced("[2]"), WISH, [0, 1, 3], id="its-own-slots-before-the-clusters"),
        pytest.param(advanced("[]"), WISH, [0, 1, 2], id="its-own-empty-slots-too"),
        pytest.param(advanced(None), WISH, [0, 1, 2, 3], id="the-clusters-wish-is-not-yet-in-force"),
        pytest.param(advanced(None), {"pd.tidb.pingcap.com/delete-slots": "[1]"}, [0, 1, 2], id="other-component"),
        pytest.param(stateful_set(slots="[1]"), {}, [0, 1, 2, 3], id="kubernetes-own-controller-ignores-slots"),
        pytest.param(stateful_set(), WISH, [0, 1, 2, 3], id="kubernetes-own-controller-and-the-clusters-wish"),
        pytest.param(advanced("[1"), {}, [0, 1, 2], id="no-json"),
        pytest.param(advanced("1"), {}, [0, 1, 2], id="no-array"),
        pytest.param(advanced('[1, "2"]'), {}, [0, 1, 2], id="not-only-numbers"),
        pytest.param(advanced("[" * 100_000), {}, [0, 1, 2], id="brackets"),
        pytest.param(advanced("[1" + "0" * 5000 + "]"), {}, [0, 1, 2], id="a-number-of-5000-digits"),
    ],
)
def test_delete_slots_are_honoured_and_no_member_that_may_live_goes_uncounted(
    owner: dict[str, Any], annotations: dict[str, str], expected: list[int]
) -> None:
    assert ordinals(desired_v1(owner, tidb_cluster(annotations=annotations), make_group())) == expected


@pytest.mark.parametrize(
    ("component", "status", "expected"),
    [
        pytest.param(
            "pd",
            {"pd": {"failureMembers": {"db-pd-1": {"podName": "db-pd-1", "memberID": "5", "pvcUID": "c1"}}}},
            {"db-pd-1": "c1"},
            id="pd",
        ),
        pytest.param(
            "pd",
            {"pd": {"failureMembers": {"db-pd-1": {"podName": "db-pd-1", "pvcUIDSet": {"c2": {}, "c1": {}}}}}},
            {"db-pd-1": "c1"},
            id="pd-with-several-claims",
        ),
        pytest.param(
            "tikv",
            {"tikv": {"failureStores": {"4": {"podName": "db-tikv-1", "storeID": "4"}}}},
            {"db-tikv-1": ""},
            id="tikv-without-claims",
        ),
        pytest.param(
            "tikv",
            {"tikv": {"failureStores": {"4": {"podName": "db-tikv-1", "pvcUIDSet": {"c7": {}}, "hostDown": True}}}},
            {"db-tikv-1": "c7"},
            id="tikv-with-claims",
        ),
        pytest.param(
            "tikv",
            {
                "tikv": {
                    "failureStores": {
                        "4": {"podName": "db-tikv-1", "pvcUIDSet": {"new": {}}, "createdAt": "2026-02-01T00:00:00Z"},
                        "9": {"podName": "db-tikv-1", "pvcUIDSet": {"old": {}}, "createdAt": "2026-01-01T00:00:00Z"},
                    }
                }
            },
            {"db-tikv-1": "new"},
            id="tikv-that-failed-twice",
        ),
        pytest.param(
            "dm-master",
            {"master": {"failureMembers": {"dm-dm-master-0": {"podName": "dm-dm-master-0", "pvcUID": "c3"}}}},
            {"dm-dm-master-0": "c3"},
            id="dm-master",
        ),
        pytest.param("pd", {"tikv": {"failureStores": {"4": {"podName": "x"}}}}, {}, id="of-another-component"),
        pytest.param("tikv", {"tikv": {"failureStores": {"4": {"storeID": "4"}, "5": None}}}, {}, id="without-a-pod"),
        pytest.param("tikv", {"tikv": {"failureStores": None}}, {}, id="null"),
        pytest.param("tikv", {"tikv": {"failureStores": {"4": {"podName": "p", "pvcUIDSet": 7}}}}, {"p": ""}, id="odd"),
    ],
)
def test_members_that_the_operator_has_given_up_are_read_with_their_claims(
    component: str, status: dict[str, object], expected: dict[str, str]
) -> None:
    desired = desired_v1(stateful_set(), tidb_cluster(status=status), make_group(component))

    assert desired.failure_members == expected


def test_without_a_cluster_object_nobody_is_given_up() -> None:
    assert desired_v1(stateful_set(), None, make_group()).failure_members == {}


def test_a_generic_set_names_its_members_after_itself() -> None:
    desired = desired_generic({"spec": {"replicas": 2, "ordinals": {"start": 1}}}, GENERIC)

    assert desired == Desired(replicas=2, members=("store-1", "store-2"))


def group_object(replicas: object, cluster: str = "db") -> dict[str, Any]:
    """A TiKVGroup."""
    return {"spec": {"cluster": {"name": cluster}, "replicas": replicas}}


def instance(group: str = "", cluster: str = "db", name: str = "", **metadata: Any) -> dict[str, Any]:
    """A TiKV instance; its own replicas are for disruption budgets only."""
    labels = {"pingcap.com/group": group} if group else {}
    named = {"labels": labels, "name": name, **metadata}
    return {"metadata": named, "spec": {"cluster": {"name": cluster}, "replicas": 1}}


@pytest.mark.parametrize(
    ("group_objects", "instances", "expected"),
    [
        pytest.param([group_object(3)], [], 3, id="one-group"),
        pytest.param([group_object(3), group_object(2)], [], 5, id="several-groups-count-together"),
        pytest.param([group_object(None)], [], 1, id="null-counts-one"),
        pytest.param([group_object(3), group_object(4, "db-2")], [], 3, id="another-cluster"),
        pytest.param([group_object(3)], [instance("kv")], 3, id="an-instance-of-a-group-is-counted-there"),
        pytest.param([group_object(3)], [instance(), instance(cluster="db-2")], 4, id="an-instance-on-its-own"),
        pytest.param([{}, {"spec": None}], [{}], 0, id="odd-objects"),
    ],
)
def test_the_replicas_of_v2_are_the_sum_over_the_cluster(
    group_objects: list[dict[str, Any]], instances: list[dict[str, Any]], expected: int
) -> None:
    assert desired_v2(group_objects, instances, V2) == Desired(replicas=expected, members=None)


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        pytest.param([instance("kv", name="kv-x1y2z3")], ("kv-tikv-x1y2z3",), id="of-a-group"),
        pytest.param([instance(name="kv-east-1")], ("kv-east-tikv-1",), id="on-its-own"),
        pytest.param([instance(name="kv-b"), instance(name="kv-a")], ("kv-tikv-a", "kv-tikv-b"), id="several"),
        pytest.param([instance(name="kv-a", cluster="db-2")], (), id="of-another-cluster"),
        pytest.param([instance(name="kv-a", deletionTimestamp="2026-01-01T00:00:00Z")], (), id="being-deleted"),
        pytest.param(
            [instance(name="kv-a", annotations={"core.pingcap.com/defer-delete": "true"})],
            ("kv-tikv-a",),
            id="until-its-successor-is-ready",
        ),
        pytest.param(
            [{**instance(name="kv-a"), "spec": {"cluster": {"name": "db"}, "offline": True}}],
            ("kv-tikv-a",),
            id="being-drained",
        ),
        pytest.param([instance(name="kv"), instance()], (), id="without-a-suffix"),
    ],
)
def test_the_pods_of_v2_instances_are_known_by_name_but_have_no_position(
    instances: list[dict[str, Any]], expected: tuple[str, ...]
) -> None:
    desired = desired_v2([group_object(3)], instances, V2)

    assert desired.names == desired.instances == expected
    assert desired.members is None
    assert all(desired.position(name) is None for name in expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": JSON,
        "metadata": JSON | st.fixed_dictionaries({"name": JSON, "annotations": JSON, "labels": JSON}),
        "spec": JSON | st.fixed_dictionaries({"replicas": JSON, "ordinals": JSON, "cluster": JSON}),
        "status": JSON | st.fixed_dictionaries({"tikv": JSON | st.fixed_dictionaries({"failureStores": JSON})}),
    },
)


@settings(deadline=None)
@given(first=OBJECTS, second=OBJECTS)
def test_no_owner_object_makes_it_raise(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert desired_v1(first, second, make_group()).replicas >= 0
    assert desired_generic(first, GENERIC).replicas >= 0
    assert desired_v2([first], [second], V2).replicas >= 0
