from __future__ import annotations

from collections import Counter

import pytest
from e2e.objects import stateful_set

from bench.arms import ANTI_AFFINITY, ARMS, SPREAD, WEBHOOK, WITHOUT, Arm, turns


def test_each_arm_is_first_and_last_equally_often():
    rounds = [turns(repetition) for repetition in range(2 * len(ARMS))]

    assert all(set(arms) == set(ARMS) for arms in rounds)
    assert set(Counter(arms[0] for arms in rounds).values()) == {2}
    assert set(Counter(arms[-1] for arms in rounds).values()) == {2}


@pytest.mark.parametrize("arm", [WITHOUT, WEBHOOK], ids=lambda arm: arm.name)
def test_the_manifest_asks_for_nothing_where_nothing_or_the_webhook_places(arm: Arm):
    assert arm.pod_spec("db", "tikv") == {}


def test_the_rules_in_a_manifest_select_the_pods_of_its_set_by_host():
    template = stateful_set("ns", cluster="db", component="tikv")["spec"]["template"]
    selector = {"matchLabels": template["metadata"]["labels"]}
    host = "kubernetes.io/hostname"

    assert ANTI_AFFINITY.pod_spec("db", "tikv") == {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": selector, "topologyKey": host}]
            }
        }
    }
    assert SPREAD.pod_spec("db", "tikv") == {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": host, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    }


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_only_required_anti_affinity_leaves_pods_without_a_node(arm: Arm):
    assert arm.possible([9, 3], nodes=3) == (6 if arm is ANTI_AFFINITY else 12)
