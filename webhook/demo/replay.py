"""The incident with the webhook: who is asked what in which order, and where the answers put the pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from webhook.cluster.door import Manifest
from webhook.demo.clients import Client, Reply
from webhook.demo.incident import Incident
from webhook.demo.server import webhook_on
from webhook.demo.world import objects_of, pods_by_name
from webhook.embedded.answers import Admitted, admitted
from webhook.embedded.reviews import review_of


class Asker(Protocol):
    """Something that answers reviews."""

    def ask(self, reviews: Sequence[Manifest]) -> Sequence[Reply]:
        """The answers to reviews that arrive at the same moment, in their order."""
        ...


# Something that answers reviews about these objects' cluster, for as long as a block runs.
Serve = Callable[[Iterable[Manifest]], AbstractContextManager[Asker]]


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod's answer, and the seconds that it took."""

    pod: str
    answer: Admitted
    seconds: float


@contextmanager
def real_webhook(objects: Iterable[Manifest]) -> Iterator[Asker]:
    """The real server, asked as an API server asks it."""
    with webhook_on(objects) as endpoint:
        yield Client(endpoint)


def replay(incident: Incident, serve: Serve = real_webhook) -> tuple[Placed, ...]:
    """Ask for every pod as the log has it: those that knew nothing of each other at the same moment."""
    pods = pods_by_name(incident)
    placed: list[Placed] = []
    with serve(objects_of(incident)) as asker:
        for together in incident.together():
            reviews = [review(incident, pods[decided.pod]) for decided in together]
            for decided, reply in zip(together, asker.ask(reviews), strict=True):
                placed.append(Placed(decided.pod, admitted(pods[decided.pod], reply.answer), reply.seconds))
    return tuple(placed)


def review(incident: Incident, pod: Manifest) -> Manifest:
    """The review of a pod's create."""
    return review_of(pod, namespace=incident.namespace, uid=f"create-{pod['metadata']['name']}")
