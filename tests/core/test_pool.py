"""The volumes of a class by where they can be used: whatever has changed, it is as if they had been read anew."""

from __future__ import annotations

from dataclasses import replace

from builders import ZONE, label_in, make_node, make_volume, pinned_to
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import keys
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Requirement
from webhook.core.pool import Pool, pool_of
from webhook.core.selectors import matches_node
from webhook.core.storage import ClaimReference, PersistentVolume

NODES = tuple(make_node(f"n{number}", zone=zone) for number, zone in ((1, "z1"), (2, "z2"), (3, "")))
NOT_N1 = NodeSelectorTerm((Requirement(keys.HOSTNAME, "NotIn", ("n1",)),))
AFFINITIES = (
    None,
    NodeSelector(()),
    pinned_to("n1"),
    label_in(keys.HOSTNAME, "n1"),
    label_in(ZONE, "z1", "z2"),
    label_in(ZONE, ""),
    NodeSelector((NOT_N1,)),
    NodeSelector((*label_in(ZONE, "z1").terms, *label_in(keys.HOSTNAME, "n2").terms)),
    NodeSelector((*label_in(ZONE, "z1").terms, NOT_N1)),
)
CLAIMS = (None, ClaimReference("t1", "a"), ClaimReference("t1", "b"), ClaimReference("t2", "a", "uid"))

volumes = st.builds(
    lambda name, affinity, claim: PersistentVolume(name, node_affinity=affinity, claim=claim),
    st.sampled_from("abcdef"),
    st.sampled_from(AFFINITIES),
    st.sampled_from(CLAIMS),
)
pools = st.lists(volumes, unique_by=lambda volume: volume.name)
changes = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.none() | volumes, max_size=3), max_size=4)


def names(found) -> list[str]:
    return sorted(volume.name for volume in found)


def seen(pool: Pool) -> dict[str, object]:
    """All that can be asked of a pool."""
    return {
        "all": names(pool),
        "size": len(pool),
        "tied": pool.tied,
        "found": [pool.find(name) for name in "abcdefx"],
        "on": [names(pool.on(node)) for node in NODES],
        "kept": [names(pool.kept_for(space, name)) for space in ("t1", "t2") for name in "abc"],
    }


def anew(there: dict[str, PersistentVolume]) -> dict[str, object]:
    """What must be said of these volumes."""
    return {
        "all": names(there.values()),
        "size": len(there),
        "tied": any(volume.node_affinity is not None for volume in there.values()),
        "found": [there.get(name) for name in "abcdefx"],
        "on": [names(one for one in there.values() if matches_node(one.node_affinity, node)) for node in NODES],
        "kept": [
            names(one for one in there.values() if one.claim and (one.claim.namespace, one.claim.name) == (space, name))
            for space in ("t1", "t2")
            for name in "abc"
        ],
    }


@given(first=pools, steps=changes)
def test_a_pool_that_changed_is_like_one_that_was_read_anew(first, steps):
    pool, there = Pool(first), {volume.name: volume for volume in first}
    for step in steps:
        step = {name: volume and replace(volume, name=name) for name, volume in step.items()}
        older, then = pool, seen(pool)
        pool = pool.changed(step)
        there = {name: volume for name, volume in (there | step).items() if volume is not None}

        assert seen(pool) == anew(there)
        assert seen(older) == then


def test_a_volume_is_in_the_pool_as_it_is_only():
    volume = make_volume("a", keys.HOSTNAME, "n1")
    pool = Pool([volume])

    assert volume in pool
    assert replace(volume, phase="Bound") not in pool
    assert "a" not in pool


def test_a_pool_is_its_own():
    pool, listed = Pool(), (make_volume("a"),)

    assert pool_of(pool) is pool
    assert pool_of(listed) is pool_of(listed)
    assert names(pool_of(listed)) == ["a"]
