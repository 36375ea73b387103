"""Resource quantities, and what a pod asks of its node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from kubernetes.utils import quantity

from webhook.core.shapes import inside, items, mapping

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
    its limit, as the API server fills in. What cannot be read counts as nothing.
    """
    spec = mapping(pod.get("spec"))
    asked = _containers(spec)
    _replace_with_pod_level(asked, mapping(spec.get("resources")))
    _add(asked, _amounts(spec.get("overhead")))
    asked["pods"] = _ONE
    return asked


def _containers(spec: Mapping[str, Any]) -> Amounts:
    running: Amounts = {}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in items(spec.get("containers")):
        _add(running, _of_container(container))
    for container in items(spec.get("initContainers")):
        own = _of_container(container)
        if mapping(container).get("restartPolicy") == "Always":
            _add(running, own)
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(starting, own)
    _raise_to(running, starting)
    return running


def _of_container(container: object) -> Amounts:
    limits = _amounts(inside(container, "resources", "limits"))
    return limits | _amounts(inside(container, "resources", "requests"))


def _replace_with_pod_level(asked: Amounts, resources: Mapping[str, Any]) -> None:
    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
    for name in _with_pod_level(requests):
        asked[name] = requests[name]
    for name in _with_pod_level(limits):
        asked.setdefault(name, limits[name])


def _with_pod_level(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)]


def _amounts(raw: object) -> Amounts:
    parsed = ((name, parse_quantity(value)) for name, value in mapping(raw).items() if isinstance(name, str))
    return {name: amount for name, amount in parsed if amount is not None}


def _add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal()) + amount


def _raise_to(total: Amounts, other: Mapping[str, Decimal]) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, amount), amount)
