"""What the lock protocol needs of a cluster, is asked, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from webhook.core.model import ClaimListing, Decision, FreshNode, Group, GroupState, Options, Placing
from webhook.core.objects import Claim
from webhook.core.storage import FreshVolume
from webhook.deadline import Deadline


class GroupCluster(Protocol):
    """The cluster as the protocol sees it. Every call raises `errors.ApiError` or `errors.OutOfTime`."""

    def list_claims(self, group: Group, deadline: Deadline) -> ClaimListing:
        """The group's claims by label, and the API server's time; a consistent read."""
        ...

    def get_claim(self, namespace: str, name: str, deadline: Deadline) -> Claim | None:
        """One claim by name, None if there is none."""
        ...

    def read_group(
        self, group: Group, claims: Sequence[Claim], placings: Sequence[Placing], deadline: Deadline
    ) -> GroupState:
        """The group's pods, then its owners' wishes, by consistent reads; then nodes and volumes."""
        ...

    def confirm_nodes(self, names: Iterable[str], deadline: Deadline) -> Sequence[FreshNode]:
        """Nodes that were proposed and chosen, and the pods that are bound to them, read directly."""
        ...

    def confirm_volumes(self, names: Iterable[str], deadline: Deadline) -> Sequence[FreshVolume]:
        """Volumes that are free as far as was proposed, and will be taken, read directly."""
        ...

    def promise(self, group: Group, placing: Placing, node_name: str, claims: Iterable[Claim]) -> None:
        """The pod, with these claims, is to get this node: until it can be seen there it counts for other groups."""
        ...

    def withdraw(self, placing: Placing) -> None:
        """The pod gets no node after all."""
        ...

    def swap(self, claim: Claim, annotations: dict[str, str | None], deadline: Deadline) -> None:
        """Write annotations if the claim still has the resourceVersion of this value."""
        ...

    def annotate(self, claim: Claim, annotations: dict[str, str | None], deadline: Deadline) -> None:
        """Write annotations if the claim still has the uid of this value."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One pod that waits for a place. `arrived` is of the deadline's clock, `uid` of the review, "" without one."""

    placing: Placing
    deadline: Deadline
    arrived: float
    uid: str = ""

    @property
    def member(self) -> str:
        """The pod's name."""
        return self.placing.pod.name


def described(group: Group, requests: Iterable[Request]) -> str:
    """A group and the reviews of a round, for the log."""
    uids = sorted(request.uid for request in requests if request.uid)
    return f"{group} (reviews {', '.join(uids)})" if uids else str(group)


@dataclass(frozen=True, slots=True)
class Effort:
    """What an answer cost: attempts begun, swaps lost, calls whose outcome stayed unknown; and the wait for it (s)."""

    attempts: int = 0
    conflicts: int = 0
    unknown: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision as it was confirmed.

    `options`: those in force, of the owners as far as they were ever read. `token` names its entry, "" where there is
    none. `live_tokens` are those of the member's own entries that
    were live before this decision.
    """

    decision: Decision
    options: Options = field(default_factory=Options)
    token: str = ""
    live_tokens: frozenset[str] = frozenset()
    effort: Effort = Effort()
