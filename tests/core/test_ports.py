from __future__ import annotations

from dataclasses import replace

import pytest
from builders import by_node, make_placing, make_snapshot, pod_on, reasons_for

from webhook.core.objects import HostPort

TAKEN = "node(s) didn't have free ports for the requested pod ports"
WANTED = HostPort(80, "TCP", "10.0.0.1")


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        pytest.param(HostPort(80), HostPort(80), True, id="the same"),
        pytest.param(HostPort(80), HostPort(81), False, id="another port"),
        pytest.param(HostPort(80), HostPort(80, "UDP"), False, id="another protocol"),
        pytest.param(WANTED, WANTED, True, id="the same address"),
        pytest.param(WANTED, HostPort(80, "TCP", "10.0.0.2"), False, id="another address"),
        pytest.param(WANTED, HostPort(80), True, id="one is on all addresses"),
        pytest.param(HostPort(80), WANTED, True, id="the other is on all addresses"),
        pytest.param(WANTED, HostPort(80, "TCP", "::"), False, id="as the scheduler, not as a kernel"),
    ],
)
def test_no_two_pods_of_a_node_have_one_port(wanted, taken, conflict):
    snapshot = replace(make_snapshot(), placed_pods=by_node(pod_on("n2", host_ports=(HostPort(9), taken))))

    found = reasons_for(snapshot, make_placing(host_ports=(HostPort(7), wanted)))

    assert found == ({"n2": TAKEN} if conflict else {})


def test_a_pod_without_host_ports_goes_anywhere():
    snapshot = replace(make_snapshot(), placed_pods=by_node(pod_on("n2", host_ports=(HostPort(80),))))

    assert reasons_for(snapshot, make_placing()) == {}
