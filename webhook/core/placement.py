"""Which node a member gets: the rule in words, then `decide`, which applies it.

*HA-safe* means: if any one domain (a node, or a zone where the group is kept apart by zone) is lost, what is
left still works. For a Raft quorum of r members that is a majority of them, so a domain may hold less than
half. For data in c copies, spread over domains, it is a majority of the copies of each piece of data, so the
stores must lie in at least q domains, and evenly. `caps.py` turns both into one number: the most members that
one domain may hold. That number is the rule; nothing else makes a node safe.

A member is placed only where the domain, counted at its worst, stays within the cap with one more:

* everyone counts who is there, is pinned there, was promised a place there, or has data that ties him there
  (`counting.py`); who cannot be located makes every domain doubtful, so the pod waits;
* who could still land anywhere (an *open* member) is counted against every domain; where the cap would not
  bear it, the newcomer carries the guard as well, and the scheduler keeps the two apart;
* a domain is never filled beyond the cap because the others are full. Then the pod waits, guarded.

Three exceptions, each of them a lesser evil:

* *Data first.* A member whose data is in one domain goes back there, above the cap if need be: anywhere else it
  has no data, so it would be lost already. It is called `returned`, is counted for everybody else, and is
  shown. If no node there is possible now it waits without a pin (`returned-waiting`); its volume holds it.
* *Fewer stores than copies* (r < c): no placement keeps a majority of the copies, so there is no cap. They are
  spread as far as possible and never held back by each other.
* *A set of one* is not touched.

Of the nodes that are safe, and that the scheduler would accept (`feasibility.py`), the first in rank is taken
(`ranking.py`; among many nodes it is found without a look at each, `seeking.py`). Where the group is kept apart by
zone the hosts are a second level: no host takes a second member while another possible host of the zone has none.

`decide` is pure: the same snapshot gives the same decision, whatever the order of what it lists. A pin or a
guard of ours that the pod brings along (a copied template, the floor) must be taken off before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from webhook.core import explain, keys
from webhook.core.case import Case, case_for
from webhook.core.filtering import AND
from webhook.core.model import Decision, Placing, Snapshot
from webhook.core.outcomes import Cause, Outcome
from webhook.core.ranking import Candidate, best
from webhook.core.safety import domain_standing, guard_reason, left_alone, standings
from webhook.core.seeking import seek
from webhook.core.volumes import sole_domain


def decide(snapshot: Snapshot, placing: Placing, *, thorough: bool = True) -> Decision:
    """Decide for one pod: pinned, returned, returned-waiting, guarded (NO_SAFE_NODE, UNKNOWN_DOMAIN) or untouched.

    `snapshot` holds everything that may be looked at; of its options topology-key, copies and min-domains
    are. `thorough`: a reason is found for each node that was not taken; else, in a large cluster, only for those that
    would have been taken before. The decision is the same. Raises nothing.
    """
    if snapshot.desired.replicas == 1:
        return _untouched(snapshot, placing)
    case = case_for(snapshot, placing)
    home = sole_domain(case.verdict.data, case.where.index, case.topology_key)
    if home:
        return _return(case, home)
    if case.cap is not None and case.census.unknown:
        doubtful = {node.name: explain.doubtful(case) for node in case.survey.feasible}
        return _guarded(case, Cause.UNKNOWN_DOMAIN, doubtful, explain.of_unknown(case))
    found = None if thorough else seek(case)
    if found is not None:
        return _settled(case, case.decision(Outcome.PINNED), found.candidate, found.passed_over)
    return _place(case)


def _untouched(snapshot: Snapshot, placing: Placing) -> Decision:
    return Decision(
        outcome=Outcome.UNTOUCHED,
        cause=Cause.SET_OF_ONE,
        topology_key=snapshot.desired.options.topology_key,
        replicas=snapshot.desired.replicas,
        detail=explain.UNTOUCHED,
        problems=snapshot.desired.options_of(placing.pod.name).problems,
    )


def _return(case: Case, home: str) -> Decision:
    """Back to the one domain that the member's data allows; within the cap that is an ordinary placement."""
    survey = case.survey
    kept_off = {node.name: reason for node in survey.feasible if (reason := guard_reason(case.census, node))}
    standing = domain_standing(case.census, case.cap, home)
    above_cap = case.cap is not None and case.census.count(home) + 1 > case.cap
    uncertain = bool(standing.reason) or (case.cap is not None and bool(case.census.unknown))
    candidates = [
        Candidate(node, home, standing.guard_too and not uncertain, survey.preempting.get(node.name, ""))
        for node in survey.feasible
        if node.name not in kept_off
    ]
    if not candidates:
        passed_over = {**survey.infeasible, **kept_off}
        waiting = case.decision(Outcome.RETURNED_WAITING)
        detail = explain.of_waiting(case, home, passed_over)
        return replace(waiting, domain=home, passed_over=passed_over, above_cap=above_cap, detail=detail)
    if not uncertain:
        return _taken_first(case, case.decision(Outcome.PINNED), candidates, kept_off)
    detail = explain.of_return(case, home, "" if standing.full else standing.reason)
    returned = replace(case.decision(Outcome.RETURNED), above_cap=above_cap, detail=detail)
    return _taken_first(case, returned, candidates, kept_off)


