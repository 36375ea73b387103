from __future__ import annotations

import pytest
from e2e.objects import Object, operator_labels

from bench.figures import Spread, most_on_one_node, percentile, ratio, stacked_pairs


def pod(node: str, *, namespace: str = "ns", cluster: str = "db", component: str = "tikv") -> Object:
    """A pod of a component on a node; "" is none."""
    labels = operator_labels(cluster, component)
    return {"metadata": {"namespace": namespace, "labels": labels}, "spec": {"nodeName": node} if node else {}}


def test_a_spread_is_the_least_the_median_and_the_largest():
    assert Spread.of([3, 1, 2, 10]) == Spread(1, 2.5, 10)
    assert str(Spread.of([1.234])) == "1.23 / 1.23 / 1.23"


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (1, 1), (50, 50), (99, 99), (100, 100)])
def test_a_percentile_is_a_value_that_was_measured(percent: int, expected: int):
    assert percentile(range(100, 0, -1), percent) == expected


@pytest.mark.parametrize("percent", [0, 50, 99, 100])
def test_of_one_value_every_percentile_is_that_value(percent: int):
    assert percentile([7.5], percent) == 7.5


def test_a_late_percentile_of_few_values_is_the_largest():
    assert percentile([1, 2, 3, 4, 5], 99) == 5


def test_a_ratio_is_to_a_base_if_there_is_one():
    assert ratio(3, 2) == "1.50"
    assert ratio(3, 0) == "-"


@pytest.mark.parametrize(
    ("nodes", "pairs", "most"),
    [
        ([], 0, 0),
        (["", ""], 0, 0),
        (["n0", "n1", "n2"], 0, 1),
        (["n0", "n0", "n1"], 1, 2),
        (["n0", "n0", "n0"], 3, 3),
        (["n0", "n0", "n1", "n1", ""], 2, 2),
    ],
)
def test_pairs_that_share_a_node_are_counted_and_pods_without_one_are_not(nodes: list[str], pairs: int, most: int):
    pods = [pod(node) for node in nodes]

    assert (stacked_pairs(pods), most_on_one_node(pods)) == (pairs, most)


def test_pods_of_different_groups_are_not_stacked():
    pods = [pod("n0"), pod("n0", component="pd"), pod("n0", cluster="other"), pod("n0", namespace="elsewhere")]

    assert (stacked_pairs(pods), most_on_one_node(pods)) == (0, 1)
