"""What the fields that a pod's requester has set, and sets again, leave to us.

Only fields of tidb-operator v2's pods may not be free (see `affinity.py`). That is found out before a node is promised,
so that none is held for a pod that cannot be pinned to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_PIN: Final = "its own node affinity and nodeSelector must not be changed: its operator applies them again"
NO_GUARD: Final = "its own required anti-affinity must not be changed and does not cover its whole group"


@dataclass(frozen=True, slots=True)
class FreeFields:
    """What may be ours in one pod.

    `pin`: its required node affinity; `hostname`: its nodeSelector. `guards`: the topology keys by which the pod
    can be kept off its group, None for any.
    """

    pin: bool = True
    hostname: bool = True
    guards: frozenset[str] | None = None

    def can_pin(self, hostname: str) -> bool:
        """Whether the pod can be pinned to a node; `hostname` is the label that it has alone, else ""."""
        return self.pin or (self.hostname and bool(hostname))

    def can_guard(self, topology_key: str) -> bool:
        """Whether the pod can be kept off its group by this topology key."""
        return self.guards is None or topology_key in self.guards
