"""Claims that have no volume yet: on which nodes one can be found or made."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from builders import (
    GIB,
    NAMESPACE,
    ZONE,
    label_in,
    make_claim,
    make_class,
    make_entry,
    make_node,
    make_placing,
    make_snapshot,
    make_volume,
    member,
    pinned_pod,
    pinned_to,
    reasons_for,
)

from webhook.core import keys
from webhook.core.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from webhook.core.storage import ClaimReference, StorageCapacity

NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NOT_BOUND = "pod has unbound immediate PersistentVolumeClaims"
DATA = "tikv-db-tikv-0"
NODES = tuple(make_node(f"n{number}", zone=f"z{number}") for number in (1, 2, 3))


def free(name: str, *nodes: str, size: int = 100, **changes):
    """An Available local volume; for every node where none is named."""
    fields = {
        "storage_class": "local",
        "capacity": Decimal(size * GIB),
        "access_modes": ("ReadWriteOnce",),
        "phase": "Available",
    }
    return replace(make_volume(name, keys.HOSTNAME, *nodes), **(fields | changes))


def claim(name: str = DATA, size: int = 100, **changes):
    given = {"requested": Decimal(size * GIB), "access_modes": ("ReadWriteOnce",)}
    return make_claim(name, **(given | changes))


def possible(*volumes, claims=None, classes=None, nodes=NODES, placing=None, pods=(), entries=(), **more):
    """The nodes that are possible, and the reasons for the others."""
    claims = [claim()] if claims is None else claims
    given = make_snapshot(nodes=nodes, claims=claims, classes=classes, pods=pods, entries=entries)
    of_class = {found.storage_class: () for found in claims} | {
        name: tuple(volume for volume in volumes if volume.storage_class == name)
        for name in {volume.storage_class for volume in volumes}
    }
    volumes = replace(given.volumes, of_class=of_class, **more)
    names = tuple(found.name for found in claims if found.name.endswith("-0"))
    reasons = reasons_for(replace(given, volumes=volumes), placing or make_placing(claim_names=names))
    return {node.name for node in nodes} - reasons.keys(), set(reasons.values())


class TestLocalVolumes:
    def test_the_pod_goes_where_one_is_free(self):
        assert possible(free("a", "n2"), free("b", "n3")) == ({"n2", "n3"}, {NOTHING_TO_BIND})

    def test_there_are_none(self):
        assert possible() == (set(), {NOTHING_TO_BIND})

    @pytest.mark.parametrize(
        ("volume", "wanted"),
        [
            pytest.param({"size": 99}, {}, id="too small"),
            pytest.param({"capacity": None}, {}, id="of a size that cannot be read"),
            pytest.param({}, {"requested": None}, id="for a size that cannot be read"),
            pytest.param({"storage_class": "other"}, {}, id="of another class"),
            pytest.param({"access_modes": ("ReadOnlyMany",)}, {}, id="without the access mode"),
            pytest.param({"volume_mode": "Block"}, {}, id="of another mode"),
            pytest.param({"attributes_class": "gold"}, {}, id="of an attributes class"),
            pytest.param({}, {"attributes_class": "gold"}, id="not of the attributes class"),
            pytest.param({}, {"selector": LabelSelector({"disk": "nvme"})}, id="not selected"),
            pytest.param({"phase": "Released"}, {}, id="released"),
            pytest.param({"phase": "Pending"}, {}, id="not available yet"),
            pytest.param({"deleting": True}, {}, id="going away"),
            pytest.param({"claim": ClaimReference(NAMESPACE, "other")}, {}, id="kept for another claim"),
            pytest.param({"claim": ClaimReference("t2", DATA)}, {}, id="kept for one of another namespace"),
            pytest.param(
                {"claim": ClaimReference(NAMESPACE, DATA, "old")}, {}, id="kept for an earlier one of the name"
            ),
        ],
    )
    def test_what_does_not_fit_is_not_taken(self, volume, wanted):
        nodes = NODES[:1]

        assert possible(free("a", "n1", **volume), claims=[claim(**wanted)], nodes=nodes) == (set(), {NOTHING_TO_BIND})
        assert possible(free("a", "n1"), nodes=nodes) == ({"n1"}, set())

    def test_what_is_selected_is_taken(self):
        wanted = claim(selector=LabelSelector({"disk": "nvme"}), access_modes=())

        assert possible(free("a", "n1", labels={"disk": "nvme"}), claims=[wanted])[0] == {"n1"}

    def test_a_claim_that_asks_for_nothing_takes_any_size(self):
        assert possible(free("a", "n1", size=1), claims=[make_claim()])[0] == {"n1"}

    def test_one_without_node_affinity_serves_every_node(self):
        assert possible(free("a"))[0] == {"n1", "n2", "n3"}

    @pytest.mark.parametrize(
        ("affinity", "nodes"),
        [
            pytest.param(label_in(ZONE, "z1", "z3"), {"n1", "n3"}, id="another key"),
            pytest.param(
                NodeSelector((NodeSelectorTerm((Requirement(keys.HOSTNAME, "NotIn", ("n1",)),)),)),
                {"n2", "n3"},
                id="NotIn",
            ),
            pytest.param(NodeSelector((NodeSelectorTerm((Requirement("rack", "Exists"),)),)), set(), id="Exists"),
            pytest.param(
                NodeSelector((*label_in(ZONE, "z1").terms, *label_in(keys.HOSTNAME, "n2").terms)),
                {"n1", "n2"},
                id="several terms",
            ),
            pytest.param(
                NodeSelector((*label_in(ZONE, "z1").terms, NodeSelectorTerm((Requirement(ZONE, "Exists"),)))),
                {"n1", "n2", "n3"},
                id="a term that no label value finds",
            ),
            pytest.param(pinned_to("n2"), {"n2"}, id="the node's name"),
            pytest.param(NodeSelector(()), set(), id="no terms"),
        ],
    )
    def test_its_node_affinity_says_where(self, affinity, nodes):
        assert possible(free("a", node_affinity=affinity))[0] == nodes

    def test_one_that_is_kept_for_the_claim_goes_before_all_others(self):
        kept = free("kept", "n2", claim=ClaimReference(NAMESPACE, DATA), phase="Available")

        assert possible(free("a", "n1"), kept)[0] == {"n2"}

    def test_several_claims_must_find_theirs_on_one_node(self):
        wal = "wal-db-tikv-0"
        both = [claim(), claim(wal)]

        assert possible(free("a", "n1"), free("b", "n2"), free("c", "n2"), claims=both)[0] == {"n2"}

    def test_the_smallest_claim_takes_the_smallest_volume(self):
        claims = [claim(size=100), claim("wal-db-tikv-0", size=10)]
        volumes = free("big", "n1", size=100), free("small", "n1", size=10), free("a", "n2"), free("b", "n2", size=9)

        assert possible(*volumes, claims=claims)[0] == {"n1"}


class TestThoseWhoTakeThemFirst:
    VOLUMES = (free("a", "n1"), free("b", "n2"), free("c", "n2", size=200), free("d", "n3"))
    OTHER = claim("tikv-db-tikv-1")

    def test_a_member_in_flight(self):
        found = possible(*self.VOLUMES, claims=[claim(), self.OTHER], entries=[make_entry(member(1), "n3")])

        assert found == ({"n1", "n2"}, {NOTHING_TO_BIND})

    def test_a_pinned_member_that_waits_for_its_volume(self):
        found = possible(*self.VOLUMES, claims=[claim(), self.OTHER], pods=[pinned_pod(member(1), "n3")])

        assert found == ({"n1", "n2"}, {NOTHING_TO_BIND})

    def test_not_a_member_that_has_its_volume(self):
        bound = make_claim("tikv-db-tikv-1", volume_name="e")
        found = possible(*self.VOLUMES, claims=[claim(), bound], entries=[make_entry(member(1), "n3")])

        assert found[0] == {"n1", "n2", "n3"}

    def test_not_one_whose_node_is_gone(self):
        found = possible(*self.VOLUMES, claims=[claim(), self.OTHER], entries=[make_entry(member(1), "n9")])

        assert found[0] == {"n1", "n2", "n3"}

    def test_an_answer_to_another_group(self):
        theirs = claim("tikv-other-tikv-0")

        assert possible(*self.VOLUMES, promised={"n1": (theirs,), "n2": (theirs,)})[0] == {"n2", "n3"}
        assert possible(*self.VOLUMES, promised={"n2": (theirs, theirs)})[0] == {"n1", "n3"}
        assert possible(*self.VOLUMES, promised={"n9": (theirs,)})[0] == {"n1", "n2", "n3"}

    def test_an_answer_to_another_group_whose_claim_asks_for_another_class_takes_none(self):
        theirs = claim("tikv-other-tikv-0", storage_class="other")

        assert possible(*self.VOLUMES, promised={"n1": (theirs,)})[0] == {"n1", "n2", "n3"}


FAST = make_class("fast", provisioner="fast.csi.example", allowed_topologies=label_in(ZONE, "z1", "z2"))


def dynamic(*volumes, **more):
    return possible(*volumes, claims=[claim(storage_class="fast")], classes=[FAST], **more)


class TestProvisioning:
    def test_goes_where_the_class_allows(self):
        assert dynamic() == ({"n1", "n2"}, {NOTHING_TO_BIND})

    def test_is_not_needed_where_a_volume_is_free(self):
        assert dynamic(free("left", "n3", storage_class="fast"))[0] == {"n1", "n2", "n3"}

    def test_needs_a_provisioner(self):
        nameless = make_class("fast", provisioner="")

        assert possible(claims=[claim(storage_class="fast")], classes=[nameless]) == (set(), {NOTHING_TO_BIND})

    @pytest.mark.parametrize(
        ("capacities", "nodes"),
        [
            pytest.param([(ZONE, "z1", 100), (ZONE, "z2", 99)], {"n1"}, id="enough in one place"),
            pytest.param([(ZONE, "z1", 60), (ZONE, "z1", 60)], set(), id="not in one piece"),
            pytest.param([], set(), id="nothing published"),
            pytest.param([(ZONE, "z1", None)], set(), id="unknown"),
        ],
    )
    def test_needs_space_where_the_driver_publishes_it(self, capacities, nodes):
        published = tuple(
            StorageCapacity("fast", LabelSelector({key: value}), limit and Decimal(limit * GIB))
            for key, value, limit in capacities
        )

        found = dynamic(capacities={"fast.csi.example": published})

        assert found == (nodes, {NOTHING_TO_BIND, NO_SPACE})

    def test_space_for_another_class_or_without_a_place_is_none(self):
        published = (
            StorageCapacity("slow", LabelSelector(), Decimal(500 * GIB)),
            StorageCapacity("fast", None, Decimal(500 * GIB)),
        )

        assert dynamic(capacities={"fast.csi.example": published})[0] == set()

    @pytest.mark.parametrize(("requested", "nodes"), [(Decimal(0), {"n1", "n2"}), (None, set())])
    def test_a_size_that_is_not_given_needs_no_space_but_one_that_cannot_be_read_does(self, requested, nodes):
        wanted = claim(storage_class="fast", requested=requested)

        assert possible(claims=[wanted], classes=[FAST], capacities={"fast.csi.example": ()})[0] == nodes


class TestTheNodeThatTheSchedulerHasChosen:
    def test_is_the_only_one(self):
        chosen = claim(storage_class="fast", selected_node="n2")

        assert possible(claims=[chosen], classes=[FAST]) == ({"n2"}, {NOTHING_TO_BIND})

    def test_is_so_even_if_it_is_gone_until_the_provisioner_gives_it_up(self):
        chosen = claim(storage_class="fast", selected_node="gone")

        assert possible(claims=[chosen], classes=[FAST]) == (set(), {NOTHING_TO_BIND})

    def test_must_be_able_to_have_the_volume_made(self):
        chosen = claim(storage_class="fast", selected_node="n3")

        assert possible(claims=[chosen], classes=[FAST]) == (set(), {NOTHING_TO_BIND})

    def test_is_looked_at_before_other_claims(self):
        chosen = claim("wal-db-tikv-0", storage_class="fast", selected_node="n3", size=500)
        claims = [claim(), chosen]

        # n3 has no room for the other claim either, but its own class does not allow it.
        assert possible(claims=claims, classes=[make_class(), FAST], capacities={"fast.csi.example": ()}) == (
            set(),
            {NOTHING_TO_BIND},
        )

    def test_takes_no_free_volume(self):
        assert possible(free("a", "n1"), claims=[claim(selected_node="n1")])[0] == set()


class TestAClassThatBindsAtOnce:
    NOW = make_class("now", waits=False, provisioner="now.csi.example")

    @pytest.mark.parametrize(
        ("volumes", "nodes"),
        [
            pytest.param([], set(), id="no volume to learn from"),
            pytest.param([make_volume("a")], {"n1", "n2", "n3"}, id="its volumes are for every node"),
            pytest.param([make_volume("a"), make_volume("b", ZONE, "z1")], set(), id="one is tied to nodes"),
        ],
    )
    def test_is_possible_only_if_its_volumes_are_for_every_node(self, volumes, nodes):
        volumes = [replace(volume, storage_class="now") for volume in volumes]
        found = possible(*volumes, claims=[claim(storage_class="now")], classes=[self.NOW])

        assert found == (nodes, set() if nodes else {NOT_BOUND})

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("gone", 'names a StorageClass that is not there ("gone")'),
            ("", "names no StorageClass, and got no default one"),
        ],
    )
    def test_so_does_one_that_is_not_there_and_that_is_said_besides_the_schedulers_words(self, name, said):
        assert possible(claims=[claim(storage_class=name)]) == (set(), {f'{NOT_BOUND}: "tikv-db-tikv-0" {said}'})

    @pytest.mark.parametrize("name", ["gone", ""])
    def test_a_class_that_has_volumes_need_not_be_there(self, name):
        tied = replace(make_volume("a", ZONE, "z2"), storage_class=name)

        assert possible(tied, claims=[claim(storage_class=name)]) == (set(), {NOT_BOUND})

    def test_a_claim_that_names_its_volume_is_as_good_as_bound(self):
        named = claim(storage_class="now", volume_name="a")
        given = make_snapshot(nodes=NODES, claims=[named], classes=[self.NOW], volumes=[make_volume("a", ZONE, "z2")])

        assert reasons_for(given, make_placing()).keys() == {"n1", "n3"}


class TestTheClaims:
    def test_a_claim_that_is_not_there(self):
        found = reasons_for(make_snapshot(), make_placing(claim_names=(DATA, "wal")))

        assert found == dict.fromkeys(("n1", "n2", "n3"), 'persistentvolumeclaim "wal" not found')

    def test_of_ephemeral_volumes_are_made_with_the_pod_whatever_is_there_of_their_name(self):
        made = claim("db-tikv-0-scratch", storage_class="fast")
        placing = make_placing(claim_names=("db-tikv-0-scratch",), ephemeral_claims=(made,))
        old = claim("db-tikv-0-scratch", volume_name="gone")
        exists = replace(placing, pod=replace(placing.pod, uid="u1"))

        assert possible(classes=[FAST], claims=[old], placing=placing)[0] == {"n1", "n2"}
        assert possible(classes=[FAST], claims=[old], placing=exists)[0] == set()
        assert possible(classes=[FAST], claims=[], placing=exists)[0] == {"n1", "n2"}

    def test_where_nobody_read_which_volumes_there_are_they_are_not_judged_by(self):
        assert reasons_for(make_snapshot(claims=[claim()]), make_placing()) == {}
