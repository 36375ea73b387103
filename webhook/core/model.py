"""The frozen values that decisions are made on and made of: groups, options, entries, snapshots, decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from webhook.core.carriers import OptionCarriers
from webhook.core.free_fields import FreeFields
from webhook.core.keys import HOSTNAME
from webhook.core.objects import EMPTY, NO_QUANTITIES, Claim, Node, Pod, PodOnNode
from webhook.core.outcomes import Cause, Outcome
from webhook.core.storage import Volumes


class Family(StrEnum):
    """Whose labels make a pod a member."""

    OPERATOR_V2 = "tidb-operator v2"
    OPERATOR_V1 = "tidb-operator v1"
    GENERIC = "generic"


class MemberClass(StrEnum):
    """How a component's members fail together: a Raft quorum, or copies of data."""

    QUORUM = "quorum"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class Group:
    """The pods that must be kept apart: namespace + cluster + component.

    `selector` finds the group's pods and claims, and is the guard's selector. `cluster` is the cluster's
    name (v1: the instance label; v2: the Cluster; generic: the StatefulSet's name).
    """

    namespace: str
    cluster: str
    component: str
    family: Family
    member_class: MemberClass
    selector: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.cluster}/{self.component}"


class Placement(StrEnum):
    """Option `placement`: pin to a node, or only ever guard."""

    PIN = "Pin"
    GUARD = "Guard"


class WhenUnplaceable(StrEnum):
    """Option `when-unplaceable`: what a pod gets for which there is no answer."""

    GUARD = "Guard"
    DENY = "Deny"
    ADMIT = "Admit"


@dataclass(frozen=True, slots=True)
class Options:
    """The options in force for one pod.

    `problems` says which annotation cannot be used; `set_by` where an option stands that is set, by its name.
    """

    skip: bool = False
    placement: Placement = Placement.PIN
    when_unplaceable: WhenUnplaceable = WhenUnplaceable.GUARD
    topology_key: str = HOSTNAME
    copies: int = 3
    min_domains: int | None = None
    problems: tuple[str, ...] = ()
    set_by: Mapping[str, str] = field(default_factory=lambda: EMPTY, compare=False)


@dataclass(frozen=True, slots=True)
class Desired:
    """What the group's owners want.

    `replicas`: the number r of the cap. `members`: the names of the desired pods by their positions, None
    where they have none (v2) and every visible one is desired; `instances`: then, those that are made again when
    they are not there. `failure_members`: pod name to claim uid ("" where the status records none). `options` are
    the group's, `pod_options` those in force for single pods, by name, and `option_carriers` what they stand on.
    `paused`: why no pod is created now that is not there, "" if one is.
    """

    replicas: int
    members: tuple[str, ...] | None = None
    failure_members: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    options: Options = field(default_factory=Options)
    pod_options: Mapping[str, Options] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    option_carriers: OptionCarriers = field(default_factory=OptionCarriers)
    paused: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pods that are there or will be, as far as they are known."""
        return self.instances if self.members is None else self.members

    def options_of(self, member: str) -> Options:
        """The options in force for one pod: its own where they were read, else the group's."""
        return self.pod_options.get(member, self.options)

    def position(self, member: str) -> int | None:
        """The member's position among the desired ordinals, None if it has none."""
        if self.members is None or member not in self.members:
            return None
        return self.members.index(member)


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer that was, or is about to be, given: `member` goes to `domain`, to `node` of it ("": any).

    `time` is the API server's, in seconds since 1970. `topology_key` is that of `domain`. `guarded`: the answer
    carries the guard besides its place.
    """

    token: str
    member: str
    claim_uid: str
    node: str
    domain: str
    topology_key: str
    time: int
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is requested on a node already, in base units; the resource `pods` counts the pods."""

    requested: Mapping[str, Decimal] = field(default_factory=lambda: NO_QUANTITIES)


@dataclass(frozen=True, slots=True)
class ClaimListing:
    """The group's claims by label, and the API server's time at that moment (seconds since 1970)."""

    claims: tuple[Claim, ...]
    now: int


@dataclass(frozen=True, slots=True)
class GroupState:
    """What was read after the claims: the group's visible pods, what its owners want, and the rest of a `Snapshot`.

    `proposed`: nodes and who is on them were not read in this round, so a node that is chosen must be confirmed.
    """

    pods: tuple[Pod, ...]
    desired: Desired
    nodes: tuple[Node, ...]
    rooms: Mapping[str, NodeRoom]
    volumes: Volumes
    placed_pods: Mapping[str, tuple[PodOnNode, ...]] = field(default_factory=dict)
    promised: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    proposed: bool = False


@dataclass(frozen=True, slots=True)
class FreshNode:
    """A node as it was read directly, and the pods that are bound there; `node` None: it is gone."""

    name: str
    node: Node | None
    pods: tuple[PodOnNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that one decision may look at, read in the order of the lock protocol (docs/design.md, section 4).

    `claims` are the group's by label (step 1); `pods` its visible pods (step 2); `entries` the live ones
    (step 3). `rooms` is by node name. `now` is the API server's time of step 1.

    `placed_pods`: every pod that takes a place on a node, those that are in `rooms`; empty where they were not
    read. `promised`: what answers of other groups that are in flight will ask of a node. `namespaces`: the labels
    of each by name; what is not there is not known. `confirmed`: the nodes that were read directly in this round
    after they had been chosen.
    """

    group: Group
    claims: tuple[Claim, ...]
    pods: tuple[Pod, ...]
    desired: Desired
    entries: tuple[Entry, ...]
    nodes: tuple[Node, ...]
    rooms: Mapping[str, NodeRoom]
    volumes: Volumes
    now: int
    placed_pods: Mapping[str, tuple[PodOnNode, ...]] = field(default_factory=dict)
    promised: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Placing:
    """The pod to be placed, what it asks of a node in base units, and what its own fields leave to us."""

    pod: Pod
    requests: Mapping[str, Decimal] = field(default_factory=lambda: NO_QUANTITIES)
    free_fields: FreeFields = field(default_factory=FreeFields)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided for one pod, and why: what annotation, log, event, metric and `why` show.

    `cap` None: no cap. `counts`: members per domain in use, before this one. `passed_over`: node name to
    the one reason; `detail`: what holds for the pod as a whole, such as who is in the way.
    `hostname`: the node's hostname label if no other node has it, else "". `guard_too`: pinned *and* guarded.
    `avoids`: the domains that a guarded pod is kept off for the sake of the guarded members there (`guard.py`).
    """

    outcome: Outcome
    cause: Cause = Cause.NONE
    node: str = ""
    domain: str = ""
    topology_key: str = HOSTNAME
    replicas: int = 0
    cap: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    passed_over: Mapping[str, str] = field(default_factory=dict)
    above_cap: bool = False
    guard_too: bool = False
    avoids: tuple[str, ...] = ()
    hostname: str = ""
    detail: str = ""
    problems: tuple[str, ...] = ()
