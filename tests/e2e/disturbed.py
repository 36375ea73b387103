"""Sets that are created while something is disturbed: whatever happens, nobody stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from e2e import objects
from e2e.api import Api
from e2e.evidence import NO_SAFE_NODE, Evidence, Guarding, was_hit
from e2e.faults import Call, DelayAnswer, Rule
from e2e.place import HandSet, Place, Tries, node_of, per_node, pin_of, was_looked_at
from e2e.replicas import Replica, Webhook, outcome_of, tally
from e2e.rounds import times
from e2e.waiting import wait_until

THREE = ["n0", "n1", "n2"]
CLAIMS = "/persistentvolumeclaims/"
BATCH = 5
"""Rounds that are looked at together: to wait for the scheduler after each would take longer than the rounds."""
SETTLING = 180.0
"""Seconds until all have a node: who has lost the API server (the scheduler, the volumes' controller) asks again after
up to a minute, and needs several lists."""


@dataclass
class Round:
    """The sets that are being created."""

    sets: list[HandSet]
    creates: list[Future[Tries]]
    webhook: Webhook
    excused: set[tuple[int, str]] = field(default_factory=set)
    """Replica and cluster, where that replica was struck itself in the middle of the cluster's creates."""
    lost: set[str] = field(default_factory=set)
    """Pods whose own claim was taken away."""

    def wait(self) -> None:
        """Until all creates are through."""
        for created in self.creates:
            created.result()

    def in_the_middle(self) -> Replica:
        """Wait until each set has a write that was answered; the replica that made the last of them."""

        def writer() -> Replica | None:
            writers = [self._writer(members) for members in self.sets]
            return None if None in writers else writers[-1]

        found = wait_until(writer, "a replica to write for each set", 30)
        for proxy in self.webhook.proxies:
            # What is held back is held on; the rest of the round need not be slow.
            proxy.set_rules()
        return found

    def strike(self, replica: Replica) -> None:
        """Note that a replica itself is struck: what it guards from now on is accounted for."""
        index = self.webhook.replicas.index(replica)
        self.excused |= {(index, members.cluster) for members in self.sets}

    def lose_claim(self, members: HandSet, ordinal: int) -> None:
        """Delete the claim of a member, which then has nothing to lock on."""
        self.lost.add(f"{members.set['metadata']['name']}-{ordinal}")
        members.api.delete("PersistentVolumeClaim", members.claim_name(ordinal), members.place.namespace)

    def accounts_for(self, guarding: Guarding, tries: Tries) -> bool:
        """Whether a guard is right for what happened to the replica, the pod's claim, or an earlier create of it."""
        if (guarding.replica, guarding.cluster) in self.excused:
            return True
        if guarding.cause == NO_SAFE_NODE:
            # What the creates of siblings have recorded that failed may still hold its room.
            return bool(tries.names)
        return guarding.pod in (tries.names | (self.lost if guarding.cause == "NoLockClaim" else set()))

    def _writer(self, members: HandSet) -> Replica | None:
        path = rf"{CLAIMS}\S*\b{members.cluster}\b"
        for replica in self.webhook.replicas:
            if replica.proxy is not None and any(call.status for call in replica.proxy.seen("PATCH", path)):
                return replica
        return None


def shaken(place: Place, webhook: Webhook) -> Rounds:
    """Three sets of 3 on 3 nodes and one of 9 on 3 at a time, slow enough to be struck in their middle."""
    return Rounds(place, webhook, sizes=(3, 3, 3, 9), slow=0.2)


STRIKES = times(200, sets=3)
"""How often they are struck."""


class Rounds:
    """Sets of these sizes on three nodes, created at once, time after time.

    `hit` says which calls a fault has met. With `slow` every write's answer is held back that long (s), so that a
    round can be caught in its middle. `apis` are the API servers that the creates go through in turn.
    """

    def __init__(
        self,
        place: Place,
        webhook: Webhook,
        *,
        component: str = "tikv",
        sizes: Sequence[int] = (3, 3, 3),
        slow: float = 0.0,
        hit: Callable[[Call], bool] = was_hit,
        apis: Sequence[Api] = (),
    ) -> None:
        self.place, self.webhook, self.sizes, self.hit, self.apis = place, webhook, sizes, hit, apis
        self.component, self.slow = component, slow
        place.create(*objects.local_cluster(THREE, volumes=BATCH * sum(-(-size // len(THREE)) for size in sizes)))
        self.given: Counter[str] = Counter()
        self.sets: Counter[int] = Counter()
        self.times = self.refused = self.waiting = 0
        self.slowest = 0.0
        self._pending: list[Round] = []
        self._looked_at: list[Round] = []
        self._guarded: set[str] = set()
        self._evidence = Evidence(webhook)

    @contextmanager
    def one(self) -> Iterator[Round]:
        """All creates at once, while the `with` block disturbs them; it ends when they are through."""
        if len(self._pending) + len(self._looked_at) == BATCH:
            self._look()
            self._clear()
        sets = [
            HandSet(self.place, f"db{self.sets.total() + index}", self.component, replicas=size)
            for index, size in enumerate(self.sizes)
        ]
        self.sets.update(self.sizes)
        self.times += 1
        self.webhook.balancer.deal_anew()
        for members in sets:
            members.create_claims(range(members.replicas))
        if self.slow:
            for proxy in self.webhook.proxies:
                proxy.set_rules(Rule(DelayAnswer(self.slow), method="PATCH", path=CLAIMS))
        with ThreadPoolExecutor(max_workers=len(sets)) as executor:
            creates = [
                executor.submit(members.create_pods, range(members.replicas), timeout=90, apis=self.apis)
                for members in sets
            ]
            under_way = Round(sets, creates, self.webhook)
            yield under_way
            under_way.wait()
        self._pending.append(under_way)

    def _look(self) -> None:
        """Look at what came of the last rounds, each once."""
        for under_way in self._pending:
            for members, created in zip(under_way.sets, under_way.creates, strict=True):
                self._check(members, created.result())
        self._check_guards()
        self._looked_at += self._pending
        self._pending.clear()
        self._guarded.clear()
        self._evidence.begin()

    def _clear(self) -> None:
        """Take it away, and put new volumes where theirs were."""
        for under_way in self._looked_at:
            for members in under_way.sets:
                members.remove(renew=False)
        self.place.renew_volumes()
        self._looked_at.clear()

    def _check(self, members: HandSet, tries: Tries) -> None:
        """Nobody is beside too many siblings, by pins and by nodes; where all are pinned, all get there."""
        pods = members.pods()
        assert len(pods) == members.replicas
        pins = Counter(filter(None, map(pin_of, pods)))
        most = -(-members.replicas // len(THREE))
        assert max(pins.values(), default=0) <= most, pins
        guarded = {pod["metadata"]["name"] for pod in pods if outcome_of(pod).startswith("guarded")}
        # Beside a guarded sibling a pinned one may have to wait: whoever is first keeps the other away.
        settled = was_looked_at if guarded else node_of
        placed = members.place.wait_for(
            lambda found: len(found) == members.replicas and all(map(settled, found)),
            members.cluster,
            self.component,
            timeout=SETTLING,
        )
        assert max(per_node(placed), default=0) <= most
        self.given += tally(placed)
        self.waiting += sum(not node_of(pod) for pod in placed)
        self.refused += len(tries.refused)
        self.slowest = max(self.slowest, tries.slowest)
        self._guarded |= guarded

    def _check_guards(self) -> None:
        """Each guard belongs to a create that a fault has hit; and no call was forbidden."""
        sets = [
            (under_way, members, created.result())
            for under_way in self._pending
            for members, created in zip(under_way.sets, under_way.creates, strict=True)
        ]
        answered = self._evidence.guardings({members.cluster for _, members, _ in sets})
        assert self._guarded <= {guarding.pod for guarding in answered}
        guardings = [
            guarding
            for under_way, members, tries in sets
            for guarding in answered
            if guarding.cluster == members.cluster and not under_way.accounts_for(guarding, tries)
        ]
        assert not self._evidence.needless(guardings, self.hit)
        assert not self._evidence.refused(self.hit)

    def finish(self) -> str:
        """Look at the last rounds too; what all pods got."""
        self._look()
        sets = " and ".join(f"{number} sets of {size}" for size, number in self.sets.items())
        tried = f"{self.waiting} wait; {self.refused} creates tried again; slowest create {self.slowest:.1f} s"
        return f"{self.times} times, {sets}: {dict(self.given)}; {tried}"

    def share_pinned(self) -> float:
        """The share of the pods that were pinned."""
        return self.given["pinned"] / max(1, self.given.total())
