"""How many members one domain may hold: the cap, as a function of a few numbers.

Two ways of failing together, two rules (r replicas, c copies of each piece of data, D domains that are in use
or could be used):

*Quorum* (PD, DM-master). A majority of the r members must survive the loss of any one domain. So a domain
holds at most ⌊(r+1)/2⌋ − 1 of them. For r ≤ 2 no placement survives; one per domain is the best there is.

*Replicated* (TiKV). PD puts the c copies of a piece of data on different domains where it can, so at least q
domains are needed for a majority of the copies to survive the loss of one, and more than c bring nothing. Until
k = max(q, min(c, D)) domains are in use each takes one store only, then the stores spread evenly over k: at most
⌈r/k⌉ in a domain. With fewer stores than copies there is nothing to protect: no cap.

`min-domains` m sets k knowingly. r = 0 with a pod being created means that r was read between two changes
of it, so it says nothing: one per domain, for both classes (waiting is safe, and ends with the next decision).
"""

from __future__ import annotations

from webhook.core.model import Group, MemberClass


def cap(
    member_class: MemberClass,
    replicas: int,
    *,
    domains: int,
    in_use: int,
    copies: int,
    min_domains: int | None,
) -> int | None:
    """The most members of the group that one domain may hold, None for no cap.

    `domains`: D, those in use or eligible; `in_use`: those that hold a member, without the one to be placed.
    """
    if replicas < 1:
        return 1
    if member_class is MemberClass.QUORUM:
        return _ceiling(replicas, min_domains) if min_domains else _quorum_cap(replicas)
    if replicas < copies:
        return None
    spread = width(member_class, replicas, domains=domains, copies=copies, min_domains=min_domains)
    return 1 if in_use < spread else _ceiling(replicas, spread)


def width(member_class: MemberClass, replicas: int, *, domains: int, copies: int, min_domains: int | None) -> int:
    """k: over how many domains the members are to be spread; it is also the size of a round, at least 1."""
    if min_domains:
        return min_domains
    if member_class is MemberClass.QUORUM:
        return max(1, _ceiling(replicas, _quorum_cap(replicas)))
    return max(least_domains(copies), min(copies, domains))


def quorum_problem(group: Group, replicas: int, most: int | None, min_domains: int | None) -> str:
    """What is said where `min-domains` makes the cap (`most`) such that one domain may take the quorum along, else "".

    Two members have no majority without each other wherever they are, so nothing is lost by it.
    """
    if group.member_class is not MemberClass.QUORUM or not min_domains or most is None or replicas <= 2:
        return ""
    if 2 * (replicas - most) > replicas:
        return ""
    meant = "write tikv.min-domains if only TiKV is meant" if group.component == "pd" else "leave it out to keep that"
    held = f"{min(most, replicas)} of {replicas} members"
    return f"min-domains {min_domains} lets one domain hold {held}, and so the quorum of {group.component}: {meant}"


def least_domains(copies: int) -> int:
    """q: the fewest domains over which c copies survive the loss of one; 1 where no number of domains does.

    The smallest d with ⌈c/d⌉ ≤ ⌊(c−1)/2⌋: the fullest domain then holds less than half of the copies.
    """
    minority = (copies - 1) // 2
    return _ceiling(copies, minority) if minority > 0 else 1


def _quorum_cap(replicas: int) -> int:
    return 1 if replicas <= 2 else (replicas + 1) // 2 - 1


def _ceiling(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
