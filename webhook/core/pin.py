"""Required node affinity: the pin, and the guard's "the topology key exists" and "not in these domains".

Terms are ORed, requirements of one term are ANDed. So a requirement goes into *every* term: a term of its
own would let the pod go where the user's terms forbid it. A term without requirements matches no node;
it stays as it is, since a requirement would make it match.

What is ours is recognised, so that it is replaced or taken away and never ANDed with a second one: it is
appended always, even beside an equal requirement of the user's, and it is the *last* equal one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.core import keys
from webhook.core.decision_record import record_from
from webhook.core.jsonpatch import put
from webhook.core.outcomes import PINNING
from webhook.core.shapes import inside, items, mapping, text

REQUIRED: Final = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
NODE_SELECTOR: Final = ("spec", "nodeSelector")

Requirement = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the annotations of a pod say is ours: the one way to tell it from what the requester set.

    `nodes`: a pin by node affinity names one of them. `hostname`: a pin by nodeSelector names it. `guard`:
    the topology key of the guard that we, or the floor, put in; `exists`: that of our "the key exists"; `avoids`: the
    values that we forbid it.
    """

    nodes: frozenset[str] = frozenset()
    hostname: str = ""
    guard: str = ""
    exists: str = ""
    avoids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What each term shall require for us: our pin to `node`, and that the topology key `exists`; "" for none.

    `avoids`: and that it has none of these values.
    """

    node: str = ""
    exists: str = ""
    avoids: tuple[str, ...] = ()


NOTHING: Final = Wanted()


def marks_of(manifest: Mapping[str, Any]) -> Marks:
    """Read the marks. A record of another pod's counts too: it came with our pin in a copied template."""
    annotations = mapping(inside(manifest, "metadata", "annotations"))
    record = record_from(text(annotations.get(keys.DECISION)))
    nodes = {text(annotations.get(keys.ASSIGNED_NODE))}
    if record is not None and record.outcome in PINNING:
        nodes.add(record.node)
    hostname = record.hostname if record is not None else ""
    guard = text(annotations.get(keys.GUARD))
    # The floor leaves no record: it puts in both halves of the guard, or the first alone where a v2 pod has a
    # required node affinity of its own. One of its own that is just "the key exists" cannot be told apart.
    exists = guard if record is None else record.topology_key if record.key_exists else ""
    avoids = record.avoids if record is not None and exists else ()
    return Marks(frozenset() if hostname else frozenset(nodes - {""}), hostname, guard, exists, avoids)


def pin_to(node: str) -> dict[str, Any]:
    """The requirement on a node's fields that only this node meets."""
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def key_exists(topology_key: str) -> dict[str, Any]:
    """The requirement on a node's labels that it has the topology key."""
    return {"key": topology_key, "operator": "Exists"}


def key_not_in(topology_key: str, values: Sequence[str]) -> dict[str, Any]:
    """The requirement on a node's labels that the topology key has none of the values."""
    return {"key": topology_key, "operator": "NotIn", "values": list(values)}


def terms_of(manifest: Mapping[str, Any]) -> list[Any] | None:
    """The required node selector terms; None where there is no required node affinity (it restricts nothing)."""
    required = inside(manifest, *REQUIRED)
    return None if required is None else items(mapping(required).get("nodeSelectorTerms"))


def is_empty(term: object) -> bool:
    """Whether a node selector term has no requirement, and so matches no node."""
    return not items(mapping(term).get("matchFields")) and not items(mapping(term).get("matchExpressions"))


def is_pinned(term: object, node: str) -> bool:
    """Whether a node selector term only matches this node."""
    return pin_to(node) in items(mapping(term).get("matchFields"))


def has_key_exists(term: object, topology_key: str) -> bool:
    """Whether a node selector term only matches nodes that have the topology key."""
    return any(_is_key_exists(raw, topology_key) for raw in items(mapping(term).get("matchExpressions")))


