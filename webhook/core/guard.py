"""The guard: required pod anti-affinity against the own group by its topology key.

It binds both ways and for the pod's life: the scheduler also keeps later members off a guarded one. The
floor (a policy inside the API server) puts in the same term, and the same annotation.

A guarded member that runs is in the way where its domain could hold more. Once it is deleted the place must be its
own, decided anew: were a guarded pod that waits bound there first (the scheduler is quicker than any owner), that
one would be in the way, and so on, one deletion after another. So those that wait are kept off these domains too
(`Decision.avoids`), by node affinity, until they are created anew themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.core.jsonpatch import put
from webhook.core.model import Group
from webhook.core.shapes import inside, items, mapping, strings, text

REQUIRED: Final = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


def guard_term(group: Group, topology_key: str) -> dict[str, Any]:
    """The term that keeps a pod off the group's domains; without namespaces it means the pod's own."""
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(group.selector)}}


def is_guard_term(term: object, group: Group, topology_key: str) -> bool:
    """Whether a term means the same as our guard by this topology key: absent, null and [] are one."""
    given = {key: value for key, value in mapping(term).items() if value not in (None, [])}
    if given.get("namespaces") == [group.namespace]:
        del given["namespaces"]
    selector = {key: value for key, value in mapping(given.get("labelSelector")).items() if value not in (None, [])}
    return {**given, "labelSelector": selector} == guard_term(group, topology_key)


def terms_of(manifest: Mapping[str, Any]) -> list[Any]:
    """The required anti-affinity terms."""
    return items(inside(manifest, *REQUIRED))


def revise(pod: dict[str, Any], group: Group, marked: str, *, topology_key: str = "", exclusive: bool = False) -> None:
    """Make the required anti-affinity hold our guard by `topology_key` ("": none) and no other of ours, in place.

    `marked` is the topology key that the pod's annotation names. A guard by another key is replaced where
    it stands. `exclusive`: a list that holds anything of the requester's is all the requester's.
    """
    terms = terms_of(pod)
    ours = _ours(terms, group, marked) if not exclusive or len(terms) == 1 else len(terms)
    if ours < len(terms) and marked == topology_key:
        return
    wanted = [guard_term(group, topology_key)] if topology_key else []
    revised = terms[:ours] + wanted + terms[ours + 1 :]
    if revised and revised != terms:
        put(pod, REQUIRED, revised)
    elif terms and not revised:
        del inside(pod, *REQUIRED[:-1])[REQUIRED[-1]]


def keeps_off_group(term: object, group: Group, topology_key: str) -> bool:
    """Whether an anti-affinity term certainly covers every member of the group, by this topology key.

    What is known of each member is the group's selector: a requirement on any other label counts as not met.
    """
    raw = mapping(term)
    selector = raw.get("labelSelector")
    return (
        raw.get("topologyKey") == topology_key
        and isinstance(selector, dict)
        and _covers_namespace(raw, group.namespace)
        and _covers_labels(raw, selector, dict(group.selector))
    )


def _ours(terms: list[Any], group: Group, marked: str) -> int:
    """The index of our term: the last that is equal and whose key the annotation names; past the end if none."""
    places = (i for i in reversed(range(len(terms))) if marked and is_guard_term(terms[i], group, marked))
    return next(places, len(terms))


def _covers_namespace(term: Mapping[str, Any], namespace: str) -> bool:
    names, selector = items(term.get("namespaces")), term.get("namespaceSelector")
    if selector is None:
        return not names or namespace in names
    # An empty selector is every namespace; what labels ours has is not known.
    everywhere = not any(mapping(selector).values())
    return everywhere or namespace in names


def _covers_labels(term: Mapping[str, Any], selector: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    labels_hold = mapping(selector.get("matchLabels")).items() <= known.items()
    expressions_hold = all(_holds(mapping(raw), known) for raw in items(selector.get("matchExpressions")))
    # matchLabelKeys narrows to members whose label is the pod's own: no narrowing where all have the same.
    keys_hold = set(strings(term.get("matchLabelKeys"))) <= known.keys()
    return labels_hold and expressions_hold and keys_hold and not items(term.get("mismatchLabelKeys"))


def _holds(requirement: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    operator, values = requirement.get("operator"), items(requirement.get("values"))
    value = known.get(text(requirement.get("key")))
    if value is None:
        return False
    return (
        operator == "Exists" or (operator == "In" and value in values) or (operator == "NotIn" and value not in values)
    )
