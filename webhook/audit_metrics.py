"""The figures of the last audit, as the metrics page shows them.

A collector rather than gauges: groups come and go, and what is not in the last audit must not stay on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# So many groups have a margin of their own on the page, those with the least; the others are counted.
MOST_GROUPS: Final = 200


@dataclass(frozen=True, slots=True)
class GroupMargin:
    """How many domains of one topology key a group survives the loss of now."""

    namespace: str
    cluster: str
    component: str
    topology_key: str
    survives: int


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """One audit. `at`: the API server's time (seconds since 1970); `seconds`: what it took.

    `groups`: how many by state ("well", "breached", "unknown"). `findings`: groups by kind of finding. `guarded`: pods
    with the guard, by "running" and "waiting". `margins`: of the groups' own keys and of nodes. `records`: entries on
    claims, `oldest_record` the age of the oldest (s).
    """

    at: float
    seconds: float
    groups: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    guarded: Mapping[str, int] = field(default_factory=dict)
    margins: tuple[GroupMargin, ...] = ()
    records: int = 0
    oldest_record: float = 0.0


class AuditCollector(Collector):
    """Shows the figures of the last audit, nothing before the first one."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.figures: AuditFigures | None = None

    def collect(self) -> Iterator[Metric]:
        """Called by the metrics page. What it will show is described also while there is nothing to show."""
        figures = self.figures
        found = figures or AuditFigures(at=0.0, seconds=0.0)
        yield self._by("audit_groups", "Groups by state, as of the last audit.", "state", found.groups)
        yield self._by("audit_findings", "Groups by what the last audit found of them.", "kind", found.findings)
        yield self._by("guarded_pods", "Pods that carry the guard, as of the last audit.", "state", found.guarded)
        for name, text, value in (
            ("audit_timestamp_seconds", "When the last audit was made, since 1970.", found.at),
            ("audit_duration_seconds", "How long the last audit took.", found.seconds),
            ("ledger_records", "Entries on claims, as of the last audit.", found.records),
            ("ledger_oldest_record_seconds", "Age of the oldest entry, as of the last audit.", found.oldest_record),
        ):
            family = GaugeMetricFamily(f"{self._prefix}_{name}", text)
            if figures is not None:
                family.add_metric((), value)
            yield family
        yield from self._margins(found)

    def _by(self, name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
        family = GaugeMetricFamily(f"{self._prefix}_{name}", text, labels=(label,))
        for value, number in values.items():
            family.add_metric((value,), number)
        return family

    def _margins(self, figures: AuditFigures) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            f"{self._prefix}_group_margin",
            "How many domains of a topology key, whichever, a group survives the loss of; the groups with the least.",
            labels=("group_namespace", "cluster", "component", "topology_key"),
        )
        margins = sorted(figures.margins, key=lambda margin: (margin.survives, *_labels(margin)))
        for margin in margins[:MOST_GROUPS]:
            family.add_metric(_labels(margin), margin.survives)
        yield family
        left_out = GaugeMetricFamily(f"{self._prefix}_group_margins_left_out", "Margins that are not on this page.")
        left_out.add_metric((), max(0, len(margins) - MOST_GROUPS))
        yield left_out


def _labels(margin: GroupMargin) -> tuple[str, str, str, str]:
    return margin.namespace, margin.cluster, margin.component, margin.topology_key
