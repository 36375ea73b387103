"""What is compared: the default scheduler alone, what a manifest can ask of it, and the webhook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from e2e.objects import HOSTNAME, Object, operator_labels


@dataclass(frozen=True)
class Arm:
    """One way to have the pods of a component on different nodes."""

    name: str
    anti_affinity: bool = False
    """At most one to a node, so there may be pods for which there is no node."""
    spread: bool = False
    webhook: bool = False

    def pod_spec(self, cluster: str, component: str) -> Object:
        """The fields that the pods of a component need for it."""
        selector = {"matchLabels": operator_labels(cluster, component)}
        if self.anti_affinity:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        if self.spread:
            constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
            return {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]}
        return {}

    def possible(self, sizes: Sequence[int], nodes: int) -> int:
        """How many pods of sets of these sizes can have a node at all."""
        return sum(min(size, nodes) if self.anti_affinity else size for size in sizes)


WITHOUT = Arm("without webhook")
ANTI_AFFINITY = Arm("podAntiAffinity, required", anti_affinity=True)
SPREAD = Arm("topologySpreadConstraints", spread=True)
WEBHOOK = Arm("tidb-ha-webhook", webhook=True)
ARMS = (WITHOUT, ANTI_AFFINITY, SPREAD, WEBHOOK)


def turns(repetition: int) -> tuple[Arm, ...]:
    """The arms in the order of one repetition: each is first, and last, as often as any other."""
    start = repetition % len(ARMS)
    return ARMS[start:] + ARMS[:start]
