"""The one way to the cluster's state: raw Kubernetes objects in, raw objects out, errors of ours.

`api.py` (an API server) and `memory.py` (the embedded cluster) implement `Door` and pass the same contract
tests. Objects are plain dicts as the API server writes them; nobody may change one that a door returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the API: group "" is core; `plural` is the name in paths and in RBAC rules."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True


PODS: Final = Resource("", "v1", "pods", "Pod")
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUME_ATTACHMENTS: Final = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
ADVANCED_STATEFUL_SETS: Final = Resource("apps.pingcap.com", "v1", "statefulsets", "StatefulSet")
EVENTS: Final = Resource("", "v1", "events", "Event")
SERVICES: Final = Resource("", "v1", "services", "Service")
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
TIDB_CLUSTERS: Final = Resource("pingcap.com", "v1alpha1", "tidbclusters", "TidbCluster")
DM_CLUSTERS: Final = Resource("pingcap.com", "v1alpha1", "dmclusters", "DMCluster")
V2_CLUSTERS: Final = Resource("core.pingcap.com", "v1alpha1", "clusters", "Cluster")
PD_GROUPS: Final = Resource("core.pingcap.com", "v1alpha1", "pdgroups", "PDGroup")
PDS: Final = Resource("core.pingcap.com", "v1alpha1", "pds", "PD")
TIKV_GROUPS: Final = Resource("core.pingcap.com", "v1alpha1", "tikvgroups", "TiKVGroup")
TIKVS: Final = Resource("core.pingcap.com", "v1alpha1", "tikvs", "TiKV")
DM_GROUPS: Final = Resource("core.pingcap.com", "v1alpha1", "dmgroups", "DMGroup")
DMS: Final = Resource("core.pingcap.com", "v1alpha1", "dms", "DM")


ANY_VALUE: Final = "*"
"""In a label selector: the label must be there, whatever its value; no label can have this one."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a LIST answered: the items, the collection's resourceVersion, and the server's `Date` (s since 1970)."""

    items: tuple[Manifest, ...]
    resource_version: str
    date: int


class EventType(StrEnum):
    """What a watch tells of an object; a bookmark only tells how far the watch has come."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch, with the object as it was stored (DELETED: last); a bookmark's has a version only."""

    type: EventType
    manifest: Manifest

    @property
    def resource_version(self) -> str:
        """From where a watch goes on after this event."""
        return str(self.manifest["metadata"]["resourceVersion"])


class Door(Protocol):
    """Calls to the API. `timeout` (s) bounds connecting and reading; nothing is ever retried in here.

    Each call raises an `errors.ApiError` subclass: NotFound, Conflict, Forbidden, Invalid, Gone,
    TooManyRequests, or UnknownOutcome (no answer, 5xx, an unreadable answer).
    """

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> Listing:
        """List objects by equality of labels and fields; a consistent read unless `resource_version` is "0".

        A label's value may be ANY_VALUE.
        """
        ...

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        """List all objects, for lists too long to be held: each is visited while the answer is being read.

        Returns the collection's resourceVersion. When it raises, some may have been visited.
        """
        ...

    def watch(
        self, resource: Resource, *, resource_version: str, timeout: float, silence: float
    ) -> Iterator[WatchEvent]:
        """Watch all objects from the version of a list, or of an event, until the server ends it after `timeout`.

        Returns as soon as the server has begun to answer; the events then come as they happen. Bookmarks come if
        at all, and of a kind that nothing happens to hardly ever. Raises Gone, here or among the events, for a
        version that is too old, and UnknownOutcome when nothing has come for `silence` (s). ValueError for none.
        """
        ...

    def get(self, resource: Resource, name: str, *, namespace: str = "", timeout: float) -> Manifest:
        """Read one object consistently."""
        ...

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, namespace: str = "", timeout: float
    ) -> Manifest:
        """Apply a JSON merge patch (RFC 7386) once and return the object as stored.

        `metadata.resourceVersion` in the patch makes it conditional (409 → Conflict); `metadata.uid` that
        is not the object's is refused (422 → Invalid).
        """
        ...

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        """Create an object and return it as stored."""
        ...

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        timeout: float,
    ) -> None:
        """Delete an object, conditional on its uid and resourceVersion where given (409 → Conflict)."""
        ...
