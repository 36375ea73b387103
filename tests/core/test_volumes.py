from __future__ import annotations

import pytest
from builders import (
    ZONE,
    label_in,
    make_claim,
    make_node,
    make_nodes,
    make_pod,
    make_snapshot,
    make_volume,
    make_volumes,
)

from webhook.core import keys
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Requirement
from webhook.core.storage import PersistentVolume
from webhook.core.volumes import (
    AFFINITY_CONFLICT,
    NO_VOLUME,
    NodeIndex,
    VolumeVerdict,
    claims_by_name,
    claims_of_pod,
    data_affinities,
    sole_domain,
    volume_verdict,
)

NODES = (make_node("n1", zone="za"), make_node("n2", zone="zb"), make_node("n3", zone="zb"))
ON_N2 = make_volume("on-n2", keys.HOSTNAME, "n2")
IN_ZB = make_volume("in-zb", ZONE, "zb")
IN_BOTH = make_volume("in-both", ZONE, "za", "zb")
ANYWHERE = make_volume("anywhere")
VOLUMES = (ON_N2, IN_ZB, IN_BOTH, ANYWHERE)


def bound(volume: str, name: str = "tikv-db-tikv-0"):
    return make_claim(name, volume_name=volume)


def verdict(*claims, classes=None) -> VolumeVerdict:
    return volume_verdict(claims, make_volumes(claims, VOLUMES, classes), NODES)


def reasons(found: VolumeVerdict) -> dict[str, str]:
    return {node.name: reason for node in NODES if (reason := found.reason(node.name))}


def test_a_pod_without_claims_may_go_anywhere():
    assert verdict() == VolumeVerdict()


def test_a_bound_claim_allows_the_nodes_of_its_volume():
    assert verdict(bound("on-n2")) == VolumeVerdict(
        bound=True,
        nodes=frozenset({"n2"}),
        data=(ON_N2.node_affinity,),
    )


@pytest.mark.parametrize(
    ("claims", "nodes"),
    [
        pytest.param([bound("anywhere")], None, id="a volume without node affinity"),
        pytest.param([bound("in-both")], {"n1", "n2", "n3"}, id="a regional volume: both zones"),
        pytest.param([bound("in-zb")], {"n2", "n3"}, id="a zonal volume"),
        pytest.param([bound("in-zb"), bound("on-n2", "wal")], {"n2"}, id="all claims narrow"),
        pytest.param([make_claim(), bound("on-n2", "wal")], {"n2"}, id="the bound one of two"),
        pytest.param([make_claim()], None, id="an unbound claim of a class without topologies"),
        pytest.param([make_claim(storage_class="")], None, id="a claim without a class"),
        pytest.param([make_claim(storage_class="gone")], None, id="a class that is not there"),
    ],
)
def test_all_claims_of_the_pod_narrow_the_nodes(claims, nodes):
    found = verdict(*claims)

    assert found.nodes == (None if nodes is None else frozenset(nodes))
    assert reasons(found) == {name: AFFINITY_CONFLICT for name in ("n1", "n2", "n3") if nodes and name not in nodes}


def one_term(*requirements: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(requirements, fields)


@pytest.mark.parametrize(
    ("terms", "nodes"),
    [
        pytest.param([one_term(Requirement(ZONE, "NotIn", ("za",)))], {"n2", "n3"}, id="NotIn"),
        pytest.param([one_term(Requirement(ZONE, "Exists"))], {"n1", "n2", "n3"}, id="Exists"),
        pytest.param([one_term(Requirement("rack", "DoesNotExist"))], {"n1", "n2", "n3"}, id="DoesNotExist"),
        pytest.param([one_term(Requirement("rack", "Exists"))], set(), id="a label that no node has"),
        pytest.param(
            [one_term(Requirement(ZONE, "In", ("za",))), one_term(Requirement(keys.HOSTNAME, "In", ("n3",)))],
            {"n1", "n3"},
            id="one of several terms is enough",
        ),
        pytest.param(
            [one_term(Requirement(ZONE, "In", ("zb",)), Requirement(keys.HOSTNAME, "NotIn", ("n3",)))],
            {"n2"},
            id="all requirements of a term",
        ),
        pytest.param([one_term(fields=(Requirement("metadata.name", "In", ("n2",)),))], {"n2"}, id="matchFields alone"),
        pytest.param(
            [one_term(Requirement(ZONE, "In", ("zb",)), fields=(Requirement("metadata.name", "NotIn", ("n2",)),))],
            {"n3"},
            id="matchFields beside labels",
        ),
    ],
)
def test_a_bound_volume_allows_nodes_by_any_key_operator_and_field(terms, nodes):
    volume = PersistentVolume("odd", node_affinity=NodeSelector(tuple(terms)))
    claim = bound("odd")

    assert volume_verdict([claim], make_volumes([claim], [volume]), NODES).nodes == nodes


def test_a_claim_that_is_about_to_be_bound_restricts_but_is_no_data_yet():
    found = verdict(make_claim(volume_name="on-n2", phase="Pending"))

    assert (found.bound, found.nodes, found.data) == (False, frozenset({"n2"}), ())


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param(bound("gone"), NO_VOLUME, id="its volume is gone"),
        pytest.param(
            make_claim(phase="Lost", volume_name="gone"),
            'persistentvolumeclaim "tikv-db-tikv-0" bound to non-existent persistentvolume "gone"',
            id="it is lost",
        ),
        pytest.param(
            make_claim(deleting=True), 'persistentvolumeclaim "tikv-db-tikv-0" is being deleted', id="it goes away"
        ),
    ],
)
def test_a_claim_that_cannot_be_used_allows_no_node(claim, problem):
    found = verdict(claim, bound("on-n2", "wal"))

    assert (found.nodes, found.problem) == (frozenset(), problem)
    assert reasons(found) == dict.fromkeys(("n1", "n2", "n3"), problem)


