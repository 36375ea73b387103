"""What the index of the nodes remembers, of all that it may be asked for."""

from __future__ import annotations

from builders import make_node

from webhook.core.node_index import MOST_REMEMBERED, NodeIndex


def test_a_label_that_is_on_no_node_is_not_remembered() -> None:
    index = NodeIndex([make_node("n1", zone="za")])
    for number in range(3):
        assert index.labelled(f"example.test/{number}", "a") == ()
        assert index.having([f"example.test/{number}"]) == {}
    assert (index._by_label, index._having) == ({}, {})


def test_of_sets_of_labels_only_so_many_are_remembered() -> None:
    labels = {f"example.test/{number}": "a" for number in range(MOST_REMEMBERED + 1)}
    node = make_node("n1", labels=labels)
    index = NodeIndex([node])
    for key in labels:
        assert index.having([key]) == {"n1": node}
    assert len(index._having) <= MOST_REMEMBERED
