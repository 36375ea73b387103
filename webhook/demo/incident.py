"""The facts of the incident, and what a replay has to make up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from typing import Any

from webhook.cluster.documents import documents_of
from webhook.errors import SettingsError

_DATA = "data/incident.yaml"


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of the log: which pod, at what time of day, how many of its siblings had a node in view.

    `possible`: how many nodes the log names as possible.
    """

    pod: str
    component: str
    at: str
    siblings: int
    possible: int


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened to one cluster. `decisions` are in the order of the log, each pod's first one.

    What was made up: the `emptiest` node; what each `node` has; what `other_work` asks on all but the
    emptiest; what a pod of each component `requests`.
    """

    source: str
    date: str
    namespace: str
    cluster: str
    nodes: tuple[str, ...]
    decisions: tuple[Decided, ...]
    emptiest: str
    node: Mapping[str, str]
    other_work: Mapping[str, str]
    requests: Mapping[str, Mapping[str, str]]

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The names of each component's pods."""
        found: dict[str, tuple[str, ...]] = {}
        for decided in self.decisions:
            found[decided.component] = (*found.get(decided.component, ()), decided.pod)
        return found

    def together(self) -> tuple[tuple[Decided, ...], ...]:
        """The decisions in order, those in one tuple that knew nothing of each other."""
        groups = groupby(self.decisions, key=lambda decided: (decided.component, decided.siblings))
        return tuple(tuple(found) for _, found in groups)

    def with_emptiest(self, node: str) -> Incident:
        """The same with another node as the emptiest. Raises SettingsError if there is no such node."""
        if node not in self.nodes:
            raise SettingsError(f"--emptiest {node}: must be one of the incident's nodes: {', '.join(self.nodes)}")
        return replace(self, emptiest=node)


def read_incident() -> Incident:
    """The incident, out of this package's data."""
    (raw,) = documents_of(files("webhook").joinpath(_DATA).read_text("utf-8"), _DATA)
    made_up = raw["reconstruction"]
    first = [decision for decision in raw["decisions"] if decision["attempt"] == 1]
    namespace, _, name = first[0]["pod"].partition("/")
    return Incident(
        source=raw["source"],
        date=raw["date"],
        namespace=namespace,
        cluster=name.rsplit("-", 2)[0],
        nodes=tuple(raw["nodes"]),
        decisions=tuple(_decided(decision) for decision in first),
        emptiest=made_up["emptiest"],
        node=made_up["node"],
        other_work=made_up["other-work"],
        requests=made_up["requests"],
    )


def _decided(raw: Mapping[str, Any]) -> Decided:
    name = raw["pod"].partition("/")[2]
    siblings = sum(1 for node in raw["seen"] if node)
    return Decided(name, name.rsplit("-", 2)[1], raw["at"], siblings, raw["possible"])
