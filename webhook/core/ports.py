"""Host ports: no two pods of a node can have the same one (the scheduler's NodePorts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webhook.core.filtering import Filter, Victims, is_victim
from webhook.core.objects import ALL_ADDRESSES, HostPort, Node, Pod
from webhook.core.occupancy import Occupancy

NO_FREE_PORT: Final = "node(s) didn't have free ports for the requested pod ports"


def ports_filter(pod: Pod, occupancy: Occupancy) -> Filter | None:
    """The filter for a pod that takes host ports; None for any other."""
    if not pod.host_ports:
        return None
    wanted: dict[tuple[int, str], list[str]] = {}
    for port in pod.host_ports:
        wanted.setdefault((port.port, port.protocol), []).append(port.address)

    def judge(node: Node, victims: Victims) -> str | None:
        taken = (
            port
            for other in occupancy.on(node.name)
            if other.host_ports and not is_victim(other, victims)
            for port in other.host_ports
        )
        return NO_FREE_PORT if any(_overlaps(port, wanted) for port in taken) else None

    return Filter("NodePorts", judge, resolvable=True)


def _overlaps(taken: HostPort, wanted: Mapping[tuple[int, str], Sequence[str]]) -> bool:
    """Whether a port is one of those that are wanted (by number and protocol: the addresses)."""
    addresses = wanted.get((taken.port, taken.protocol), ())
    return any(taken.address == address or ALL_ADDRESSES in (taken.address, address) for address in addresses)