def has_key_not_in(term: object, topology_key: str, values: Sequence[str]) -> bool:
    """Whether a node selector term matches no node whose topology key has one of the values, as we require it."""
    return key_not_in(topology_key, values) in items(mapping(term).get("matchExpressions"))


def revise(pod: dict[str, Any], marks: Marks, wanted: Wanted, *, exclusive: bool = False) -> None:
    """Make the required node affinity hold what is wanted and nothing else of ours, in place.

    Nothing is left behind that matches less than before us: a required node affinity that was ours alone
    goes as a whole. `exclusive`: one that holds anything of the requester's is all the requester's, and
    stays as it is (see `affinity`).
    """
    terms = terms_of(pod)
    if terms is None:
        if wanted != NOTHING:
            put(pod, REQUIRED, {"nodeSelectorTerms": [_revised({}, Marks(), wanted)]})
        return
    revised = list(_revise_terms(terms, marks, wanted, exclusive=exclusive))
    if len(terms) == 1 and is_empty(revised[0]) and not is_empty(terms[0]):
        del inside(pod, *REQUIRED[:-1])[REQUIRED[-1]]
    elif terms:
        inside(pod, *REQUIRED)["nodeSelectorTerms"] = revised


def revise_node_selector(pod: dict[str, Any], marks: Marks, *, hostname: str = "") -> None:
    """Make the nodeSelector hold our pin by the hostname label, or take ours away (""), in place."""
    selector = mapping(inside(pod, *NODE_SELECTOR))
    if marks.hostname and dict(selector) == {keys.HOSTNAME: marks.hostname}:
        del pod["spec"]["nodeSelector"]
    if hostname:
        put(pod, (*NODE_SELECTOR, keys.HOSTNAME), hostname)


def _revise_terms(terms: list[Any], marks: Marks, wanted: Wanted, *, exclusive: bool) -> Iterator[Any]:
    alone = len(terms) == 1
    for term in terms:
        all_ours = not is_empty(term) and is_empty(_revised(term, marks, NOTHING))
        if is_empty(term) or (exclusive and not (all_ours and alone)):
            yield term
        elif all_ours and not alone:
            # We never put a term beside others: this one is the user's, however much it looks like ours.
            yield _revised(term, Marks(), wanted)
        else:
            yield _revised(term, marks, wanted)


def _revised(term: Mapping[str, Any], marks: Marks, wanted: Wanted) -> dict[str, Any]:
    pins = [pin_to(node) for node in marks.nodes]
    wanted_pin = pin_to(wanted.node) if wanted.node else None
    wanted_exists = key_exists(wanted.exists) if wanted.exists else None
    avoided = key_not_in(marks.exists, marks.avoids)
    wanted_avoided = key_not_in(wanted.exists, wanted.avoids) if wanted.exists and wanted.avoids else None
    revised = dict(term)
    _exchange(revised, "matchFields", lambda raw: raw in pins, wanted_pin)
    _exchange(revised, "matchExpressions", lambda raw: _is_key_exists(raw, marks.exists), wanted_exists)
    _exchange(revised, "matchExpressions", lambda raw: raw == avoided, wanted_avoided)
    return revised


def _exchange(term: dict[str, Any], name: str, is_ours: Callable[[Any], bool], wanted: Requirement | None) -> None:
    """Put `wanted` where our requirement is, else at the end; without `wanted` take ours away."""
    requirements = items(term.get(name))
    ours = next((i for i in reversed(range(len(requirements))) if is_ours(requirements[i])), len(requirements))
    exchanged = requirements[:ours] + ([wanted] if wanted else []) + requirements[ours + 1 :]
    if exchanged:
        term[name] = exchanged
    elif requirements:
        del term[name]


def _is_key_exists(raw: object, topology_key: str) -> bool:
    requirement = mapping(raw)
    same = (requirement.get("key"), requirement.get("operator")) == (topology_key, "Exists")
    return same and bool(topology_key) and not requirement.get("values")