def _place(case: Case) -> Decision:
    """To the first in rank of the safe nodes; where there is none the pod waits."""
    standing_of = standings(case.census, case.cap)
    candidates: list[Candidate] = []
    full: dict[str, str] = {}
    kept_off: dict[str, str] = {}
    for node in case.survey.feasible:
        domain = case.domain_of(node)
        standing = standing_of(domain)
        if standing.full:
            full[node.name] = standing.reason
        elif reason := standing.reason or guard_reason(case.census, node):
            kept_off[node.name] = reason
        else:
            in_the_way = case.survey.preempting.get(node.name, "")
            candidates.append(Candidate(node, domain, standing.guard_too, in_the_way))
    if candidates:
        return _taken_first(case, case.decision(Outcome.PINNED), candidates, full | kept_off)
    # A node that lacks something and is full by the cap too is no help once it has that.
    full |= {
        name: f"{reason}{AND}{standing.reason}"
        for name, reason in case.survey.infeasible.items()
        if (standing := standing_of(case.domain_of(case.where.index.by_name[name]))).full
    }
    return _guarded(case, Cause.NO_SAFE_NODE, full | kept_off, explain.of_guard(case, kept_off))


def _guarded(case: Case, cause: Cause, unsafe: dict[str, str], detail: str) -> Decision:
    passed_over = {**case.survey.infeasible, **unsafe}
    # By node affinity, as a pin would be.
    avoids = left_alone(case.census, case.cap, case.topology_key) if case.placing.free_fields.pin else ()
    if avoids:
        detail = f"{detail}; {explain.of_avoided(case, avoids)}"
    guarded = case.decision(Outcome.GUARDED)
    return replace(guarded, cause=cause, passed_over=passed_over, avoids=avoids, detail=detail)


def _taken_first(case: Case, decision: Decision, candidates: Sequence[Candidate], unsafe: dict[str, str]) -> Decision:
    """The decision with the first in rank of the candidates; `unsafe` holds our reasons by node name."""
    taken = _taken_hosts(case, candidates)
    chosen = best(case, [candidate for candidate in candidates if candidate.node.name not in taken])
    to_clear = {name: reason for name, reason in case.survey.preempting.items() if name != chosen.node.name}
    return _settled(case, decision, chosen, {**case.survey.infeasible, **to_clear, **unsafe, **taken})


def _settled(case: Case, decision: Decision, chosen: Candidate, passed_over: Mapping[str, str]) -> Decision:
    """The decision with the candidate that was chosen."""
    joining = case.census.may_join(chosen.domain) if chosen.guard_too else ()
    hostname = chosen.node.labels.get(keys.HOSTNAME, "")
    return replace(
        decision,
        node=chosen.node.name,
        domain=chosen.domain,
        guard_too=chosen.guard_too,
        passed_over=passed_over,
        hostname=hostname if len(case.where.index.labelled(keys.HOSTNAME, hostname)) == 1 else "",
        detail=(decision.detail or explain.of_pin(case, chosen.domain, joining)) + explain.of_room(chosen.in_the_way),
    )


def _taken_hosts(case: Case, candidates: Sequence[Candidate]) -> dict[str, str]:
    """The second level: hosts that have a member, where another possible host of the domain has none."""
    if case.topology_key == keys.HOSTNAME:
        return {}
    free = {candidate.domain for candidate in candidates if candidate.node.name not in case.census.hosts}
    return {
        candidate.node.name: f"node already holds a member, and another node in {candidate.domain} does not"
        for candidate in candidates
        if candidate.node.name in case.census.hosts and candidate.domain in free
    }
