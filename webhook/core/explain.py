"""The sentences that explain a decision: counts, cap, and what holds the pod back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from webhook.core import keys
from webhook.core.case import Case
from webhook.core.decision_record import grouped_reasons, largest_counts
from webhook.core.model import MemberClass
from webhook.core.obstacles import LARGER_THAN_ANY_NODE, WITHOUT_NODES

# Beyond this a list is for the log, not for a sentence.
SHOWN: Final = 5

_NONE: Final = Decimal()
_GIBI: Final = Decimal(2**30)

UNTOUCHED: Final = "a set of one has no other member to be kept apart from"


def of_guard(case: Case, kept_off: Mapping[str, str]) -> str:
    """Why no node is safe. `kept_off`: our reasons by node name, without full domains, which the counts show."""
    sentences = [_limit(case), _holders(case), *_too_large(case)]
    if _waits_for_more_domains(case):
        sentences.append(_held_back(case))
    if dead_ends := _dead_ends(case):
        sentences.append(f"the volumes of {_listed(dead_ends)} allow no node, so the pod waits for its data")
    if case.topology_key != keys.HOSTNAME:
        sentences += _unusable_domains(case)
    sentences += _shortened(grouped_reasons({**case.survey.infeasible, **kept_off}))
    return "; ".join(filter(None, sentences)) if case.where.index.by_name else WITHOUT_NODES


def of_avoided(case: Case, domains: Sequence[str]) -> str:
    """Why a guarded pod is kept off the domains of guarded members, and for how long."""
    names = [case.census.guards[case.topology_key, domain] for domain in domains]
    first = " ".join(names[:SHOWN])
    return f"it leaves {_listed(domains)} to {_listed(names)}: kubectl delete pod {first}, and then this one"


def of_unknown(case: Case) -> str:
    """Why nothing is safe while members are in an unknown domain."""
    return (
        f"the {_word(case)} of {_listed(case.census.unknown)} is not known (its node is gone, or its answer was by"
        " another topology key, and its volume names none), so no node is certainly safe until it is placed again"
    )


def doubtful(case: Case) -> str:
    """The reason for each node that is possible, but not certainly safe."""
    return f"its {_word(case)} may hold {_listed(case.census.unknown)}, whose {_word(case)} is not known"


def of_pin(case: Case, domain: str, joining: Iterable[str] = ()) -> str:
    """Why a domain is safe; `joining` are the open members on whose account the pod is guarded too."""
    names = sorted(joining)
    guarded = f"; guarded too, since {_listed(names)} could join it" if names else ""
    limit = "no cap" if case.cap is None else f"at most {case.cap}"
    return f"domain {domain} holds {case.census.count(domain)} member(s), {limit}{guarded}"


def of_room(in_the_way: str) -> str:
    """How there is room on a node where this is in the way, "" if there simply is."""
    return f"; room is made by preempting pods of lower priority ({in_the_way})" if in_the_way else ""


def of_return(case: Case, domain: str, doubt: str) -> str:
    """Why a member goes back to a domain that is not certainly within the cap, and what that makes of it.

    `doubt`: who else could come to the domain, in words, "" for nobody.
    """
    unknown = f"; where {_listed(case.census.unknown)} is, is not known" if case.census.unknown else ""
    now = f"now {case.census.count(domain) + 1} of {case.cap}"
    sentences = (f"its data is in domain {domain} only, so it goes back: {now}{unknown}", doubt)
    return "; ".join(filter(None, sentences))


def of_waiting(case: Case, domain: str, passed_over: Mapping[str, str]) -> str:
    """Why a member that must go back waits."""
    nodes = case.where.index.labelled(case.topology_key, domain)
    reasons = grouped_reasons({node.name: passed_over[node.name] for node in nodes if node.name in passed_over})
    what = "; ".join(_shortened(reasons)) or f"no such {_word(case)} is there"
    return f"its data is in domain {domain} only, where no node is possible now: {what}"


def _word(case: Case) -> str:
    """What a domain is called: node, zone, rack, …"""
    return "node" if case.topology_key == keys.HOSTNAME else case.topology_key.rpartition("/")[2]


def _limit(case: Case) -> str:
    limit = "no cap" if case.cap is None else f"at most {case.cap} to a {_word(case)}"
    return f"{case.snapshot.desired.replicas} replicas, {limit}"


def _holders(case: Case) -> str:
    counts = largest_counts({domain: len(members) for domain, members in case.census.members.items()})
    return ", ".join(_shortened([f"{domain} holds {count}" for domain, count in counts]))


def _waits_for_more_domains(case: Case) -> bool:
    """Whether a used domain would take more if the stores were spread over enough of them already."""
    in_use = case.census.in_use
    return case.snapshot.group.member_class is MemberClass.REPLICATED and case.cap == 1 and 0 < in_use < case.width


def _held_back(case: Case) -> str:
    word, in_use = _word(case), case.census.in_use
    return (
        f"{in_use} of at least {case.width} {word}s are in use: until there are {case.width}, one store goes to each,"
        " and the next is held back"
    )


def _too_large(case: Case) -> list[str]:
    """What the pod asks for that no node has, however empty it is."""
    found = []
    for name, amount in sorted(case.placing.requests.items()):
        largest = max((node.allocatable.get(name, _NONE) for node in case.where.index.by_name.values()), default=_NONE)
        if amount > largest:
            asked, has = _amount(name, amount), _amount(name, largest)
            found.append(f"it asks for {asked} of {name}, {LARGER_THAN_ANY_NODE} ({has})")
    return found


def _amount(name: str, value: Decimal) -> str:
    """An amount as people write it: bytes in Gi where they are many."""
    is_large = name in ("memory", "ephemeral-storage") and value >= _GIBI
    return f"{value / _GIBI:.4g}Gi" if is_large else f"{value.normalize():f}"


def _dead_ends(case: Case) -> list[str]:
    """The claims whose volumes together allow no node."""
    if case.verdict.nodes is None or case.verdict.nodes or case.verdict.problem:
        return []
    return [claim.name for claim in case.where.claims_of(case.placing.pod) if claim.volume_name]


def _unusable_domains(case: Case) -> list[str]:
    """The domains none of whose nodes is possible, each with its nodes' reasons."""
    by_domain: dict[str, list[str]] = {}
    for node in case.where.index.by_name.values():
        by_domain.setdefault(case.domain_of(node), []).append(node.name)
    unusable = []
    for domain, names in sorted(by_domain.items()):
        reasons = {name: case.survey.infeasible[name] for name in names if name in case.survey.infeasible}
        if domain and len(reasons) == len(names):
            unusable.append(f"{_word(case)} {domain} cannot be used ({_listed(grouped_reasons(reasons))})")
    return _shortened(unusable)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_shortened(names))


def _shortened(items: Sequence[str]) -> list[str]:
    return [*items[:SHOWN], *([f"{len(items) - SHOWN} more"] if len(items) > SHOWN else [])]
