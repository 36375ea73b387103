"""Options: which object decides, what a wrong value becomes, what happens when group objects disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.carriers import OptionCarriers
from webhook.core.model import Options, Placement, WhenUnplaceable
from webhook.core.objects import Pod
from webhook.core.options import is_label_key, of_pod, resolve

ZONE = "topology.kubernetes.io/zone"


def ours(**options: str) -> dict[str, str]:
    """Annotations of ours; `topology_key` stands for `topology-key`, `tikv__copies` for `tikv.copies`."""
    return {keys.PREFIX + name.replace("__", ".").replace("_", "-"): value for name, value in options.items()} | {
        "kubectl.kubernetes.io/restartedAt": "2026-01-01"
    }


def options(
    *,
    pod: dict[str, str] | None = None,
    groups: Sequence[dict[str, str]] = (),
    cluster: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
) -> Options:
    """The options of a TiKV pod."""
    return resolve("tikv", pod=pod or {}, group_objects=groups, cluster=cluster or {}, own=own)


def test_the_defaults_are_these() -> None:
    assert options() == Options(
        skip=False,
        placement=Placement.PIN,
        when_unplaceable=WhenUnplaceable.GUARD,
        topology_key="kubernetes.io/hostname",
        copies=3,
        min_domains=None,
        problems=(),
    )


def test_every_option_can_stand_on_the_cluster_object() -> None:
    cluster = ours(
        skip="true", placement="Guard", when_unplaceable="Deny", topology_key=ZONE, copies="5", min_domains="2"
    )

    assert options(cluster=cluster) == Options(
        skip=True,
        placement=Placement.GUARD,
        when_unplaceable=WhenUnplaceable.DENY,
        topology_key=ZONE,
        copies=5,
        min_domains=2,
    )


@pytest.mark.parametrize(
    ("given_options", "expected"),
    [
        pytest.param(
            {"pod": ours(skip="false"), "groups": [ours(skip="true")], "cluster": ours(skip="true")},
            False,
            id="the-pod-first",
        ),
        pytest.param({"groups": [ours(skip="false")], "cluster": ours(skip="true")}, False, id="then-the-group-object"),
        pytest.param({"groups": [ours(), ours()], "cluster": ours(skip="true")}, True, id="then-the-cluster"),
        pytest.param({"pod": ours(tikv__skip="true", skip="false")}, True, id="component-before-general"),
        pytest.param(
            {"pod": ours(skip="true"), "cluster": ours(tikv__skip="false")}, True, id="the-nearer-object-all-the-same"
        ),
        pytest.param({"pod": ours(pd__skip="true")}, False, id="of-another-component"),
        pytest.param({"groups": [ours(skip="true")], "own": ours()}, False, id="not-of-another-group-object"),
        pytest.param(
            {"groups": [ours(skip="true"), ours(skip="false")], "own": ours(skip="true")}, True, id="of-its-own-one"
        ),
    ],
)
def test_the_first_object_that_has_an_option_of_the_pod_decides(given_options: dict[str, Any], expected: bool) -> None:
    found = options(**given_options)

    assert (found.skip, found.problems) == (expected, ())


def test_how_members_are_counted_is_not_the_pods_to_say() -> None:
    found = options(pod=ours(topology_key=ZONE, copies="1", tikv__min_domains="1"))

    assert found == Options(
        problems=tuple(
            f"annotation tidb-ha-webhook.io/{name} of the pod is not read there: "
            "it belongs on the object that owns its group"
            for name in ("copies", "tikv.min-domains", "topology-key")
        )
    )


def test_how_members_are_counted_is_the_same_for_the_pods_of_every_group_object() -> None:
    groups = [ours(), ours(copies="5")]

    assert options(groups=groups, own=groups[0]).copies == options(groups=groups, own=groups[1]).copies == 5


@pytest.mark.parametrize(
    ("groups", "cluster", "expected"),
    [
        pytest.param([], {keys.UPSTREAM_TOPOLOGY_KEY: ZONE}, ZONE, id="upstream"),
        pytest.param([], {keys.UPSTREAM_TOPOLOGY_KEY: ZONE} | ours(topology_key="rack"), "rack", id="ours-first"),
        pytest.param([ours(topology_key="rack")], {keys.UPSTREAM_TOPOLOGY_KEY: ZONE}, "rack", id="group-object-first"),
        pytest.param([{keys.UPSTREAM_TOPOLOGY_KEY: ZONE}], {}, keys.HOSTNAME, id="only-on-the-cluster"),
    ],
)
def test_the_topology_key_of_upstream_is_honoured_on_the_cluster(
    groups: list[dict[str, str]], cluster: dict[str, str], expected: str
) -> None:
    assert options(groups=groups, cluster=cluster).topology_key == expected


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        pytest.param(
            ours(skip="True"),
            'annotation tidb-ha-webhook.io/skip of the cluster object is "True": "true" or "false" is right, '
            "false is used",
            id="skip",
        ),
        pytest.param(
            ours(placement="guard"),
            'annotation tidb-ha-webhook.io/placement of the cluster object is "guard": Pin or Guard is right, '
            "Pin is used",
            id="placement",
        ),
        pytest.param(
            ours(when_unplaceable="Allow"),
            'annotation tidb-ha-webhook.io/when-unplaceable of the cluster object is "Allow": Guard, Deny or Admit '
            "is right, Guard is used",
            id="when-unplaceable",
        ),
        pytest.param(
            ours(topology_key="a b"),
            'annotation tidb-ha-webhook.io/topology-key of the cluster object is "a b": a label key is right, '
            "kubernetes.io/hostname is used",
            id="topology-key",
        ),
        pytest.param(
            {keys.UPSTREAM_TOPOLOGY_KEY: ""},
            'annotation pingcap.com/ha-topology-key of the cluster object is "": a label key is right, '
            "kubernetes.io/hostname is used",
            id="upstream",
        ),
        pytest.param(
            ours(tikv__copies="0"),
            'annotation tidb-ha-webhook.io/tikv.copies of the cluster object is "0": a whole number from 1 on is '
            "right, 3 is used",
            id="copies",
        ),
        pytest.param(
            ours(min_domains="two"),
            'annotation tidb-ha-webhook.io/min-domains of the cluster object is "two": a whole number from 1 on is '
            "right, the default is used",
            id="min-domains",
        ),
        pytest.param(
            ours(copies="9" * 100),
            f'annotation tidb-ha-webhook.io/copies of the cluster object is "{"9" * 57}...": a whole number from 1 '
            "on is right, 3 is used",
            id="long",
        ),
    ],
)
def test_a_wrong_value_becomes_the_stricter_default_and_a_problem_in_words(
    annotations: dict[str, str], problem: str
) -> None:
    assert options(cluster=annotations) == Options(problems=(problem,))


def test_a_wrong_value_on_the_nearer_object_does_not_hand_on_to_the_next() -> None:
    found = options(pod=ours(skip="yes"), cluster=ours(skip="true"))

    assert found.skip is False
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    ("first", "second", "name", "expected", "said"),
    [
        pytest.param(ours(skip="true"), ours(skip="false"), "skip", False, "skip: false", id="skip"),
        pytest.param(
            ours(placement="Guard"), ours(placement="Pin"), "placement", Placement.PIN, "placement: Pin", id="placement"
        ),
        pytest.param(
            ours(when_unplaceable="Admit"),
            ours(when_unplaceable="Guard"),
            "when_unplaceable",
            WhenUnplaceable.GUARD,
            "when-unplaceable: Guard",
            id="guard-before-admit",
        ),
        pytest.param(
            ours(when_unplaceable="Deny"),
            ours(when_unplaceable="Guard"),
            "when_unplaceable",
            WhenUnplaceable.DENY,
            "when-unplaceable: Deny",
            id="deny-before-guard",
        ),
        pytest.param(
            ours(topology_key=keys.HOSTNAME), ours(topology_key="a"), "topology_key", "a", "topology-key: a", id="key"
        ),
        pytest.param(
            ours(topology_key="rack"), ours(topology_key=ZONE), "topology_key", ZONE, f"topology-key: {ZONE}", id="keys"
        ),
        pytest.param(ours(copies="3"), ours(copies="5"), "copies", 5, "copies: 5", id="copies"),
        pytest.param(ours(min_domains="1"), ours(min_domains="2"), "min_domains", 2, "min-domains: 2", id="domains"),
    ],
)
def test_where_group_objects_disagree_the_stricter_value_is_used_whatever_their_order(
    first: dict[str, str], second: dict[str, str], name: str, expected: object, said: str
) -> None:
    for groups in ([first, second], [second, first]):
        found = options(groups=groups)

        assert getattr(found, name) == expected
        option, _, value = said.partition(": ")
        assert found.problems == (f"group objects disagree on {option}: {value} is used",)


def test_an_unreadable_min_domains_beside_a_readable_one_is_the_default() -> None:
    found = options(groups=[ours(min_domains="1"), ours(min_domains="-1")])

    assert found.min_domains is None
    assert found.problems[-1] == "group objects disagree on min-domains: the default is used"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("kubernetes.io/hostname", True),
        ("rack", True),
        ("A_b.c-1", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("-a", False),
        ("a/", False),
        ("/a", False),
        ("a/b/c", False),
        ("Upper.io/a", False),
        ("a..b/c", False),
        ("x" * 253 + "/a", True),
        ("x" * 254 + "/a", False),
        ("a b", False),
        ("a\n", False),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_topology_key_must_be_a_label_key(key: str, expected: bool) -> None:
    assert is_label_key(key) is expected


ANNOTATIONS = st.dictionaries(
    st.sampled_from([*ours(skip="", tikv__skip="", placement="", copies="", topology_key="", min_domains="")]),
    st.sampled_from(["true", "false", "Pin", "Guard", "2", "0", ZONE]) | st.text(max_size=8),
)


@settings(deadline=None)
@given(pod=ANNOTATIONS, groups=st.lists(ANNOTATIONS, max_size=3), cluster=ANNOTATIONS)
def test_no_annotations_make_it_raise_and_every_member_counts_alike(
    pod: dict[str, str], groups: list[dict[str, str]], cluster: dict[str, str]
) -> None:
    found = options(pod=pod, groups=groups, cluster=cluster)
    other = options(groups=groups[::-1], cluster=cluster)

    assert found.copies >= 1
    assert (found.topology_key, found.copies, found.min_domains) == (
        other.topology_key,
        other.copies,
        other.min_domains,
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mindomains", "is min-domains meant?"),
        ("skipp", "is skip meant?"),
        ("tikv.placment", "is tikv.placement meant?"),
        ("QQQ", "the options are skip, placement, when-unplaceable, topology-key, copies, min-domains"),
        ("tidb.copies", "is tikv.copies meant?"),
        ("SKIP", "the options are skip, placement, when-unplaceable, topology-key, copies, min-domains"),
    ],
)
@pytest.mark.parametrize("where", ["pod", "group object", "cluster object"])
def test_an_annotation_of_ours_that_is_no_option_is_said_with_what_is_near(name: str, said: str, where: str) -> None:
    annotations = {f"{keys.PREFIX}{name}": "x", "other.io/skipp": "x"}
    placed = {"pod": {"pod": annotations}, "group object": {"groups": [annotations]}}
    found = options(**placed.get(where, {"cluster": annotations}))

    assert found == Options(problems=(f"annotation tidb-ha-webhook.io/{name} of the {where} is no option: {said}",))


def test_what_we_write_and_options_of_other_components_are_no_strangers() -> None:
    written = {
        keys.DECISION: "{",
        keys.ASSIGNED_NODE: "n",
        keys.GUARD: "k",
        keys.LOCK: "{",
        f"{keys.ENTRY_PREFIX}a": "",
    }

    assert options(pod=written | ours(pd__skip="true")).problems == ()
    assert options(cluster=ours(dm_master__copies="3", quorum__skip="true")).problems == ()


def test_a_long_key_is_cut() -> None:
    (problem,) = options(pod={f"{keys.PREFIX}{'x' * 500}": ""}).problems

    assert f"io/{'x' * 60} of the pod is no option" in problem


@pytest.mark.parametrize(
    ("given_options", "where"),
    [
        ({"pod": ours(skip="true"), "cluster": ours(skip="true")}, "annotation tidb-ha-webhook.io/skip of the pod"),
        (
            {"groups": [ours(), ours(tikv__skip="true")]},
            "annotation tidb-ha-webhook.io/tikv.skip of the group object",
        ),
        ({"cluster": ours(skip="true")}, "annotation tidb-ha-webhook.io/skip of the cluster object"),
    ],
)
def test_where_an_option_stands_is_known(given_options: dict[str, Any], where: str) -> None:
    assert options(**given_options).set_by == {"skip": where}


def test_a_pod_of_a_class_that_is_none_is_only_guarded() -> None:
    pod = Pod("t1", "raft-0", labels={keys.CLASS_LABEL: "quorumm"}, annotations=ours(placement="Pin"))
    found = of_pod("quorum", pod, OptionCarriers())

    assert (found.placement, found.set_by) == (Placement.GUARD, {"placement": "the label tidb-ha-webhook.io/class"})
    assert found.problems == (
        'the label tidb-ha-webhook.io/class is "quorumm": quorum or replicated is right, only the guard is used',
    )
    assert of_pod("tikv", pod, OptionCarriers()).placement is Placement.PIN
