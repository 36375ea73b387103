"""Who takes a place on which node, as the filters of one pod see it.

What was read of all pods (`Snapshot.placed_pods`, `rooms`) may be seconds old; the group's own pods and answers
are not. So what was read of a visible member is replaced by what the consistent list says, an earlier life of the
pod itself does not count, and a member in flight takes its place already. Such a member cannot be read anywhere: it
is made of the same template as this pod, so it is taken to ask for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from webhook.core import keys
from webhook.core.crowd import Crowd
from webhook.core.decision_record import token_of
from webhook.core.memo import Memo
from webhook.core.model import NodeRoom, Placing, Snapshot
from webhook.core.objects import NO_QUANTITIES, Pod, PodOnNode
from webhook.core.whereabouts import Whereabouts

# Labels by which pods of one template differ.
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"

NOTHING: Final = Decimal(0)
EMPTY: Final = NodeRoom()

crowd_of: Final = Memo(Crowd.of)
"""The pods on nodes, with what the filters look for among them."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The pods on each node; what they and promises ask of it; the members that are not bound yet.

    `touched`: what is asked of the nodes where that is not what `rooms` say. `coming` is in an order that does not
    depend on how anything was listed.
    """

    crowd: Crowd
    rooms: Mapping[str, NodeRoom]
    touched: Mapping[str, Mapping[str, Decimal]]
    coming: Sequence[PodOnNode]

    def on(self, node_name: str) -> Sequence[PodOnNode]:
        """The pods on a node."""
        return self.crowd.on(node_name)

    def asked_of(self, node_name: str) -> Mapping[str, Decimal]:
        """What is asked of a node already."""
        touched = self.touched.get(node_name)
        if touched is not None:
            return touched
        room = self.rooms.get(node_name)
        return NO_QUANTITIES if room is None else room.requested


def occupancy_for(where: Whereabouts, placing: Placing) -> Occupancy:
    """Find out who is where, for placing this pod."""
    snapshot = where.snapshot
    crowd = crowd_of(snapshot.placed_pods)
    others = [pod for pod in snapshot.pods if pod.name != placing.pod.name]
    replaced = _replaced(crowd, placing, others)
    visible = dict(_visible(where, placing, others, replaced))
    in_flight = {at: pod for at, pod in _in_flight(snapshot, placing, others) if at not in visible}
    # Where all pods were not read, the visible ones are in the rooms as far as anybody knows.
    arriving = (*(visible.values() if crowd.size else ()), *in_flight.values())
    return Occupancy(
        crowd=_moved(crowd, replaced, arriving),
        rooms=snapshot.rooms,
        touched=_touched(snapshot, replaced, arriving),
        coming=tuple(pod for _, pod in sorted((visible | in_flight).items()) if not pod.bound),
    )


def _replaced(crowd: Crowd, placing: Placing, others: Iterable[Pod]) -> tuple[PodOnNode, ...]:
    """What was read of the visible members and of an earlier life of the pod to be placed."""
    names = dict.fromkeys((placing.pod.name, *(pod.name for pod in others)))
    return tuple(pod for name in names for pod in crowd.named(placing.pod.namespace, name))


Placed = Iterator[tuple[tuple[str, str], PodOnNode]]
"""Pods by node and name: a member takes one place on a node, however often it is mentioned."""


def _visible(where: Whereabouts, placing: Placing, others: Iterable[Pod], replaced: Iterable[PodOnNode]) -> Placed:
    known = {(pod.node_name, pod.name): pod for pod in replaced}
    for pod in others:
        node_name = "" if pod.finished else where.settled_node(pod)
        if node_name:
            at = node_name, pod.name
            yield at, known.get(at) or _seen(pod, node_name, placing)


def _in_flight(snapshot: Snapshot, placing: Placing, others: Iterable[Pod]) -> Placed:
    carried = {(pod.name, token_of(pod)) for pod in others} if snapshot.entries else set()
    for entry in snapshot.entries:
        is_over = entry.member == placing.pod.name or (entry.member, entry.token) in carried
        if entry.node and not is_over:
            yield (entry.node, entry.member), _sibling(placing, entry.member, entry.node)


def _seen(pod: Pod, node_name: str, placing: Placing) -> PodOnNode:
    """A member that was not on this node when all pods were read."""
    return PodOnNode(
        namespace=pod.namespace,
        name=pod.name,
        node_name=node_name,
        labels=pod.labels,
        requests=placing.requests,
        priority=pod.priority,
        bound=pod.node_name == node_name,
        deleting=pod.deleting,
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
        claim_names=pod.claim_names,
        guard=pod.annotations.get(keys.GUARD, ""),
    )


def _sibling(placing: Placing, name: str, node_name: str) -> PodOnNode:
    """A member of which only its place is known."""
    pod = placing.pod
    labels = {key: value for key, value in pod.labels.items() if key not in (POD_NAME, POD_INDEX)}
    return PodOnNode(
        namespace=pod.namespace,
        name=name,
        node_name=node_name,
        labels=labels | ({POD_NAME: name} if POD_NAME in pod.labels else {}),
        requests=placing.requests,
        priority=pod.priority,
        bound=False,
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
    )


def _moved(crowd: Crowd, replaced: Iterable[PodOnNode], arriving: Sequence[PodOnNode]) -> Crowd:
    """All pods by node; only the nodes that differ are made anew."""
    current: dict[str, list[PodOnNode]] = {}
    gone = {id(pod) for pod in replaced}
    for pod in (*replaced, *arriving):
        if pod.node_name not in current:
            current[pod.node_name] = [other for other in crowd.on(pod.node_name) if id(other) not in gone]
    for pod in arriving:
        current[pod.node_name].append(pod)
    return crowd.moved(current) if current else crowd


def _touched(
    snapshot: Snapshot, replaced: Iterable[PodOnNode], arriving: Iterable[PodOnNode]
) -> Mapping[str, Mapping[str, Decimal]]:
    asked: dict[str, Mapping[str, Decimal]] = {}
    changes = [(pod.node_name, pod.requests, -1) for pod in replaced]
    changes += [(pod.node_name, pod.requests, 1) for pod in arriving]
    changes += [(node_name, requests, 1) for node_name, requests in snapshot.promised.items()]
    for node_name, requests, sign in changes:
        before = asked.get(node_name, snapshot.rooms.get(node_name, EMPTY).requested)
        change = {name: before.get(name, NOTHING) + sign * amount for name, amount in requests.items()}
        asked[node_name] = {**before, **change}
    return asked
