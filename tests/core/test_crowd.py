"""The pods on all nodes: whatever has changed, it is as if they had been counted anew."""

from __future__ import annotations

from collections.abc import Sequence

from builders import NAMESPACE, by_node, pod_on
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.crowd import Crowd
from webhook.core.objects import LabelSelector, PodAffinityTerm, PodOnNode, Requirement

WEB = LabelSelector({"app": "web"})
TERMS = (
    PodAffinityTerm(keys.HOSTNAME, WEB),
    PodAffinityTerm(keys.HOSTNAME, LabelSelector({"tier": "front", "app": "web"})),
    PodAffinityTerm(keys.HOSTNAME, LabelSelector(), namespaces=("t2",)),
    PodAffinityTerm(keys.HOSTNAME, WEB, namespace_selector=LabelSelector()),
    PodAffinityTerm(keys.HOSTNAME, LabelSelector(match_expressions=(Requirement("app", "Exists"),))),
    PodAffinityTerm(keys.HOSTNAME, None),
)
NODES = ("n1", "n2", "n3")

pods = st.builds(
    lambda name, node, namespace, terms: pod_on(node, name, namespace=namespace, anti_affinity=tuple(terms)),
    st.sampled_from("abcd"),
    st.sampled_from(NODES),
    st.sampled_from((NAMESPACE, "t2")),
    st.lists(st.sampled_from(TERMS), max_size=2),
)
placed = st.lists(pods, max_size=6).map(lambda found: by_node(*found))
steps = st.lists(st.dictionaries(st.sampled_from(NODES), st.lists(pods, max_size=3), max_size=2), max_size=4)


def names(found: Sequence[PodOnNode]) -> list[str]:
    return sorted(f"{pod.namespace}/{pod.name} on {pod.node_name}" for pod in found)


def seen(crowd: Crowd) -> dict[str, object]:
    """All that can be asked of a crowd."""
    spaces, labels = (NAMESPACE, "t2", "t3"), ({}, {"app": "web"}, {"tier": "front", "app": "db"})
    return {
        "size": crowd.size,
        "nodes": {name: names(crowd.on(name)) for name in (*NODES, "n9")},
        "everybody": names(list(crowd.everybody())),
        "named": {(space, name): names(crowd.named(space, name)) for space in spaces for name in "abcd"},
        "spaces": {space: names(list(crowd.in_namespace(space))) for space in spaces},
        "repelling": [names(list(crowd.repelling(space, each))) for space in spaces for each in labels],
    }


def relocated(node: str, there: Sequence[PodOnNode]) -> list[PodOnNode]:
    return [pod_on(node, pod.name, namespace=pod.namespace, anti_affinity=pod.anti_affinity) for pod in there]


@given(before=placed, changes=steps)
def test_a_crowd_that_moved_is_like_one_that_was_read_anew(before, changes):
    crowd, current = Crowd(before), dict(before)
    for change in changes:
        change = {node: relocated(node, there) for node, there in change.items()}
        older, then = crowd, seen(crowd)
        crowd = crowd.moved(change)
        current |= change

        assert seen(crowd) == seen(Crowd(current))
        assert dict(crowd) == {name: tuple(there) for name, there in current.items() if there}
        assert seen(older) == then


def test_pods_that_stay_are_not_taken_for_others():
    stays, goes, comes = pod_on("n1", "stays"), pod_on("n1", "goes"), pod_on("n1", "comes")
    crowd = Crowd(by_node(stays, goes)).moved({"n1": [stays, comes]})

    assert crowd.named(NAMESPACE, "stays") == (stays,)
    assert crowd.named(NAMESPACE, "goes") == ()
    assert len(crowd) == 1


def test_a_pod_that_was_seen_on_two_nodes_is_found_on_both():
    crowd = Crowd(by_node(pod_on("n1", "a"), pod_on("n2", "a")))

    assert [pod.node_name for pod in crowd.named(NAMESPACE, "a")] == ["n1", "n2"]


def test_those_whose_anti_affinity_is_for_others_are_not_looked_at():
    def against(labels, **fields):
        return pod_on("n1", str(fields), anti_affinity=(PodAffinityTerm(keys.HOSTNAME, labels, **fields),))

    near, everywhere = against(WEB), against(WEB, namespace_selector=LabelSelector())
    crowd = Crowd(by_node(near, everywhere, pod_on("n1", "c")))

    assert list(crowd.repelling(NAMESPACE, {"app": "web"})) == [everywhere, near]
    assert list(crowd.repelling("t2", {"app": "web"})) == [everywhere]
    assert list(crowd.repelling(NAMESPACE, {"app": "db"})) == []