def test_the_claims_of_a_pod_are_those_it_names_and_that_exist():
    pod = make_pod(claim_names=("wal", "scratch", "data"))
    claims = {name: make_claim(name) for name in ("data", "wal", "other")}

    assert [claim.name for claim in claims_of_pod(pod, claims)] == ["wal", "data"]


def test_a_claim_that_was_read_again_for_its_volume_stands_as_read_last():
    snapshot = make_snapshot(claims=[bound("on-n2")])
    older = make_snapshot()

    assert claims_by_name(snapshot)["tikv-db-tikv-0"].volume_name == "on-n2"
    assert older.claims == tuple(claims_by_name(older).values())


def narrow(*requirements: Requirement) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_expressions=requirements),))


@pytest.mark.parametrize(
    ("volumes", "key", "expected"),
    [
        pytest.param([], ZONE, "", id="no data"),
        pytest.param([ON_N2], keys.HOSTNAME, "n2", id="a local volume"),
        pytest.param([ON_N2], ZONE, "zb", id="a local volume, by zone"),
        pytest.param([IN_ZB], ZONE, "zb", id="a zonal volume"),
        pytest.param([IN_ZB], keys.HOSTNAME, "", id="a zonal volume, by host: several"),
        pytest.param([IN_BOTH], ZONE, "", id="a regional volume: several"),
        pytest.param([IN_BOTH, ON_N2], ZONE, "zb", id="the narrower of two decides"),
        pytest.param([make_volume("v", keys.HOSTNAME, "n9")], keys.HOSTNAME, "n9", id="its node is gone"),
        pytest.param([make_volume("v", keys.HOSTNAME, "n9")], ZONE, "", id="its node is gone, and with it the zone"),
        pytest.param([make_volume("v", ZONE, "zc")], ZONE, "zc", id="the zone has no node now"),
        pytest.param([make_volume("v", ZONE, "zb", "zc")], ZONE, "", id="one of two zones has no node now"),
        pytest.param([ON_N2, make_volume("v", keys.HOSTNAME, "n1")], keys.HOSTNAME, "", id="no node in common"),
        pytest.param([make_volume("v", "disk", "ssd")], keys.HOSTNAME, "", id="a label that no node has"),
    ],
)
def test_data_ties_a_member_to_a_domain_only_if_it_is_the_only_one(volumes, key, expected):
    affinities = [volume.node_affinity for volume in volumes]

    assert sole_domain(affinities, NodeIndex(NODES), key) == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(narrow(Requirement("kubernetes.io/arch", "In", ("arm64",))), "zc", id="any label"),
        pytest.param(narrow(Requirement(ZONE, "NotIn", ("za", "zb"))), "zc", id="any operator"),
        pytest.param(narrow(Requirement("cores", "Gt", ("8",))), "zc", id="numbers"),
        pytest.param(
            narrow(Requirement(ZONE, "In", ("za", "zc")), Requirement("cores", "Gt", ("8",))), "", id="named, if empty"
        ),
    ],
)
def test_data_is_found_by_any_key_and_operator(affinity, expected):
    big = make_node("n4", labels={ZONE: "zc", "kubernetes.io/arch": "arm64", "cores": "16"})

    assert sole_domain([affinity], NodeIndex((*NODES, big)), ZONE) == expected


def test_an_unlabelled_node_is_in_no_domain():
    nodes = (make_node("n1"), make_node("n2", zone="zb"))

    assert sole_domain([label_in(keys.HOSTNAME, "n1")], NodeIndex(nodes), ZONE) == ""


def test_only_bound_claims_are_data():
    claims = [bound("on-n2"), make_claim("wal", volume_name="in-zb", phase="Pending"), bound("anywhere", "tmp")]

    assert data_affinities(claims, make_volumes(claims, VOLUMES)) == (ON_N2.node_affinity,)


def test_a_volume_that_is_not_known_is_no_data():
    assert data_affinities([bound("gone")], make_volumes((), VOLUMES)) == ()


def test_the_index_finds_each_node_once():
    twice = NodeSelector(label_in(ZONE, "za", "zb").terms + label_in(keys.HOSTNAME, "n1").terms)

    assert sorted(node.name for node in NodeIndex(NODES).matching([twice])) == ["n1", "n2", "n3"]


def test_the_index_gives_all_nodes_where_nothing_restricts():
    nodes = make_nodes(2)

    assert list(NodeIndex(nodes).matching([])) == list(nodes)


def test_the_index_knows_nodes_by_label():
    index = NodeIndex(NODES)

    assert [node.name for node in index.labelled(ZONE, "zb")] == ["n2", "n3"]
    assert index.labelled(ZONE, "zc") == index.labelled("rack", "r1") == ()


def test_a_volume_with_an_empty_affinity_allows_no_node():
    nowhere = PersistentVolume("nowhere", NodeSelector(()))

    assert volume_verdict([bound("nowhere")], make_volumes((), [nowhere]), NODES).nodes == frozenset()
