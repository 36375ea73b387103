"""Checks of permissions: of whoever asks, and of the webhook's service account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from webhook.cluster.door import Resource
from webhook.cluster.reader import time_left
from webhook.core.shapes import inside, text
from webhook.operating.doctor.lines import Line, fail, ok, skip, warn
from webhook.operating.doctor.patient import Patient
from webhook.operating.page import listed

SELF_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource of an API group."""

    verb: str
    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def _rights(group: str, resources: str, verbs: str) -> tuple[Right, ...]:
    return tuple(Right(verb, resource, group) for resource in resources.split() for verb in verbs.split())


ASKING: Final = (
    *_rights("", "pods nodes persistentvolumes persistentvolumeclaims namespaces events", "list"),
    *_rights("storage.k8s.io", "storageclasses", "list"),
    *_rights("apps", "statefulsets", "list"),
    *_rights("", "pods", "get"),
)
"""What the commands that ask need; tidb-operator's own kinds are asked for where they are installed."""

SERVING: Final = (
    *_rights("", "pods nodes persistentvolumes persistentvolumeclaims namespaces", "list watch"),
    *_rights("", "nodes persistentvolumes", "get"),
    *_rights("", "persistentvolumeclaims", "get patch"),
    *_rights("", "events", "create get patch"),
    *_rights("storage.k8s.io", "storageclasses", "list watch get"),
    *_rights("storage.k8s.io", "csidrivers csinodes csistoragecapacities volumeattachments", "list watch"),
    *_rights("apps", "statefulsets", "get"),
    *_rights("apps.pingcap.com", "statefulsets", "get"),
    *_rights("pingcap.com", "tidbclusters dmclusters", "get"),
    *_rights("core.pingcap.com", "clusters", "get"),
    *_rights("core.pingcap.com", "pdgroups pds tikvgroups tikvs dmgroups dms", "list"),
)
"""What the webhook needs. A test compares it with the chart's ClusterRole."""

RESCUING: Final = (
    *_rights("", "pods", "get delete"),
    *_rights("apps", "statefulsets", "list"),
    *_rights("apps.pingcap.com", "statefulsets", "list"),
    *_rights("pingcap.com", "tidbclusters dmclusters", "list"),
    *_rights("core.pingcap.com", "clusters", "list"),
    *_rights("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get"),
    *_rights("discovery.k8s.io", "endpointslices", "list"),
    *_rights("", "services", "get"),
)
"""What the controller needs beside that: the configuration by its name, EndpointSlices and Services in its
namespace."""


def of_the_user(patient: Patient) -> Iterator[Line]:
    """Whether whoever runs this may read what the commands read."""
    if patient.connection.on_dump:
        yield skip("your permissions", "this is a dump")
        return
    missing = [str(right) for right in ASKING if not _allowed(patient, SELF_REVIEWS, right, {})]
    if missing:
        yield warn(
            "your permissions",
            f"you may not {listed(missing, 20)}: not every question can be answered",
            "use a role with these verbs in all namespaces, such as cluster-admin, or view with nodes and volumes",
        )
    else:
        yield ok("your permissions", "you may read all that the commands read")


def of_the_webhook(patient: Patient) -> Iterator[Line]:
    """Whether the webhook's service account may do what it has to."""
    about = "webhook's permissions"
    if patient.connection.on_dump:
        yield skip(about, "this is a dump")
        return
    accounts = {_account(pod) for pod in patient.own_pods}
    if not accounts:
        yield skip(about, "no pod of the webhook was found, so its service account is not known")
    for account in sorted(accounts):
        missing = [str(right) for right in SERVING if not _allowed(patient, REVIEWS, right, {"user": account})]
        if missing:
            yield fail(
                about,
                f"{account} may not {listed(missing, 20)}: its pods get the guard instead of a place",
                "install the chart with rbac.create, or grant these verbs cluster-wide",
            )
        else:
            yield ok(about, f"{account} may do all that it has to")


def of_the_controller(patient: Patient) -> Iterator[Line]:
    """Whether the service account of whoever leads the controller may do what it has to."""
    about = "controller's permissions"
    leader = None if patient.connection.on_dump else patient.leader
    if leader is None:
        yield skip(about, "the pod that leads it is not known")
        return
    account, namespace = _account(leader), text(inside(leader, "metadata", "namespace"))
    only = {
        "mutatingwebhookconfigurations": {"name": patient.own_entries[0].configuration},
        "endpointslices": {"namespace": namespace},
        "services": {"namespace": namespace},
    }
    missing = [
        str(right)
        for right in (*SERVING, *RESCUING)
        if not _allowed(patient, REVIEWS, right, {"user": account}, only.get(right.resource, {}))
    ]
    if missing:
        yield fail(
            about,
            f"{account} may not {listed(missing, 20)}: pods that wait are not freed, or not audited",
            "install the chart with rbac.create, or grant these verbs",
        )
    else:
        yield ok(about, f"{account} may do all that it has to")


def _allowed(
    patient: Patient,
    resource: Resource,
    right: Right,
    who: Mapping[str, Any],
    only: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """`only`: the name or the namespace that the right has to be for."""
    attributes = {"verb": right.verb, "resource": right.resource, "group": right.group, **only}
    review = {"metadata": {}, "spec": {**who, "resourceAttributes": attributes}}
    timeout = time_left(patient.connection.deadline)
    return inside(patient.connection.door.create(resource, review, timeout=timeout), "status", "allowed") is True


def _account(pod: Mapping[str, Any]) -> str:
    namespace = text(inside(pod, "metadata", "namespace"))
    return f"system:serviceaccount:{namespace}:{text(inside(pod, 'spec', 'serviceAccountName')) or 'default'}"
