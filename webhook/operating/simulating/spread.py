"""Where tidb-operator v2 has the instances of a group by its policy EvenlySpread.

Each instance is given one of the policy's topologies for good: the one that has the fewest by its weight, an empty one
before all others. Its pod gets that as its nodeSelector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from webhook.cluster.door import Manifest
from webhook.core.shapes import inside, integer, items, mapping, texts

Topology = frozenset[tuple[str, str]]
"""The node labels of one place."""


@dataclass
class Spread:
    """The topologies of a group with their weights, in their order, and how many instances are at each."""

    weights: Mapping[Topology, int]
    counts: dict[Topology, int] = field(default_factory=dict)

    @classmethod
    def of(cls, group_object: Manifest, instances: Iterable[Manifest]) -> Spread:
        """What the policies of a group object say, and where its instances are. No policy: no topology."""
        weights: dict[Topology, int] = {}
        for policy in items(inside(group_object, "spec", "schedulePolicies")):
            if inside(policy, "type") == "EvenlySpread":
                for place in map(mapping, items(inside(policy, "evenlySpread", "topologies"))):
                    labels = frozenset(texts(place.get("topology")).items())
                    weights[labels] = max(1, integer(place.get("weight")) or 1)
        spread = cls(weights)
        for instance in instances:
            spread._count(topology_of(instance), 1)
        return spread

    def fullness(self, topology: Topology) -> float:
        """How many instances are there for its weight; one that no policy names is the fullest."""
        weight = self.weights.get(topology)
        return self.counts.get(topology, 0) / weight if weight else (float("inf") if self.weights else 0.0)

    def remove(self, topology: Topology) -> None:
        """One instance less is there."""
        self._count(topology, -1)

    def placed(self, instance: Manifest, pod: Manifest) -> tuple[Manifest, Manifest]:
        """A new instance and its pod, like these, but where the next one is due; it is counted there."""
        if not self.weights:
            return instance, pod
        chosen = min(self.weights, key=self.fullness)
        self._count(chosen, 1)
        instance, pod = deepcopy(instance), deepcopy(pod)
        before = dict(topology_of(instance))
        instance["spec"] = {**mapping(instance.get("spec")), "topology": dict(chosen)}
        selector = texts(inside(pod, "spec", "nodeSelector"))
        kept = {key: value for key, value in selector.items() if before.get(key) != value}
        pod["spec"]["nodeSelector"] = {**kept, **dict(chosen)}
        return instance, pod

    def _count(self, topology: Topology, number: int) -> None:
        self.counts[topology] = self.counts.get(topology, 0) + number


def topology_of(instance: Manifest) -> Topology:
    """The topology that an instance was given."""
    return frozenset(texts(inside(instance, "spec", "topology")).items())
