"""Claims that one pod at a time can use, attach limits, and zones by the labels of volumes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import (
    ZONE,
    by_node,
    make_claim,
    make_class,
    make_entry,
    make_node,
    make_nodes,
    make_placing,
    make_snapshot,
    make_volume,
    member,
    pinned_pod,
    pod_on,
    reasons_for,
)

from webhook.core.storage import CsiVolume

IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
WRONG_ZONE = "node(s) had no available volume zone"
DATA = "tikv-db-tikv-0"


@pytest.mark.parametrize(
    ("user", "mode", "refused"),
    [
        pytest.param({"claim_names": (DATA,)}, "ReadWriteOncePod", True, id="by another pod"),
        pytest.param({"claim_names": ("wal",)}, "ReadWriteOncePod", False, id="another claim"),
        pytest.param({"claim_names": (DATA,), "namespace": "t2"}, "ReadWriteOncePod", False, id="another namespace"),
        pytest.param({"claim_names": (DATA,), "name": member(0)}, "ReadWriteOncePod", False, id="by its earlier life"),
        pytest.param({"claim_names": (DATA,)}, "ReadWriteOnce", False, id="many pods may"),
    ],
)
def test_a_claim_for_one_pod_that_is_in_use_keeps_the_pod_off_every_node(user, mode, refused):
    snapshot = make_snapshot(claims=[make_claim(access_modes=(mode,))])

    found = reasons_for(replace(snapshot, placed_pods=by_node(pod_on("n2", **user))), make_placing())

    assert found == (dict.fromkeys(("n1", "n2", "n3"), IN_USE) if refused else {})


DRIVER = "fast.csi.example"
FAST = make_class("fast", provisioner=DRIVER)
UNBOUND = make_claim(storage_class="fast")


def attached(*handles: str) -> frozenset[CsiVolume]:
    return frozenset(CsiVolume(DRIVER, handle) for handle in handles)


def over_the_limit(
    limits, there, *pods, claims=(UNBOUND,), volumes=(), entries=(), names=(DATA,), claimed=None, siblings=()
):
    given = make_snapshot(claims=claims, classes=[FAST], volumes=volumes, entries=entries, pods=siblings)
    known = replace(given.volumes, attach_limits=limits, attached=there, claimed=claimed or {})
    snapshot = replace(given, volumes=known, placed_pods=by_node(*pods))
    reasons = reasons_for(snapshot, make_placing(claim_names=names))
    assert set(reasons.values()) <= {TOO_MANY}
    return reasons.keys()


class TestAttachLimits:
    def test_count_what_is_attached_and_what_the_pod_brings(self):
        limits = {"n1": {DRIVER: 2}, "n2": {DRIVER: 2}}
        there = {"n1": attached("a", "b"), "n2": attached("a"), "n3": attached("a", "b")}

        assert over_the_limit(limits, there) == {"n1"}

    def test_are_by_driver(self):
        assert over_the_limit({"n1": {"other": 0}}, {}) == set()
        assert over_the_limit({"n1": {DRIVER: 1}}, {"n1": frozenset({CsiVolume("other", "a")})}) == set()

    def test_count_every_claim(self):
        claims = (UNBOUND, make_claim("wal", storage_class="fast"))

        assert over_the_limit({"n1": {DRIVER: 1}}, {}, claims=claims, names=(DATA, "wal")) == {"n1"}

    def test_do_not_count_a_volume_again_where_another_pod_uses_it(self):
        volume = CsiVolume(DRIVER, "a")
        bound = make_claim(volume_name="pv")
        limits = {"n1": {DRIVER: 1}, "n2": {DRIVER: 1}}
        users = [pod_on("n1", claim_names=("same",)), pod_on("n2", claim_names=("other",))]
        claimed = {(users[0].namespace, "same"): volume, (users[0].namespace, "other"): CsiVolume(DRIVER, "b")}
        volumes = [replace(make_volume("pv"), csi=volume)]

        assert over_the_limit(limits, {}, *users, claims=[bound], volumes=volumes, claimed=claimed) == {"n2"}

    def test_count_a_volume_again_that_is_attached_still_but_that_nobody_uses(self):
        volume = replace(make_volume("pv"), csi=CsiVolume(DRIVER, "a"))
        bound = make_claim(volume_name="pv")
        limits = {"n1": {DRIVER: 1}, "n2": {DRIVER: 2}, "n3": {DRIVER: 1}}
        there = {"n1": attached("a"), "n2": attached("a")}

        assert over_the_limit(limits, there, claims=[bound], volumes=[volume]) == {"n1"}

    def test_do_not_count_a_claim_again_where_another_pod_uses_it(self):
        limits = {"n1": {DRIVER: 0}, "n2": {DRIVER: 0}}

        assert over_the_limit(limits, {}, pod_on("n1", claim_names=(DATA,))) == {"n2"}

    def test_do_not_count_volumes_of_no_driver(self):
        bound = make_claim(volume_name="pv")

        assert over_the_limit({"n1": {DRIVER: 0}}, {}, claims=[bound], volumes=[make_volume("pv")]) == set()

    def test_count_what_members_in_flight_bring(self):
        limits = {name: {DRIVER: 1} for name in ("n1", "n2", "n3")}

        assert over_the_limit(limits, {}, entries=[make_entry(member(1), "n3")]) == {"n3"}

    def test_count_the_claims_of_pods_that_are_there_once_whether_or_not_their_volumes_are_made(self):
        sibling = pinned_pod(member(1), "n1")
        used = {(sibling.namespace, name): CsiVolume(DRIVER, name) for name in (*sibling.claim_names, "other")}
        neighbour = pod_on("n2", claim_names=("other",))
        limits = {"n1": {DRIVER: 2}, "n2": {DRIVER: 1}}

        def over(given):
            return over_the_limit(given, {}, neighbour, siblings=[sibling], claimed=used)

        assert over(limits) == {"n2"}
        assert over({"n1": {DRIVER: 1}, "n2": {DRIVER: 2}}) == {"n1"}


OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
NODES = (make_node("n1", zone="z1"), make_node("n2", zone="z2"), replace(make_node("n3"), labels={OLD_ZONE: "z3"}))


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        pytest.param({}, set(), id="no labels"),
        pytest.param({ZONE: "z1"}, {"n2", "n3"}, id="a zone"),
        pytest.param({ZONE: "z1__z2"}, {"n3"}, id="several zones"),
        pytest.param({OLD_ZONE: "z2"}, {"n1", "n3"}, id="the old label is matched with the new one"),
        pytest.param({OLD_ZONE: "z3"}, {"n1", "n2"}, id="and with the old one"),
        pytest.param({"topology.kubernetes.io/region": "r1"}, {"n1", "n2", "n3"}, id="a region that no node has"),
        pytest.param({ZONE: "z1__"}, set(), id="what cannot be read"),
        pytest.param({"zone": "z1"}, set(), id="another label"),
    ],
)
def test_a_volume_s_labels_may_name_zones(labels, wrong):
    volume = replace(make_volume("pv"), labels=labels)
    nodes = tuple(replace(node, labels={"kubernetes.io/hostname": node.name, **node.labels}) for node in NODES)
    snapshot = make_snapshot(nodes=nodes, claims=[make_claim(volume_name="pv")], volumes=[volume])

    assert reasons_for(snapshot, make_placing()) == dict.fromkeys(sorted(wrong), WRONG_ZONE)


def test_a_node_without_any_zone_is_in_the_one_that_there_is():
    volume = replace(make_volume("pv"), labels={ZONE: "z1"})
    snapshot = make_snapshot(nodes=make_nodes(2), claims=[make_claim(volume_name="pv")], volumes=[volume])

    assert reasons_for(snapshot, make_placing()) == {}
