"""What nobody should write but somebody may: a reason, never a crash, never a wrong "possible"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from builders import (
    ZONAL_NODES,
    by_node,
    label_in,
    make_claim,
    make_nodes,
    make_placing,
    make_snapshot,
    make_volume,
    make_volumes,
    pod_on,
    reasons_for,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.manifests import (
    capacity_from,
    claim_from,
    node_from,
    placed_pod_from,
    pod_from,
    storage_class_from,
    volume_from,
)
from webhook.core.model import Placing
from webhook.core.node_index import NodeIndex
from webhook.core.objects import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
    Taint,
    Toleration,
)
from webhook.core.outcomes import Outcome
from webhook.core.placement import decide
from webhook.core.pool import Pool
from webhook.core.storage import PersistentVolume, StorageCapacity, StorageClass

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LENIENT = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def parse_number(raw: object) -> Decimal | None:
    """Stands for the quantity parser: plain numbers only."""
    try:
        number = Decimal(raw) if isinstance(raw, str) else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() and abs(number) < 2**63 else None


WORDS = st.sampled_from(
    ["In", "NotIn", "Exists", "Gt", "Lt", "Like", "", "zone", keys.HOSTNAME, "n1", "5", "-5", "a b", "x" * 70]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
REQUIREMENT = JUNK | st.fixed_dictionaries(
    {"key": JUNK, "operator": JUNK, "values": JUNK | st.lists(WORDS, max_size=3)}
)
LABEL_SELECTOR = JUNK | st.fixed_dictionaries(
    {
        "matchLabels": JUNK | st.dictionaries(WORDS, WORDS, max_size=2),
        "matchExpressions": st.lists(REQUIREMENT, max_size=2),
    }
)
NODE_SELECTOR = JUNK | st.fixed_dictionaries(
    {
        "nodeSelectorTerms": JUNK
        | st.lists(
            JUNK
            | st.fixed_dictionaries(
                {
                    "matchExpressions": st.lists(REQUIREMENT, max_size=2),
                    "matchFields": st.lists(REQUIREMENT, max_size=1),
                }
            ),
            max_size=3,
        )
    }
)
TERM = JUNK | st.fixed_dictionaries(
    {
        "topologyKey": WORDS | JUNK,
        "labelSelector": LABEL_SELECTOR,
        "namespaceSelector": LABEL_SELECTOR,
        "namespaces": JUNK,
        "matchLabelKeys": JUNK,
    }
)
SPREAD = JUNK | st.fixed_dictionaries(
    {
        "topologyKey": WORDS,
        "maxSkew": JUNK,
        "minDomains": JUNK,
        "labelSelector": LABEL_SELECTOR,
        "whenUnsatisfiable": JUNK,
    }
)
SPEC = st.fixed_dictionaries(
    {
        "affinity": st.fixed_dictionaries(
            {
                "nodeAffinity": st.fixed_dictionaries({REQUIRED: NODE_SELECTOR}),
                "podAffinity": st.fixed_dictionaries({REQUIRED: JUNK | st.lists(TERM, max_size=2)}),
                "podAntiAffinity": st.fixed_dictionaries({REQUIRED: JUNK | st.lists(TERM, max_size=2)}),
            }
        ),
        "topologySpreadConstraints": JUNK | st.lists(SPREAD, max_size=2),
        "tolerations": JUNK | st.lists(JUNK | st.fixed_dictionaries({"key": JUNK, "operator": JUNK}), max_size=2),
        "nodeSelector": JUNK,
        "containers": JUNK | st.lists(st.fixed_dictionaries({"ports": JUNK | st.lists(JUNK, max_size=2)}), max_size=2),
        "priority": JUNK,
        "volumes": JUNK,
    }
)


@LENIENT
@given(own=SPEC, other=SPEC, raw=JUNK)
def test_no_pod_at_all_makes_a_decision_raise(own: Any, other: Any, raw: Any) -> None:
    pod = pod_from({"metadata": {"name": "db-tikv-0", "namespace": "t1", "labels": raw}, "spec": own})
    beside = placed_pod_from({"metadata": {"name": "b", "namespace": "t1", "labels": raw}, "spec": other}, "n1", {})
    snapshot = replace(make_snapshot(), placed_pods=by_node(beside))

    found = decide(snapshot, Placing(pod))

    assert found.outcome in (Outcome.PINNED, Outcome.GUARDED)
    assert found.outcome is Outcome.PINNED or found.passed_over.keys() == {"n1", "n2", "n3"}


STATUS = JUNK | st.fixed_dictionaries(
    {
        "allocatable": JUNK | st.dictionaries(st.sampled_from(["cpu", "memory", "pods"]), WORDS | JUNK),
        "conditions": JUNK | st.just([{"type": "Ready", "status": "True"}]),
    }
)


@LENIENT
@given(status=STATUS, spec=JUNK | st.fixed_dictionaries({"taints": JUNK, "unschedulable": JUNK}))
def test_a_node_is_possible_only_if_it_says_that_it_is_ready_and_has_room(status: Any, spec: Any) -> None:
    metadata = {"name": "n1", "labels": {keys.HOSTNAME: "n1"}}
    node = node_from({"metadata": metadata, "spec": spec, "status": status}, parse_number)
    placing = make_placing(requests={"cpu": 1})

    if decide(make_snapshot(nodes=[node]), placing).outcome is Outcome.PINNED:
        assert node.ready
        assert node.allocatable["cpu"] >= 1
        assert node.allocatable["pods"] >= 1


@pytest.mark.parametrize("manifest", [{}, {"status": None}, {"status": {"allocatable": None, "conditions": None}}])
def test_a_node_without_a_status_is_not_ready(manifest: Any) -> None:
    node = node_from({"metadata": {"name": "n1", "labels": {keys.HOSTNAME: "n1"}}, **manifest}, parse_number)

    assert reasons_for(make_snapshot(nodes=[node]), make_placing()) == {"n1": "node(s) were not ready"}


@LENIENT
@given(
    claim=JUNK
    | st.fixed_dictionaries(
        {"volumeName": JUNK, "storageClassName": WORDS, "resources": JUNK, "selector": LABEL_SELECTOR}
    ),
    volume=JUNK
    | st.fixed_dictionaries(
        {"nodeAffinity": st.fixed_dictionaries({"required": NODE_SELECTOR}), "capacity": JUNK, "claimRef": JUNK}
    ),
    topologies=JUNK,
    capacity=JUNK,
)
def test_no_claim_volume_class_or_capacity_makes_a_decision_raise(
    claim: Any, volume: Any, topologies: Any, capacity: Any
) -> None:
    metadata = {"name": "tikv-db-tikv-0", "namespace": "t1"}
    own = claim_from({"metadata": metadata, "spec": claim, "status": {"phase": "Pending"}}, parse_number)
    made = volume_from({"metadata": {"name": "5"}, "spec": volume, "status": {"phase": "Available"}}, parse_number)
    of_class = storage_class_from(
        {
            "metadata": {"name": "5"},
            "provisioner": "zone",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topologies,
        }
    )
    published = capacity_from({"storageClassName": "5", "capacity": capacity, "nodeTopology": capacity}, parse_number)
    snapshot = make_snapshot(claims=[own])
    volumes = replace(
        make_volumes([own], [made], [of_class]),
        of_class={"5": (made,)},
        capacities={"zone": (published,)},
    )

    found = decide(replace(snapshot, volumes=volumes), make_placing())

    assert found.outcome in (Outcome.PINNED, Outcome.GUARDED, Outcome.RETURNED, Outcome.RETURNED_WAITING)


def test_a_thousand_terms_of_everything_are_borne() -> None:
    terms = tuple(
        NodeSelectorTerm((Requirement(f"k{number}", "In", ("v",)), Requirement(f"l{number}", "Gt", ("5",))))
        for number in range(1000)
    )
    anti = tuple(PodAffinityTerm(f"k{number}", None) for number in range(1000))
    tolerations = tuple(Toleration(f"k{number}", "Exists") for number in range(1000))
    placing = make_placing(
        node_affinity=NodeSelector((*terms, *label_in(keys.HOSTNAME, "za1").terms)),
        anti_affinity=anti,
        tolerations=tolerations,
    )
    taints = tuple(Taint(f"k{number}", "", "NoSchedule") for number in range(100))
    nodes = tuple(replace(node, taints=taints) for node in ZONAL_NODES)

    found = decide(make_snapshot(nodes=nodes), placing)

    assert (found.node, len(found.passed_over)) == ("za1", len(nodes) - 1)


ANYWHERE = LabelSelector({"app": "web"})
MANY = 1000


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(
            {
                "node_affinity": NodeSelector(
                    tuple(NodeSelectorTerm((Requirement(keys.HOSTNAME, "NotIn", (f"x{i}",)),)) for i in range(MANY))
                )
            },
            "the pod's node affinity has too many terms for so many nodes",
            id="node affinity",
        ),
        pytest.param(
            {"anti_affinity": tuple(PodAffinityTerm(f"k{i}", ANYWHERE) for i in range(MANY))},
            "the pod has too many terms of affinity to other pods for so many pods",
            id="affinity between pods",
        ),
        pytest.param(
            {"spread": tuple(SpreadConstraint(keys.HOSTNAME, 1, ANYWHERE) for _ in range(MANY))},
            "the pod has too many topology spread constraints for so many nodes and pods",
            id="spread constraints",
        ),
    ],
)
def test_what_cannot_be_looked_at_in_time_is_a_reason(pod: Any, reason: str) -> None:
    nodes = make_nodes(501)
    placed = by_node(*(pod_on(node.name) for node in nodes))
    snapshot = replace(make_snapshot(nodes=nodes), placed_pods=placed)

    found = decide(snapshot, make_placing(**pod))

    assert (found.outcome, set(found.passed_over.values())) == (Outcome.GUARDED, {reason})


def terms(count: int) -> NodeSelector:
    return NodeSelector(
        tuple(NodeSelectorTerm((Requirement(f"k{number}", "DoesNotExist"),)) for number in range(count))
    )


HUGE = LabelSelector({}, tuple(Requirement(f"k{number}", "NotIn", ("v",)) for number in range(16 * MANY)))


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(
            {"node_affinity": NodeSelector((NodeSelectorTerm(HUGE.match_expressions),))},
            "the pod's node affinity has too many terms for so many nodes",
            id="requirements on nodes",
        ),
        pytest.param(
            {"node_affinity": label_in("absent", *map(str, range(50_000)))},
            "node(s) didn't match Pod's node affinity/selector",
            id="values of a label that no node has",
        ),
        pytest.param(
            {"anti_affinity": (PodAffinityTerm("k", HUGE),)},
            "the pod has too many terms of affinity to other pods for so many pods",
            id="requirements on pods",
        ),
        pytest.param(
            {"spread": (SpreadConstraint(keys.HOSTNAME, 1, HUGE),)},
            "the pod has too many topology spread constraints for so many nodes and pods",
            id="requirements of a spread constraint",
        ),
    ],
)
def test_one_term_may_be_too_large_as_well(pod: Any, reason: str) -> None:
    nodes = make_nodes(501)
    snapshot = replace(make_snapshot(nodes=nodes), placed_pods=by_node(*(pod_on(node.name) for node in nodes)))

    found = decide(snapshot, make_placing(**pod))

    assert (found.outcome, set(found.passed_over.values())) == (Outcome.GUARDED, {reason})


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_a_volume_s_affinity_that_cannot_be_looked_at_in_time_is_a_reason(several: bool) -> None:
    nodes = make_nodes(501)
    names = ("a", "b", "c") if several else ("a",)
    claims = [make_claim(name, volume_name=f"pv-{name}", phase="Bound") for name in names]
    count = 5 if several else MANY
    volumes = [
        replace(make_volume(f"pv-{name}"), node_affinity=terms(count if name == "a" else MANY)) for name in names
    ]
    snapshot = make_snapshot(nodes=nodes, claims=claims, volumes=volumes)

    found = decide(snapshot, make_placing(claim_names=names))

    assert found.outcome is Outcome.GUARDED
    assert set(found.passed_over.values()) == {
        "the node affinity of the pod's volumes has too many terms for so many nodes"
    }


def free_volume(number: int, affinity: NodeSelector) -> PersistentVolume:
    volume = replace(make_volume(f"free-{number}"), node_affinity=affinity, storage_class="c", phase="Available")
    return replace(volume, capacity=Decimal(10), access_modes=("ReadWriteOnce",))


SCATTERED = tuple(StorageCapacity("c", HUGE, Decimal(100)) for _ in range(2))


@pytest.mark.parametrize(
    ("given", "topologies", "refused"),
    [
        pytest.param({}, terms(MANY), True, id="topologies"),
        pytest.param({"of_class": {"c": (free_volume(1, terms(2 * MANY)),)}}, None, True, id="a volume"),
        pytest.param(
            {"of_class": {"c": tuple(free_volume(number, terms(60)) for number in range(30))}}, None, True, id="volumes"
        ),
        pytest.param(
            {"of_class": {"c": tuple(free_volume(number, terms(3)) for number in range(MANY))}}, None, False, id="many"
        ),
        pytest.param({"capacities": {"driver": SCATTERED}}, None, True, id="capacities"),
        pytest.param({"capacities": {"driver": SCATTERED[:0]}}, None, False, id="no capacities"),
    ],
)
def test_what_a_class_offers_that_cannot_be_looked_at_in_time_is_a_reason(
    given: Any, topologies: NodeSelector | None, refused: bool
) -> None:
    claim = make_claim(storage_class="c", requested=Decimal(5))
    waits = StorageClass("c", "driver", waits=True, allowed_topologies=topologies)
    snapshot = make_snapshot(nodes=make_nodes(501), claims=[claim], classes=[waits])
    snapshot = replace(snapshot, volumes=replace(snapshot.volumes, **given))

    told = "volumes, topologies or capacities of a claim's class have too many terms for so many nodes"
    assert (told in decide(snapshot, make_placing()).passed_over.values()) is refused


def test_what_is_counted_of_a_class_s_volumes_follows_them() -> None:
    pool = Pool([free_volume(1, terms(100)), free_volume(2, terms(3))])
    larger = pool.changed({"free-3": free_volume(3, terms(50))})

    assert (pool.terms, larger.terms) == (84, 118)
    assert larger.changed({"free-1": None, "free-3": free_volume(3, terms(1))}).terms == 0


class Labels(dict[str, str]):
    looks = 0

    def __contains__(self, key: object) -> bool:
        Labels.looks += 1
        return super().__contains__(key)


def test_a_node_is_compared_with_each_term_once() -> None:
    labelled = (replace(node, labels=Labels(node.labels)) for node in make_nodes(20))
    never = tuple(NodeSelectorTerm((Requirement(keys.HOSTNAME, "DoesNotExist"),) * (at + 1)) for at in range(100))
    Labels.looks = 0

    assert not list(NodeIndex(labelled).matching((NodeSelector(never),)))
    assert Labels.looks == 20 * 100


class Tolerations(tuple[Toleration, ...]):
    looks = 0

    def __iter__(self) -> Iterator[Toleration]:
        Tolerations.looks += 1
        return super().__iter__()


def test_very_many_tolerations_are_looked_at_once_for_a_taint() -> None:
    taints = tuple(Taint(f"k{number}", "", "NoSchedule") for number in range(10))
    nodes = tuple(replace(node, taints=taints) for node in make_nodes(50))
    many = Tolerations(Toleration(f"k{number}", "Exists") for number in range(MANY))

    found = decide(make_snapshot(nodes=nodes), make_placing(tolerations=many))

    assert found.outcome is Outcome.PINNED
    # Besides these ten: that of a cordon, and what reads the pod as a whole.
    assert Tolerations.looks < 20


@pytest.mark.parametrize(
    ("volume", "possible"),
    [
        pytest.param(make_volume("pv"), {"n1", "n2"}, id="no affinity at all"),
        pytest.param(replace(make_volume("pv"), node_affinity=NodeSelector(())), set(), id="no terms"),
        pytest.param(
            replace(make_volume("pv"), node_affinity=NodeSelector((NodeSelectorTerm((Requirement("a", "Like"),)),))),
            set(),
            id="an unknown operator",
        ),
    ],
)
def test_a_volume_s_affinity_that_cannot_be_read_is_not_none(volume: Any, possible: set[str]) -> None:
    snapshot = make_snapshot(nodes=make_nodes(2), claims=[make_claim(volume_name="pv")], volumes=[volume])

    assert {"n1", "n2"} - reasons_for(snapshot, make_placing()).keys() == possible
