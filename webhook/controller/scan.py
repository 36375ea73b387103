"""Finds the pods of ours that wait: short lists of pods without a node, from the API server's cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from webhook.cluster.door import PODS, Door, Manifest
from webhook.cluster.fleet import FAMILIES
from webhook.cluster.reader import STALE, time_left
from webhook.controller.rescue import Held, LeftAlone, held_by_us
from webhook.core.groups import Recognised
from webhook.core.manifests import pod_from
from webhook.core.objects import Pod
from webhook.core.shapes import inside, items
from webhook.deadline import Deadline
from webhook.errors import ApiError

WITHOUT_NODE: Final[Mapping[str, str]] = {"spec.nodeName": ""}


class Groups(Protocol):
    """Finds the group that a pod is a member of; raises `errors.ApiError` or `errors.OutOfTime`."""

    def recognise(self, pod: Pod, deadline: Deadline) -> Recognised:
        """The pod's group, or why it is of none."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A held pod, and its manifest as it was listed or read."""

    held: Held
    manifest: Manifest


class Scanner:
    """Reads which pods we hold. `failed` is told of single pods that could not be judged."""

    def __init__(
        self, door: Door, groups: Groups, other_schedulers: Collection[str], failed: Callable[[str], None]
    ) -> None:
        self._door = door
        self._groups = groups
        self._other_schedulers = other_schedulers
        self._failed = failed

    def held(self, deadline: Deadline) -> Iterator[Found]:
        """The pods without a node that we hold; may be seconds old. Raises `errors.ApiError` or OutOfTime."""
        seen: set[str] = set()
        for family in FAMILIES:
            listing = self._door.list(
                PODS, labels=family, fields=WITHOUT_NODE, resource_version=STALE, timeout=time_left(deadline)
            )
            for manifest in listing.items:
                pod = pod_from(manifest)
                # tidb-operator v2's pods have the labels of v1 too.
                if pod.uid not in seen:
                    seen.add(pod.uid)
                    yield from self._found(pod, manifest, deadline)

    def fresh(self, held: Held, deadline: Deadline) -> Held | None:
        """The pod as it is now, None if this life of it is over or it is not held as it was."""
        pod = held.pod
        manifest = self._door.get(PODS, pod.name, namespace=pod.namespace, timeout=time_left(deadline))
        now = self._judged(pod_from(manifest), manifest, deadline)
        same = isinstance(now, Held) and (now.pod.uid, now.kind, now.node) == (pod.uid, held.kind, held.node)
        return now if isinstance(now, Held) and same else None

    def _found(self, pod: Pod, manifest: Manifest, deadline: Deadline) -> Iterator[Found]:
        try:
            judged = self._judged(pod, manifest, deadline)
        except ApiError as error:
            # One set's trouble is no other's.
            self._failed(f"{pod.namespace}/{pod.name} is left alone for now: {error}")
            return
        if isinstance(judged, Held):
            yield Found(judged, manifest)

    def _judged(self, pod: Pod, manifest: Manifest, deadline: Deadline) -> Held | LeftAlone:
        recognised = self._groups.recognise(pod, deadline)
        if recognised.group is None:
            return LeftAlone(recognised.detail)
        gated = bool(items(inside(manifest, "spec", "schedulingGates")))
        return held_by_us(pod, recognised.group, gated=gated, other_schedulers=self._other_schedulers)
