"""What the checks look at: read once, when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from webhook.cluster.door import NAMESPACES, PODS, WEBHOOKS, Manifest, Resource
from webhook.cluster.fleet import Fleet, read_fleet
from webhook.cluster.reader import Reader
from webhook.core import registration
from webhook.core.shapes import inside, items, mapping, text, texts
from webhook.errors import ApiError, Forbidden
from webhook.operating.auditing import Report, report_of
from webhook.operating.connecting import Connection
from webhook.settings import CONTROLLER_LEASE

REGISTRATION: Final = "admissionregistration.k8s.io"
POLICIES: Final = Resource(REGISTRATION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False)
BINDINGS: Final = Resource(
    REGISTRATION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False
)
SERVICES: Final = Resource("", "v1", "services", "Service")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")

# Names of our webhooks end so, whatever the release is called.
OURS: Final = "tidb-ha-webhook.io"


@dataclass(frozen=True, slots=True)
class Entry:
    """One webhook of a configuration."""

    configuration: str
    webhook: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The webhook's own name."""
        return text(self.webhook.get("name"))

    @property
    def sees_creates_of_pods(self) -> bool:
        """Whether its rules name the CREATE of pods."""
        return registration.sees_creates_of_pods(self.webhook)

    @property
    def service(self) -> tuple[str, str, int] | None:
        """Namespace, name and port of its Service, None if it is called by URL."""
        return registration.service_of(self.webhook)


@dataclass
class Patient:
    """A cluster under examination. `version` asks the API server, None on a dump; `clock` is in s since 1970."""

    connection: Connection
    clock: Callable[[], float]
    _kept: dict[Resource, tuple[Manifest, ...] | ApiError] = field(default_factory=dict)

    @property
    def reader(self) -> Reader:
        """Reads within the command's time."""
        return self.connection.reader

    def list(self, resource: Resource) -> tuple[Manifest, ...]:
        """All objects of a kind, listed once. Raises what the first listing raised."""
        if resource not in self._kept:
            try:
                self._kept[resource] = self.reader.list(resource).items
            except ApiError as error:
                self._kept[resource] = error
        found = self._kept[resource]
        if isinstance(found, ApiError):
            raise found
        return found

    @cached_property
    def fleet(self) -> Fleet:
        """All groups."""
        return read_fleet(self.reader)

    @cached_property
    def report(self) -> Report:
        """The audit of all groups."""
        return report_of(self.fleet)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All mutating webhooks."""
        return tuple(
            Entry(text(inside(found, "metadata", "name")), mapping(webhook))
            for found in self.list(WEBHOOKS)
            for webhook in items(found.get("webhooks"))
        )

    @property
    def own_entries(self) -> tuple[Entry, ...]:
        """Ours that are called for pods."""
        return tuple(entry for entry in self.entries if entry.name.endswith(OURS) and entry.sees_creates_of_pods)

    @cached_property
    def namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return {found["metadata"]["name"]: texts(found["metadata"].get("labels")) for found in self.list(NAMESPACES)}

    @cached_property
    def own_pods(self) -> tuple[Manifest, ...]:
        """The pods behind our Service."""
        service = next((entry.service for entry in self.own_entries if entry.service), None)
        if service is None:
            return ()
        namespace, name, _ = service
        selector = texts(inside(self.reader.get(SERVICES, name, namespace=namespace), "spec", "selector"))
        if not selector:
            return ()
        return self.reader.list(PODS, namespace=namespace, labels=dict(selector)).items

    @cached_property
    def controller_lease(self) -> Manifest | None:
        """The Lease of the controller: the chart's, by the name of our Service, else that of a replica which leads."""
        service = next((entry.service for entry in self.own_entries if entry.service), None)
        if service is None:
            return None
        namespace, name, _ = service
        leases = (
            self.reader.find(LEASES, lease, namespace=namespace) for lease in (f"{name}-controller", CONTROLLER_LEASE)
        )
        return next(filter(None, leases), None)

    @property
    def leader(self) -> Manifest | None:
        """The pod that leads the controller, None where nobody does, or it is no pod."""
        holder = text(inside(self.controller_lease, "spec", "holderIdentity")).rpartition("_")[0]
        if self.controller_lease is None or not holder:
            return None
        return self.reader.find(PODS, holder, namespace=self.controller_lease["metadata"]["namespace"])


def not_allowed(error: Forbidden) -> tuple[str, str]:
    """What could not be looked at for want of permission, and how to find out."""
    return (
        f"not checked: not allowed to {error.verb} {error.resource}",
        f"ask somebody who may: kubectl auth can-i {error.verb} {error.resource} -A",
    )
