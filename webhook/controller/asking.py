"""Whether the webhook would be asked about a pod's next life: else nobody may be freed.

A pod that is created while nobody asks us comes without a decision: without a pin, without the guard, and so perhaps
beside a sibling. Two things keep that from being our doing. The *registration* is read before each deletion: it must
be there, select the pod, and name a Service with a ready endpoint. And the *breaker*: it opens when a pod that was
freed has come again without a decision, and nobody of a group is freed until a member of it that came later has one.

No pod is created to find out, not even as a dry run: whoever may create pods may become anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from webhook.cluster.door import ENDPOINT_SLICES, NAMESPACES, SERVICES, WEBHOOKS, Door
from webhook.cluster.reader import STALE, Reader
from webhook.controller.memory import LONG_AGO, Freed
from webhook.core import keys
from webhook.core.decision_record import record_from
from webhook.core.groups import is_member
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.core.registration import Webhook, bundle_of, for_pods, selects, service_of
from webhook.core.shapes import inside, items, texts
from webhook.deadline import Deadline

SERVICE_LABEL: Final = "kubernetes.io/service-name"
# For so long (s) after a freed pod has come again with a decision the next ones need not wait for each other.
TRUST: Final = 60.0
# A freed pod that has not come again for so long (s) never will: its set was scaled in, or is gone. The StatefulSet
# controller's longest delay between two tries is 1,000 s.
GIVEN_UP: Final = 1200.0


class Registration:
    """How the API server is told of us, by a MutatingWebhookConfiguration of this name; "": it is not looked at."""

    def __init__(self, door: Door, name: str) -> None:
        self._door = door
        self._name = name

    def why_not(self, pod: Pod, deadline: Deadline) -> str:
        """Why nobody would ask us about such a pod, "" if somebody would as far as can be seen.

        Raises `errors.ApiError` or OutOfTime where that cannot be read.
        """
        if not self._name:
            return ""
        reader = Reader(self._door, deadline)
        configuration = reader.find(WEBHOOKS, self._name)
        if configuration is None:
            return f"MutatingWebhookConfiguration {self._name} is not there"
        namespace = _labels_of_namespace(reader, pod.namespace)
        selecting = [entry for entry in for_pods(configuration) if selects(entry, namespace, pod.labels)]
        if not selecting:
            return f"MutatingWebhookConfiguration {self._name} does not select it"
        trusted = [entry for entry in selecting if bundle_of(entry)]
        if not trusted:
            return f"MutatingWebhookConfiguration {self._name} has no caBundle"
        if not any(_may_answer(reader, entry) for entry in trusted):
            return f"no endpoint of the Service of MutatingWebhookConfiguration {self._name} is ready"
        return ""


class Breaker:
    """Open for a group from when its freed pod has come again without a decision until a later member has one.

    While it is open for any group, another group needs such a member too: one webhook is asked about some pods and
    not about others (`matchConditions`). A pod that has not come again in time keeps its own group only. `clock` is
    monotonic (s).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._trusted_until = LONG_AGO
        self._unasked: dict[Group, Pod] = {}
        self._overdue: dict[Group, Freed] = {}
        self._known: frozenset[str] | None = None
        self._proofs: tuple[Pod, ...] = ()

    @property
    def trusts(self) -> bool:
        """Whether a freed pod has come again with a decision not long ago; else one is freed, and waited for."""
        return self._clock() < self._trusted_until

    @property
    def is_open(self) -> bool:
        """Whether a group is not asked about, as far as is known."""
        return bool(self._unasked)

    def why_open(self, group: Group) -> str:
        """Why nobody of this group is freed, "" if it is closed."""
        if (late := self.overdue().get(group)) is not None:
            return f"{late.namespace}/{late.name} was freed, and has not come again"
        pod = self._unasked.get(group)
        if pod is None and not any(is_member(group, proof) for proof in self._proofs):
            pod = next(iter(self._unasked.values()), None)
        return f"{pod.namespace}/{pod.name} was created without a decision" if pod is not None else ""

    def overdue(self) -> dict[Group, Freed]:
        """The freed pods that have not come again in time, and still may."""
        now = self._clock()
        self._overdue = {group: freed for group, freed in self._overdue.items() if now - freed.at < GIVEN_UP}
        return dict(self._overdue)

    def is_late(self, group: Group, freed: Freed) -> None:
        """A freed pod has not come again in time: of what it comes with nothing is known."""
        self._overdue[group] = freed

    def came_again(self, group: Group, pod: Pod) -> bool:
        """A freed pod has come again; whether the breaker opens for it."""
        self._overdue.pop(group, None)
        if is_decided(pod):
            self._trusted_until = self._clock() + TRUST
            return False
        self._trusted_until = LONG_AGO
        if group in self._unasked:
            return False
        # Who was asked about before proves nothing of now, in any group.
        self._unasked[group], self._known, self._proofs = pod, None, ()
        return True

    def not_ours(self, group: Group) -> None:
        """A freed pod has come again as one that is no member any more."""
        self._overdue.pop(group, None)

    def seen(self, members: Iterable[Pod]) -> bool:
        """These are all members now; whether one of them closes the breaker."""
        if not self._unasked:
            return False
        there = tuple(members)
        if self._known is None:
            # Clocks of API servers differ: who is there now is not later, whatever the timestamps say.
            self._known = frozenset(pod.uid for pod in there)
            return False
        # Nor is one that was there and could not be read.
        since = max(pod.created for pod in self._unasked.values())
        known = self._known
        self._proofs = tuple(pod for pod in there if pod.uid not in known and pod.created > since and has_record(pod))
        self._unasked = {
            group: pod
            for group, pod in self._unasked.items()
            if not any(is_member(group, proof) for proof in self._proofs)
        }
        return not self._unasked


def is_decided(pod: Pod) -> bool:
    """Whether a pod was created under our eyes, or with the guard of the floor, which keeps it apart too."""
    return has_record(pod) or keys.GUARD in pod.annotations


def has_record(pod: Pod) -> bool:
    """Whether it carries a decision for its own name."""
    record = record_from(pod.annotations.get(keys.DECISION))
    return record is not None and record.member == pod.name


def _labels_of_namespace(reader: Reader, name: str) -> Mapping[str, str]:
    listing = reader.list(NAMESPACES, fields={"metadata.name": name})
    return next((texts(inside(found, "metadata", "labels")) for found in listing.items), {})


def _may_answer(reader: Reader, webhook: Webhook) -> bool:
    """Whether somebody is there to be asked, as far as EndpointSlices tell."""
    service = service_of(webhook)
    if service is None:
        return True
    namespace, name, _ = service
    slices = reader.list(ENDPOINT_SLICES, namespace=namespace, labels={SERVICE_LABEL: name}, resource_version=STALE)
    endpoints = [endpoint for found in slices.items for endpoint in items(found.get("endpoints"))]
    if slices.items:
        return any(inside(each, "conditions", "ready") is not False for each in endpoints)
    # They go with their Service, and there is one for each with a selector; without a selector, and of a name outside
    # of the cluster, whose selector counts for nothing, nothing is known.
    found = reader.find(SERVICES, name, namespace=namespace)
    if found is None:
        return False
    return inside(found, "spec", "type") == "ExternalName" or not texts(inside(found, "spec", "selector"))
