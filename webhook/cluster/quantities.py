"""Resource quantities, and what a pod asks of its node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from kubernetes.utils import quantity

from webhook.core.manifests import as_counted
from webhook.core.shapes import inside, items, mapping, text

LARGEST: Final = Decimal(2**63 - 1)
"""Kubernetes caps every quantity at this."""

# The client's parser takes all that Python's Decimal takes ("NaN", "1_000", " 1 "), Kubernetes does not.
_SYNTAX: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?", re.ASCII)
_POD_LEVEL: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
_ONE: Final = Decimal(1)

Amounts = dict[str, Decimal]


def parse_quantity(value: object) -> Decimal | None:
    """A quantity in base units (CPUs, bytes, pods), None for what is none. "250m" is 0.25, "1Ki" is 1024."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    written = str(value)
    if not _SYNTAX.fullmatch(written):
        return None
    parsed: Decimal = quantity.parse_quantity(written)  # type: ignore[no-untyped-call]
    return max(-LARGEST, min(LARGEST, parsed))


def requests_of(pod: Mapping[str, Any]) -> Mapping[str, Decimal]:
    """What the scheduler subtracts from a node's allocatable for this pod, in base units; "pods" is 1.

    Containers and sidecars run together, the other init containers one after another beside the sidecars
    started before them: the greater of the two counts, plus the overhead. Requests of the pod itself take the
    place of the sum for the resources that can have them. A container with a limit and no request asks for
    its limit, as the API server fills in; one that is being resized for the most that it has or will have. What
    cannot be read is more than any node has.
    """
    spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
    asked = _containers(spec, _Resizing.of(status))
    _replace_with_pod_level(asked, mapping(spec.get("resources")))
    _add(asked, _amounts(spec.get("overhead")))
    counted = {name: as_counted(name, min(LARGEST, amount)) for name, amount in asked.items()}
    return counted | {"pods": _ONE}


@dataclass(frozen=True, slots=True)
class _Resizing:
    """What a running pod's containers have, by name; `refused`: they will never get what they ask for now."""

    has: Mapping[str, Amounts]
    refused: bool

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> _Resizing:
        reported = (*items(status.get("containerStatuses")), *items(status.get("initContainerStatuses")))
        has: dict[str, Amounts] = {}
        for raw in reported:
            if isinstance(inside(raw, "resources"), Mapping):
                amounts = _amounts(inside(raw, "resources", "requests"))
                _raise_to(amounts, _amounts(inside(raw, "allocatedResources")))
                has[text(inside(raw, "name"))] = amounts
        conditions = [mapping(raw) for raw in items(status.get("conditions"))]
        pending = (found for found in conditions if found.get("type") == "PodResizePending")
        return cls(has, any(found.get("reason") == "Infeasible" for found in pending))

    def effective(self, container: object) -> Amounts:
        """What a container asks for, or has, whichever is more."""
        limits = _amounts(inside(container, "resources", "limits"))
        wanted = limits | _amounts(inside(container, "resources", "requests"))
        has = self.has.get(text(inside(container, "name")))
        if has is None:
            return wanted
        effective = {} if self.refused else wanted
        _raise_to(effective, has)
        return effective


def _containers(spec: Mapping[str, Any], resizing: _Resizing) -> Amounts:
    running: Amounts = {}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in items(spec.get("containers")):
        _add(running, resizing.effective(container))
    for container in items(spec.get("initContainers")):
        own = resizing.effective(container)
        if mapping(container).get("restartPolicy") == "Always":
            _add(running, own)
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(starting, own)
    _raise_to(running, starting)
    return running


def _replace_with_pod_level(asked: Amounts, resources: Mapping[str, Any]) -> None:
    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
    for name in _with_pod_level(requests):
        asked[name] = requests[name]
    for name in _with_pod_level(limits):
        asked.setdefault(name, limits[name])


def _with_pod_level(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)]


def _amounts(raw: object) -> Amounts:
    given = {name: value for name, value in mapping(raw).items() if isinstance(name, str) and value is not None}
    parsed = {name: parse_quantity(value) for name, value in given.items()}
    return {name: LARGEST if amount is None or amount < 0 else amount for name, amount in parsed.items()}


def _add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal()) + amount


def _raise_to(total: Amounts, other: Mapping[str, Decimal]) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, amount), amount)
