"""The audit of one group: where its members are, whether that keeps to the cap, and what it could lose now.

`audit` looks at what exists (pods, nodes, claims and their volumes), not at answers in flight: those are seconds
old, and the next audit sees what they led to. It needs of a `Snapshot`: group, claims, pods, desired, nodes,
volumes. `losing` says what the loss of some nodes would do.

It claims no more than can be known. A member that does not run counts as lost. And where several stores go together,
their copies are only kept apart if PD isolates by that level: `isolated_keys` gives what its location-labels say, and
without them the answer is conditional (see `losses.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from webhook.core import keys
from webhook.core.audited import ZONE, AuditedMember, GroupAudit, Isolation, Loss, Margin, Survival, isolation
from webhook.core.caps import cap
from webhook.core.counting import guard_key, take_census
from webhook.core.decision_record import record_from
from webhook.core.eligibility import some_eligible_domains
from webhook.core.losses import Spread, affordable, is_alive, losses_by_copies, losses_by_members
from webhook.core.model import MemberClass, Placing, Snapshot
from webhook.core.objects import Node, Pod
from webhook.core.options import with_class_problems
from webhook.core.resting import resting
from webhook.core.volumes import NodeIndex
from webhook.core.whereabouts import Whereabouts

# Members of the smallest quorum that bears a loss.
LEAST_QUORUM: Final = 3


def audit(snapshot: Snapshot, isolated_by: frozenset[str] | None = None, index: NodeIndex | None = None) -> GroupAudit:
    """Audit one group. Raises nothing, whatever the snapshot lacks.

    `isolated_by`: of `isolated_keys`. `index`: of the snapshot's nodes, to be shared between groups.
    """
    where = Whereabouts.of(replace(snapshot, entries=()), index or NodeIndex(snapshot.nodes))
    census = take_census(where, Placing(Pod(snapshot.group.namespace, name="")))
    member_class = snapshot.group.member_class
    options = with_class_problems(snapshot.desired.options, snapshot.group.component, snapshot.pods)
    levels = tuple(dict.fromkeys((keys.HOSTNAME, ZONE, options.topology_key, *sorted(isolated_by or ()))))
    members = tuple(sorted(_members(where, levels), key=lambda member: member.name))
    present = sum(member.desired for member in members)
    replicas = max(snapshot.desired.replicas, present)
    counts = {domain: len(names) for domain, names in census.members.items()}
    limit = _cap(where, counts, census.in_use)
    audited = GroupAudit(
        group=snapshot.group,
        options=options,
        replicas=replicas,
        missing=replicas - present,
        copies=0 if member_class is MemberClass.QUORUM else min(options.copies, replicas),
        budget=affordable(member_class, replicas, options.copies),
        cap=limit,
        members=members,
        counts=counts,
        stacked={domain: count for domain, count in counts.items() if limit is not None and count > limit},
        unknown=census.unknown,
        unlabelled=_unlabelled(members, where.index.by_name),
        now=Survival.BREAKS,
        margins=(),
        isolated_by=isolated_by,
        resting=resting(where, {member.name for member in members if member.running}, replicas - present),
    )
    spreads = {level: _spread(audited, level) for level in levels}
    margins = tuple(_margin(audited, level, spreads) for level in levels)
    return replace(audited, now=_survival_without(_filled(audited), levels)[0], margins=margins)


def losing(audited: GroupAudit, nodes: Collection[str]) -> Loss:
    """What it would do to the group to lose these nodes, by name, all at once and now."""
    lost = tuple(member.name for member in audited.members if member.desired and _runs_on(member, nodes))
    # Where nothing that runs is lost it is as it is now.
    survival, isolated_by = _survival_without(audited if lost else _filled(audited), audited.levels, nodes)
    there = tuple(each.name for each in audited.resting if each.goes_with(nodes))
    unknown = tuple(each.name for each in audited.resting if not each.known and each.name not in there)
    return Loss(lost, survival, isolated_by, there, unknown)


def _members(where: Whereabouts, levels: Iterable[str]) -> Iterator[AuditedMember]:
    for pod in where.snapshot.pods:
        if pod.finished:
            continue
        name = where.settled_node(pod)
        node = where.index.by_name.get(name)
        record = record_from(pod.annotations.get(keys.DECISION))
        yield AuditedMember(
            name=pod.name,
            node=name,
            domain=where.domain_at(pod, name) if name else "",
            places=_places(node, levels) if node is not None else {},
            running=bool(pod.node_name) and node is not None and pod.ready and not pod.deleting,
            guarded=bool(guard_key(pod, where.snapshot.group)),
            passed_us=record is not None and record.member == pod.name,
            desired=where.is_desired(pod.name),
        )


def _places(node: Node, levels: Iterable[str]) -> dict[str, str]:
    """The node's value of each key that it has; a node without a hostname label is a host all the same."""
    found = {level: node.labels.get(level, "") for level in levels}
    found[keys.HOSTNAME] = found[keys.HOSTNAME] or node.name
    return {level: value for level, value in found.items() if value}


