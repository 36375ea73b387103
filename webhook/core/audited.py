"""What an audit says of one group, as frozen values; `audit.py` makes them, `findings.py` puts them into words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from webhook.core import keys
from webhook.core.model import Group, Options
from webhook.core.resting import Resting

ZONE: Final = "topology.kubernetes.io/zone"
# tidb-operator reads the node label of the same name for each of PD's location-labels, and these for short ones.
SHORT_LABELS: Final[Mapping[str, str]] = {
    "host": keys.HOSTNAME,
    "zone": ZONE,
    "region": "topology.kubernetes.io/region",
}


class Isolation(StrEnum):
    """Whether PD keeps the copies of a piece of data apart by a topology key."""

    CONFIGURED = "configured"
    NOT_CONFIGURED = "not-configured"
    NOT_CHECKED = "not-checked"


class Survival(StrEnum):
    """Whether quorum and data are there for certain, only if PD isolates by a key that was not checked, or not."""

    SURVIVES = "survives"
    IF_ISOLATED = "survives-if-isolated"
    BREAKS = "breaks"


@dataclass(frozen=True, slots=True)
class AuditedMember:
    """A member that has a pod.

    `node`: where it is bound, else pinned or nominated, else "". `domain`: by the group's topology key; None: not known
    (its node is gone), "": none (the node lacks the key, or it has no node). `places`: the value of each audited key
    at its node. `running`: bound to a node that exists, Ready, not being deleted. `guarded`: it carries the guard.
    `passed_us`: it carries a decision of ours for its own name. `desired` False: its owners do not want it any more,
    and it counts nowhere.
    """

    name: str
    node: str = ""
    domain: str | None = ""
    places: Mapping[str, str] = field(default_factory=dict)
    running: bool = False
    guarded: bool = False
    passed_us: bool = False
    desired: bool = True


@dataclass(frozen=True, slots=True)
class Margin:
    """How many domains of one topology key, whichever they are, the group survives the loss of now.

    `certain`: whatever PD does; for a quorum the whole answer. `isolated`: if PD keeps copies apart by `isolated_by`
    (this key, or one whose domains hold those of this one whole), of which `isolation` says whether it does; None for a
    quorum. `domains`: how many hold a member; 0 where no member's node has the key: then nothing is known, and the
    numbers are 0.
    """

    topology_key: str
    domains: int
    certain: int
    isolated: int | None = None
    isolation: Isolation = Isolation.NOT_CHECKED
    isolated_by: str = ""

    @property
    def survives(self) -> int:
        """The number that may be claimed: that with isolation only where this is configured."""
        return self.best if self.isolation is Isolation.CONFIGURED else self.certain

    @property
    def best(self) -> int:
        """The number if PD isolates by `isolated_by`."""
        return self.certain if self.isolated is None else max(self.certain, self.isolated)


@dataclass(frozen=True, slots=True)
class GroupAudit:
    """What was found out about one group.

    `replicas`: members that there are or should be; `missing`: how many of them have no pod. `copies`: of each piece
    of data (at most as many as there are stores), for a quorum 0. `budget`: how many members (of a quorum), or copies
    of a piece, may be lost. `cap` None: no cap. `counts`: members by domain, with those that will return to their data
    there; `stacked`: those domains whose count is above the cap. `unknown`: members whose node is gone and whose domain
    nothing names; `unlabelled`: member to its node that lacks the topology key. `now`: whether what runs is enough.
    `margins`: by node (hostname), by zone, by the group's key and by those that PD isolates by. `isolated_by`: the
    latter, None if that is not known. `resting`: what the members that do not run hold, and where.
    """

    group: Group
    options: Options
    replicas: int
    missing: int
    copies: int
    budget: int
    cap: int | None
    members: tuple[AuditedMember, ...]
    counts: Mapping[str, int]
    stacked: Mapping[str, int]
    unknown: tuple[str, ...]
    unlabelled: Mapping[str, str]
    now: Survival
    margins: tuple[Margin, ...]
    isolated_by: frozenset[str] | None
    resting: tuple[Resting, ...] = ()

    @property
    def topology_key(self) -> str:
        """The label whose values are the domains."""
        return self.options.topology_key

    @property
    def levels(self) -> tuple[str, ...]:
        """The audited topology keys."""
        return tuple(margin.topology_key for margin in self.margins)

    @property
    def margin(self) -> Margin:
        """The margin by the group's own key."""
        return next(margin for margin in self.margins if margin.topology_key == self.topology_key)

    @property
    def not_running(self) -> tuple[str, ...]:
        """The members that have a pod and do not run, by name."""
        return tuple(member.name for member in self.members if member.desired and not member.running)

    @property
    def never_passed(self) -> tuple[str, ...]:
        """The members that carry no decision of ours, by name: they came before us, or while we were away."""
        return tuple(member.name for member in self.members if member.desired and not member.passed_us)

    @property
    def guarded_running(self) -> tuple[str, ...]:
        """The running members that carry the guard: each keeps others off its domain until it is re-created."""
        return tuple(member.name for member in self.members if member.guarded and member.running)


@dataclass(frozen=True, slots=True)
class Loss:
    """What losing some nodes would do to a group: `members` that run there, by name, and what is left after that.

    `resting`: members that do not run and have their pod or data there; `unknown`: those whose data might be there.
    `isolated_by`: the key by which PD must keep copies apart for the answer to hold, "" where nothing is assumed.
    """

    members: tuple[str, ...]
    survival: Survival
    isolated_by: str = ""
    resting: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def concerns(self) -> bool:
        """Whether the group has something to lose there; where it is broken already, also if it only may have."""
        return bool(self.members or self.resting or (self.unknown and self.survival is Survival.BREAKS))


def isolated_keys(location_labels: Collection[str] | None) -> frozenset[str] | None:
    """The topology keys of PD's location-labels ("host" is the hostname label, …); None: they could not be read."""
    if location_labels is None:
        return None
    return frozenset(SHORT_LABELS.get(label, label) for label in location_labels)


def isolation(isolated_by: frozenset[str] | None, topology_key: str) -> Isolation:
    """Whether PD keeps copies apart by the key."""
    if isolated_by is None:
        return Isolation.NOT_CHECKED
    return Isolation.CONFIGURED if topology_key in isolated_by else Isolation.NOT_CONFIGURED
