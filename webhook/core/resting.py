"""Where the members that do not run have what they hold: their pods, and the data that they will come back to.

A node is not free of a group because nothing of it runs there: a member that waits may have its only data on that
node. Data that is on no node (a network volume), or on several, is lost with the last of the nodes that it allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from webhook.core.objects import Claim, Pod
from webhook.core.volumes import data_affinities
from webhook.core.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Resting:
    """A member that does not run, by the name of its pod, or of its claim where it has no pod.

    `homes`: sets of node names; what it holds goes with the last node of any of them. `known` False: it may be on
    other nodes too. `empty`: all its claims are there and none ever had a volume, so it holds nothing.
    """

    name: str
    homes: tuple[frozenset[str], ...] = ()
    known: bool = True
    empty: bool = False

    def goes_with(self, nodes: Collection[str]) -> bool:
        """Whether it certainly loses something with these nodes."""
        return any(home and home.issubset(nodes) for home in self.homes)


def resting(where: Whereabouts, running: Collection[str], missing: int) -> tuple[Resting, ...]:
    """The desired members that do not run, by name. `missing`: how many have no pod, whose claims tell of them."""
    pods = [pod for pod in where.snapshot.pods if not pod.finished and where.is_desired(pod.name)]
    found = [_of_pod(where, pod) for pod in pods if pod.name not in running]
    if missing:
        taken = {name for pod in where.snapshot.pods for name in pod.claim_names}
        claims = [claim for claim in _wanted(where, pods) if claim.name not in taken]
        found += [_of_claims(where, claim.name, (claim,)) for claim in claims]
        if len(claims) < missing:
            found.append(Resting(f"{missing - len(claims)} without a pod or a claim", known=False))
    return tuple(sorted(found, key=lambda each: each.name))


def _of_pod(where: Whereabouts, pod: Pod) -> Resting:
    claims, at = where.claims_of(pod), where.settled_node(pod)
    whole = bool(pod.claim_names) and len(claims) == len(set(pod.claim_names))
    data = _of_claims(where, pod.name, claims)
    homes = (*data.homes, frozenset({at})) if pod.node_name else data.homes
    return Resting(
        pod.name,
        homes,
        known=data.known and (whole or bool(pod.node_name)),
        empty=whole and not pod.node_name and not any(claim.volume_name for claim in claims),
    )


def _of_claims(where: Whereabouts, name: str, claims: Iterable[Claim]) -> Resting:
    """What the claims' volumes allow, each by itself: the loss of one is enough."""
    bound = [claim for claim in claims if claim.volume_name]
    volumes = where.snapshot.volumes.persistent_volumes
    homes = []
    for claim in bound:
        affinities = data_affinities((claim,), where.snapshot.volumes)
        if affinities and where.index.can_compare(affinities):
            homes.append(frozenset(node.name for node in where.index.matching(affinities)))
    return Resting(name, tuple(homes), known=all(claim.volume_name in volumes for claim in bound))


def _wanted(where: Whereabouts, pods: Iterable[Pod]) -> Iterator[Claim]:
    """The claims of members that are wanted and have no pod; where names are random, all of the group."""
    there = {pod.name for pod in pods}
    wanted = None if where.desired is None else tuple(f"-{name}" for name in where.desired - there)
    return (claim for claim in where.claims.values() if wanted is None or claim.name.endswith(wanted))