def _unlabelled(members: Iterable[AuditedMember], nodes: Mapping[str, Node]) -> dict[str, str]:
    there = (member for member in members if member.desired and member.node in nodes)
    return {member.name: member.node for member in there if member.domain == ""}


def _cap(where: Whereabouts, counts: Mapping[str, int], in_use: int) -> int | None:
    """The cap that holds for the members where they are now."""
    desired, member_class = where.snapshot.desired, where.snapshot.group.member_class
    copies, min_domains = desired.options.copies, desired.options.min_domains
    domains = set(counts)
    if member_class is MemberClass.REPLICATED and not min_domains:
        # More domains than copies change nothing.
        domains = some_eligible_domains(where, domains, enough=copies)
    return cap(
        member_class,
        desired.replicas,
        domains=len(domains),
        in_use=in_use,
        copies=copies,
        min_domains=min_domains,
    )


def _runs_on(member: AuditedMember, nodes: Collection[str]) -> bool:
    return member.running and member.node in nodes


def _filled(audited: GroupAudit) -> GroupAudit:
    """The group without the members that wait and hold nothing: none of their claims ever had a volume.

    Only where as many run as copies of anything are made, of a quorum three: else an emptied claim may stand for lost
    data. And only for what is lost already: nobody can tell a new member's claim from one that was made anew.
    """
    running = sum(member.running for member in audited.members if member.desired)
    enough = audited.options.copies if audited.copies else LEAST_QUORUM
    empty = {each.name for each in audited.resting if each.empty}
    if not empty or running < enough:
        return audited
    replicas = audited.replicas - len(empty)
    return replace(
        audited,
        replicas=replicas,
        budget=affordable(audited.group.member_class, replicas, audited.options.copies),
        members=tuple(member for member in audited.members if member.name not in empty),
    )


def _survival_without(audited: GroupAudit, levels: Iterable[str], lost: Collection[str] = ()) -> tuple[Survival, str]:
    """As `_survival`, once the nodes `lost` are."""
    return _survival(audited, {level: _spread(audited, level, lost) for level in levels})


def _spread(audited: GroupAudit, level: str, lost: Collection[str] = ()) -> Spread:
    """The members by domain of one level, once the nodes `lost` are."""
    stores: dict[str, int] = {}
    gone: dict[str, int] = {}
    gone_elsewhere, unplaced = audited.missing, 0
    for member in audited.members:
        if not member.desired:
            continue
        domain, running = member.places.get(level, ""), member.running and member.node not in lost
        if domain:
            stores[domain] = stores.get(domain, 0) + 1
            gone[domain] = gone.get(domain, 0) + (not running)
        elif running:
            unplaced += 1
        else:
            gone_elsewhere += 1
    return Spread(stores, gone, gone_elsewhere, unplaced)


def _margin(audited: GroupAudit, level: str, spreads: Mapping[str, Spread]) -> Margin:
    spread = spreads[level]
    margin = Margin(level, len(spread.stores), losses_by_members(spread, audited.budget))
    if not audited.copies:
        return margin
    wider = [key for key in audited.isolated_by or () if key != level and _holds_whole(audited, key, level)]
    kept_apart = [
        replace(
            margin,
            isolated=losses_by_copies(spreads[key], audited.copies, audited.budget),
            isolation=isolation(audited.isolated_by, key),
            isolated_by=key,
        )
        for key in (level, *sorted(wider))
    ]
    # The first that claims most: this level itself, else a wider one.
    return max(kept_apart, key=lambda found: found.survives)


def _holds_whole(audited: GroupAudit, wide: str, narrow: str) -> bool:
    """Whether each domain of the narrow key lies in one of the wide key: that many of these are lost at most."""
    found: dict[str, set[str]] = {}
    for member in audited.members:
        if member.desired and narrow in member.places:
            found.setdefault(member.places[narrow], set()).add(member.places.get(wide, ""))
    return all(len(domains) == 1 and "" not in domains for domains in found.values())


def _survival(audited: GroupAudit, spreads: Mapping[str, Spread]) -> tuple[Survival, str]:
    """Whether what runs is enough, and the key by which copies must be kept apart for that, "" for none."""
    if is_alive(spreads[keys.HOSTNAME], None, audited.budget):
        return Survival.SURVIVES, ""
    enough = _isolating(audited, spreads)
    for kind, survival in (
        (Isolation.CONFIGURED, Survival.SURVIVES),
        (Isolation.NOT_CHECKED, Survival.IF_ISOLATED),
    ):
        level = next((level for level in enough if isolation(audited.isolated_by, level) is kind), "")
        if level:
            return survival, level
    return Survival.BREAKS, ""


def _isolating(audited: GroupAudit, spreads: Mapping[str, Spread]) -> Sequence[str]:
    """The levels that are enough if copies are kept apart by them."""
    if not audited.copies:
        return ()
    return [level for level, spread in spreads.items() if is_alive(spread, audited.copies, audited.budget)]
