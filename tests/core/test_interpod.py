"""Required affinity and anti-affinity between pods."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import (
    NAMESPACE,
    ZONAL_NODES,
    ZONE,
    by_node,
    guard_term,
    make_entry,
    make_group,
    make_placing,
    make_snapshot,
    member,
    pod_on,
    reasons_for,
    running_pod,
)

from webhook.core import keys
from webhook.core.objects import LabelSelector, PodAffinityTerm, Requirement

WEB = LabelSelector({"app": "web"})
OWN = LabelSelector(dict(make_group().selector))
NOT_WITH = "node(s) didn't match pod affinity rules"
KEPT_OFF = "node(s) didn't match pod anti-affinity rules"
UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"
ZONES = ("za", "zb", "zc")


def by_zone(selector: LabelSelector | None = WEB, key: str = ZONE, **scope) -> tuple[PodAffinityTerm, ...]:
    return (PodAffinityTerm(key, selector, **scope),)


def reasons(*pods, namespaces=None, snapshot=None, **pod):
    given = snapshot or make_snapshot(nodes=ZONAL_NODES)
    given = replace(given, placed_pods=by_node(*pods), namespaces=namespaces or {})
    return reasons_for(given, make_placing(**pod))


def in_zones(reason: str, *zones: str) -> dict[str, str]:
    return {f"{zone}{number}": reason for zone in zones for number in (1, 2)}


class TestAntiAffinity:
    def test_keeps_the_pod_out_of_the_domains_of_those_it_selects(self):
        others = pod_on("za1"), pod_on("zb2", labels={"app": "db"})

        assert reasons(*others, anti_affinity=by_zone()) == in_zones(KEPT_OFF, "za")

    def test_of_others_against_the_pod_counts_as_much(self):
        assert reasons(pod_on("za1", anti_affinity=by_zone(OWN))) == in_zones(UNWANTED, "za")

    def test_of_others_against_others_does_not(self):
        assert reasons(pod_on("za1", anti_affinity=by_zone(WEB))) == {}

    def test_a_node_without_the_label_has_no_place(self):
        assert reasons(pod_on("za1", anti_affinity=by_zone(OWN, "rack")), anti_affinity=by_zone(WEB, "rack")) == {}

    def test_a_pod_on_a_node_that_is_gone_keeps_nobody_off(self):
        assert reasons(pod_on("gone", anti_affinity=by_zone(OWN)), anti_affinity=by_zone()) == {}

    def test_no_selector_selects_nobody(self):
        assert reasons(pod_on("za1"), anti_affinity=by_zone(None)) == {}

    def test_its_own_earlier_life_does_not_keep_it_off(self):
        earlier = pod_on("za1", member(0), labels=OWN.match_labels, anti_affinity=by_zone(OWN))

        assert reasons(earlier, anti_affinity=by_zone(OWN)) == {}

    def test_a_member_in_flight_is_kept_away_from_too(self):
        snapshot = make_snapshot(nodes=ZONAL_NODES, entries=[make_entry(member(1), "zb1")])

        assert reasons(snapshot=snapshot, anti_affinity=by_zone(OWN)) == in_zones(KEPT_OFF, "zb")

    def test_a_member_is_where_the_consistent_list_says(self):
        snapshot = make_snapshot(nodes=ZONAL_NODES, pods=[running_pod(member(1), "zb1")])
        read = pod_on("za1", member(1), labels=OWN.match_labels)

        assert reasons(read, snapshot=snapshot, anti_affinity=by_zone(OWN)) == in_zones(KEPT_OFF, "zb")


class TestTheGuardOfMembers:
    """The rule judges it, by the consistent list; here it would be said twice, and by what may be stale."""

    def test_is_left_to_the_rule(self):
        guarded = pod_on("za1", member(1), anti_affinity=(guard_term(),), guard=keys.HOSTNAME)

        assert reasons(guarded) == {}

    def test_on_a_pod_that_is_no_member_is_looked_at_as_any_term_is(self):
        copied = pod_on("za1", "inspect-x7k2p", anti_affinity=(guard_term(),), guard=keys.HOSTNAME)
        elsewhere = pod_on(
            "zb1",
            member(1),
            namespace="elsewhere",
            anti_affinity=(PodAffinityTerm(keys.HOSTNAME, OWN, namespaces=("t1",)),),
            guard=keys.HOSTNAME,
        )

        assert reasons(copied, elsewhere) == {"za1": UNWANTED, "zb1": UNWANTED}

    @pytest.mark.parametrize(
        ("guard", "term"),
        [
            pytest.param("", guard_term(), id="an equal term without the annotation"),
            pytest.param(ZONE, guard_term(), id="the annotation of another key"),
            pytest.param(keys.HOSTNAME, PodAffinityTerm(keys.HOSTNAME, LabelSelector()), id="another selector"),
        ],
    )
    def test_is_only_the_term_that_is_ours(self, guard, term):
        assert reasons(pod_on("za1", member(1), anti_affinity=(term,), guard=guard)) == {"za1": UNWANTED}


class TestAffinity:
    def test_leads_the_pod_to_the_domains_of_those_it_selects(self):
        assert reasons(pod_on("za1"), affinity=by_zone()) == in_zones(NOT_WITH, "zb", "zc")

    def test_needs_one_pod_that_all_terms_select(self):
        fast = LabelSelector({"disk": "fast"})
        terms = (*by_zone(), *by_zone(fast))
        halves = pod_on("za1"), pod_on("za1", "fast", labels={"disk": "fast"})
        whole = pod_on("zb1", labels={"app": "web", "disk": "fast"})

        assert reasons(*halves, whole, affinity=terms) == in_zones(NOT_WITH, "za", "zc")

    def test_needs_the_label_on_the_node(self):
        assert reasons(pod_on("za1"), affinity=by_zone(key="rack")) == in_zones(NOT_WITH, *ZONES)

    def test_without_anybody_there_is_no_place(self):
        assert reasons(affinity=by_zone()) == in_zones(NOT_WITH, *ZONES)

    def test_the_first_of_a_series_that_wants_to_be_together_goes_anywhere(self):
        assert reasons(affinity=by_zone(OWN)) == {}

    def test_the_second_must_follow_though_nobody_can_see_the_first_yet(self):
        snapshot = make_snapshot(nodes=ZONAL_NODES, entries=[make_entry(member(1), "zb1")])

        assert reasons(snapshot=snapshot, affinity=by_zone(OWN)) == in_zones(NOT_WITH, "za", "zc")

    def test_even_the_first_needs_the_label_on_the_node(self):
        assert reasons(affinity=by_zone(OWN, "rack")) == in_zones(NOT_WITH, *ZONES)


NAMESPACES = {"web": {"team": "a"}, NAMESPACE: {}}
TEAM_A = LabelSelector({"team": "a"})
EVERY = LabelSelector()
SCOPES = [
    pytest.param({}, NAMESPACE, True, id="its own by default"),
    pytest.param({}, "web", False, id="no other by default"),
    pytest.param({"namespaces": ("web",)}, "web", True, id="one that is named"),
    pytest.param({"namespaces": ("web",)}, NAMESPACE, False, id="then its own is not"),
    pytest.param({"namespace_selector": TEAM_A}, "web", True, id="one that is selected"),
    pytest.param({"namespace_selector": TEAM_A}, NAMESPACE, False, id="one that is not selected"),
    pytest.param({"namespace_selector": EVERY}, "unheard-of", True, id="all"),
    pytest.param({"namespaces": (NAMESPACE,), "namespace_selector": TEAM_A}, NAMESPACE, True, id="named or selected"),
]


@pytest.mark.parametrize(("scope", "namespace", "reaches"), SCOPES)
def test_a_term_reaches_the_namespaces_that_it_names_or_selects(scope, namespace, reaches):
    other = pod_on("za1", namespace=namespace)

    away = reasons(other, anti_affinity=by_zone(**scope), namespaces=NAMESPACES)
    towards = reasons(other, affinity=by_zone(**scope), namespaces=NAMESPACES)

    assert away == (in_zones(KEPT_OFF, "za") if reaches else {})
    assert towards == in_zones(NOT_WITH, *(("zb", "zc") if reaches else ZONES))


def test_a_term_of_another_pod_reaches_out_from_its_own_namespace():
    away = pod_on("za1", namespace="web", anti_affinity=by_zone(OWN))
    here = pod_on("zb1", namespace="web", anti_affinity=by_zone(OWN, namespaces=(NAMESPACE,)))

    assert reasons(away, here) == in_zones(UNWANTED, "zb")


def test_where_the_labels_of_a_namespace_are_not_known_less_is_promised():
    other = pod_on("za1", namespace="unheard-of", anti_affinity=by_zone(OWN, namespace_selector=TEAM_A))
    term = by_zone(namespace_selector=TEAM_A)

    assert reasons(other, anti_affinity=term) == in_zones(KEPT_OFF, "za")
    assert reasons(other) == in_zones(UNWANTED, "za")
    assert reasons(other, affinity=term) == in_zones(NOT_WITH, *ZONES)


@pytest.mark.parametrize("field", ["affinity", "anti_affinity"])
@pytest.mark.parametrize("scope", ["selector", "namespace_selector"])
def test_a_selector_that_cannot_be_used_keeps_the_pod_off_every_node(field, scope):
    broken = LabelSelector(match_expressions=(Requirement("app", "Like", ("web",)),))
    term = replace(by_zone()[0], **{scope: broken})

    found = reasons(**{field: (term,)})

    assert set(found.values()) == {
        "the pod's affinity to other pods cannot be used: a label selector in it is not valid"
    }
    assert len(found) == len(ZONAL_NODES)
