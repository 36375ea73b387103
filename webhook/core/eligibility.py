"""The domains that members could be created in anew: what our own pin says does not enter."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from webhook.core import keys
from webhook.core.decision_record import record_from
from webhook.core.node_filters import is_for_others, selecting
from webhook.core.objects import NodeSelector, NodeSelectorTerm, Pod, Requirement
from webhook.core.whereabouts import Whereabouts


def some_eligible_domains(where: Whereabouts, domains: Collection[str], *, enough: int) -> set[str]:
    """These domains, and eligible ones for any of the visible pods (docs/design.md, section 2), until `enough`."""
    found = set(domains)
    seen: list[Pod] = []
    for pod in map(_unpinned, where.snapshot.pods):
        alike = Pod(
            "", "", node_selector=pod.node_selector, node_affinity=pod.node_affinity, tolerations=pod.tolerations
        )
        if len(found) >= enough:
            break
        # Members are mostly alike, and nodes may be many.
        if alike not in seen:
            seen.append(alike)
            _add_domains(where, alike, found, enough)
    return found


def _add_domains(where: Whereabouts, pod: Pod, found: set[str], enough: int) -> None:
    selects = selecting(pod, where.index)
    for node in where.index.by_name.values():
        domain = node.labels.get(where.topology_key, "")
        if domain and domain not in found and selects(node) and not is_for_others(pod, node):
            found.add(domain)
            if len(found) >= enough:
                return


def _unpinned(pod: Pod) -> Pod:
    """The pod without our pin, so far as its decision record says that there is one."""
    record = record_from(pod.annotations.get(keys.DECISION))
    if record is None or not record.node:
        return pod
    selector = {
        key: value for key, value in pod.node_selector.items() if (key, value) != (keys.HOSTNAME, record.hostname)
    }
    affinity = pod.node_affinity and _without_pin(pod.node_affinity, Requirement("metadata.name", "In", (record.node,)))
    return replace(pod, node_selector=selector, node_affinity=affinity)


def _without_pin(affinity: NodeSelector, pin: Requirement) -> NodeSelector | None:
    """The node affinity without the pin, None if it was nothing else."""
    terms = tuple(NodeSelectorTerm(term.match_expressions, _without(term.match_fields, pin)) for term in affinity.terms)
    if terms != affinity.terms and any(not term.match_expressions and not term.match_fields for term in terms):
        return None
    return NodeSelector(terms)


def _without(requirements: Iterable[Requirement], pin: Requirement) -> tuple[Requirement, ...]:
    return tuple(requirement for requirement in requirements if requirement != pin)
