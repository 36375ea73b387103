"""What drivers can still make, by where."""

from __future__ import annotations

from decimal import Decimal

import pytest
from builders import ZONE, make_node

from webhook.core.objects import LabelSelector, Requirement
from webhook.core.space import Space
from webhook.core.storage import StorageCapacity

NODE = make_node("n1", zone="z1", labels={ZONE: "z1", "disk": "ssd"})


@pytest.mark.parametrize(
    ("topology", "found"),
    [
        pytest.param(LabelSelector({ZONE: "z1"}), True, id="its zone"),
        pytest.param(LabelSelector({ZONE: "z2"}), False, id="another zone"),
        pytest.param(LabelSelector({ZONE: "z1", "disk": "ssd"}), True, id="both labels"),
        pytest.param(LabelSelector({ZONE: "z2", "disk": "ssd"}), False, id="one of two labels"),
        pytest.param(LabelSelector({"rack": "1"}), False, id="a label that it does not have"),
        pytest.param(LabelSelector(), True, id="everywhere"),
        pytest.param(LabelSelector(match_expressions=(Requirement("disk", "In", ("ssd",)),)), True, id="by expression"),
        pytest.param(LabelSelector({ZONE: "z1"}, (Requirement("disk", "Exists"),)), True, id="by both"),
        pytest.param(LabelSelector({ZONE: "z1"}, (Requirement("rack", "Exists"),)), False, id="not by both"),
        pytest.param(None, False, id="nowhere"),
    ],
)
def test_what_is_published_for_the_node_s_topology_is_found(topology, found):
    published = StorageCapacity("fast", topology, Decimal(5))
    space = Space([published, StorageCapacity("other", topology, Decimal(9))])

    assert list(space.on(NODE, "fast")) == ([published] if found else [])
