"""Where one member is or may still come to be: at a node, by its pin, by its answer, by its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from webhook.core import keys
from webhook.core.decision_record import record_from
from webhook.core.model import Entry, Snapshot
from webhook.core.objects import Claim, Pod
from webhook.core.selectors import pinned_node
from webhook.core.volumes import NodeIndex, claims_by_name, claims_of_pod, data_affinities, sole_domain


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member is or may come to be. `domain` None: not known; "": in none. `node` "": any of the domain."""

    member: str
    domain: str | None
    node: str = ""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A snapshot with the look-ups that finding its members needs: nodes, claims and desired members by name."""

    snapshot: Snapshot
    topology_key: str
    index: NodeIndex
    claims: Mapping[str, Claim]
    desired: frozenset[str] | None

    @classmethod
    def of(cls, snapshot: Snapshot, index: NodeIndex) -> Whereabouts:
        """`index` holds all nodes of the snapshot."""
        desired = snapshot.desired
        return cls(
            snapshot=snapshot,
            topology_key=desired.options.topology_key,
            index=index,
            claims=claims_by_name(snapshot),
            desired=None if desired.members is None else frozenset(desired.members),
        )

    def is_desired(self, member: str) -> bool:
        """Whether the owners still want the member; where names are random, every one."""
        return self.desired is None or member in self.desired

    def claims_of(self, pod: Pod) -> tuple[Claim, ...]:
        """The pod's claims that exist."""
        return claims_of_pod(pod, self.claims)

    def of_pod(self, pod: Pod) -> Iterator[Place]:
        """Its node, else its pin, else its nomination; and without a node the domain that its data allows."""
        node = self.settled_node(pod)
        if node:
            yield Place(pod.name, self.domain_at(pod, node), node)
        if not pod.node_name and (domain := self.of_data(self.claims_of(pod))):
            yield Place(pod.name, domain)

    def of_entry(self, entry: Entry) -> Place:
        """The entry's own domain; one of another topology key says no more than its node's label does."""
        if entry.domain and entry.topology_key == self.topology_key:
            return Place(entry.member, entry.domain, entry.node)
        node = self.index.by_name.get(entry.node)
        label = node.labels.get(self.topology_key, "") if node else ""
        return Place(entry.member, label or None, entry.node)

    def of_data(self, claims: Iterable[Claim]) -> str:
        """The one domain that the bound volumes of the claims allow, else ""."""
        return sole_domain(data_affinities(claims, self.snapshot.volumes), self.index, self.topology_key)

    def of_claims(self, claims: Iterable[Claim]) -> str:
        """The one domain that a member without a pod will come back to, else "": where its data is, or is being made.

        The scheduler keeps to the node that it has chosen for a claim.
        """
        claims = tuple(claims)
        chosen = (self.index.by_name.get(claim.selected_node) for claim in claims if not claim.volume_name)
        domains = {node.labels.get(self.topology_key, "") for node in chosen if node is not None}
        return self.of_data(claims) or (domains.pop() if len(domains) == 1 else "")

    def settled_node(self, pod: Pod) -> str:
        """The node that the pod is bound or pinned to, else where the scheduler is about to bind it, else "".

        The scheduler gives up a nomination whose node is gone.
        """
        nominated = pod.nominated_node_name if pod.nominated_node_name in self.index.by_name else ""
        return self.assigned_node(pod) or nominated

    def assigned_node(self, pod: Pod) -> str:
        """The node that the pod is bound or pinned to, by matchFields or by the hostname label (v2), else ""."""
        node, hostname = pod.node_name or pinned_node(pod), pod.node_selector.get(keys.HOSTNAME, "")
        if node or not hostname:
            return node
        named = self.index.labelled(keys.HOSTNAME, hostname)
        if len(named) == 1:
            return named[0].name
        # Several nodes of one hostname are one place only by that key; none at all is a node that is gone.
        return "" if named and self.topology_key != keys.HOSTNAME else hostname

    def domain_at(self, pod: Pod, name: str) -> str | None:
        """The pod's domain at this node: the node's label, else what its record says, else its volume."""
        if self.topology_key == keys.HOSTNAME and not pod.node_name and keys.HOSTNAME in pod.node_selector:
            return pod.node_selector[keys.HOSTNAME]
        node = self.index.by_name.get(name)
        label = node.labels.get(self.topology_key, "") if node else ""
        found = label or self._recorded_domain(pod, name) or self.of_data(self.claims_of(pod))
        return found or (None if node is None else "")

    def _recorded_domain(self, pod: Pod, name: str) -> str:
        """The domain of the decision record, if this is the pod's own, by this key and for this node."""
        record = record_from(pod.annotations.get(keys.DECISION))
        if record is None or (record.member, record.topology_key) != (pod.name, self.topology_key):
            return ""
        return record.domain if name in (record.node, record.hostname) else ""
