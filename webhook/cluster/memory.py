"""The embedded cluster: a `Door` over plain dicts that behaves as the API server does.

One counter makes every resourceVersion. A write that changes nothing keeps the version, a stale version is
refused even then. Objects are never changed in place, only replaced, so that what was handed out stays as it
was and a LIST of 10,000 nodes copies nothing. Unlike an API server it has no namespaces, no status
subresource (a patch may change a status), no validation beyond metadata, no grace for deleted pods, and
finalizers only where a manifest brings them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Condition
from time import time

from webhook.cluster.api_errors import Refused, error_for, require_time
from webhook.cluster.creation import created, missing_claims, timestamp
from webhook.cluster.door import (
    CLAIMS,
    PODS,
    STORAGE_CLASSES,
    EventType,
    Listing,
    Manifest,
    Resource,
    WatchEvent,
)
from webhook.cluster.history import History
from webhook.cluster.kinds import BUILT_IN, stateful_sets_of
from webhook.cluster.merge import patched
from webhook.cluster.queries import watch_query
from webhook.cluster.table import Table, check_selectors, key_of, load, matches_fields, matches_labels, number_of
from webhook.core.shapes import inside, items, text

_TIMEOUT = 1.0


class MemoryCluster:
    """A cluster in memory, for `--cluster`, `demo`, `plan` and the fast tests; safe to use from many threads.

    `objects` are manifests with `apiVersion` and `kind`, of the kinds in `kinds.py`; they belong to the
    cluster afterwards. One of another kind, or given twice: DumpError. `clock` gives seconds since 1970: the
    `Date` of its answers and the times that it writes. `serve` names custom kinds that are served though no
    object of them is given; any other custom kind without an object answers 404, as without its definition.
    """

    def __init__(
        self,
        objects: Iterable[Manifest] = (),
        *,
        clock: Callable[[], float] = time,
        serve: Iterable[Resource] = (),
    ) -> None:
        self._clock = clock
        self._lock = Condition()
        self._tables = {key_of(resource): Table() for resource in (*BUILT_IN, *serve)}
        self._version = load(self._tables, tuple(objects))
        self._history = History(self._version, self._lock)

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
        """See `Door.list`. Items come ordered by namespace and name."""
        require_time(timeout)
        with self._lock:
            table = self._table("list", resource)
            objects = table.objects(namespace)
            version, date = self._version, int(self._clock())
        try:
            check_selectors(resource, labels, fields)
            _check_known_version(resource_version, version)
        except Refused as refused:
            raise error_for("list", resource.plural, "", refused.status, str(refused)) from None
        items = (found for found in objects if matches_labels(found, labels) and matches_fields(found, fields))
        return Listing(tuple(items), str(version), date)

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        """See `Door.scan`."""
        listing = self.list(resource, resource_version=resource_version, timeout=timeout)
        for item in listing.items:
            visit(item)
        return listing.resource_version

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        timeout: float,
        silence: float,  # noqa: ARG002
    ) -> Iterator[WatchEvent]:
        """See `Door.watch`. There is no silence: nothing lies between the watch and the cluster."""
        require_time(timeout)
        watch_query(resource_version, timeout)
        with self._lock:
            self._table("watch", resource)
            return self._history.follow(resource, number_of(resource_version), timeout)

    def get(self, resource: Resource, name: str, *, namespace: str = "", timeout: float) -> Manifest:
        """See `Door.get`."""
        require_time(timeout)
        with self._lock:
            return self._stored("get", resource, namespace, name)

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, namespace: str = "", timeout: float
    ) -> Manifest:
        """See `Door.merge_patch`. Taking the last finalizer of a terminating object ends it."""
        require_time(timeout)
        with self._lock:
            stored = self._stored("patch", resource, namespace, name)
            try:
                result = patched(stored, patch)
            except Refused as refused:
                raise error_for("patch", resource.plural, name, refused.status, str(refused)) from None
            if result is stored:
                return stored
            ends = "deletionTimestamp" in result["metadata"] and not result["metadata"].get("finalizers")
            kept = self._keep(resource, namespace, name, result, EventType.DELETED if ends else EventType.MODIFIED)
            if ends:
                self._table("patch", resource).remove(namespace, name)
            return kept

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        """See `Door.create`. Gives uid, creationTimestamp and, after `generateName`, the name."""
        require_time(timeout)
        with self._lock:
            table = self._table("create", resource)
            try:
                stored = created(manifest, resource, namespace, self._version + 1, self._clock())
            except Refused as refused:
                raise error_for("create", resource.plural, "", refused.status, str(refused)) from None
            name = stored["metadata"]["name"]
            if table.find(namespace, name) is not None:
                raise error_for("create", resource.plural, name, 409, "already exists")
            return self._keep(resource, namespace, name, stored, EventType.ADDED)

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
        """See `Door.delete`. An object with finalizers stays, being deleted, until a patch takes them."""
        require_time(timeout)
        with self._lock:
            metadata = self._stored("delete", resource, namespace, name)["metadata"]
            for key, wanted in (("uid", uid), ("resourceVersion", resource_version)):
                if wanted and metadata[key] != wanted:
                    detail = f"Precondition failed: {key} is {metadata[key]}"
                    raise error_for("delete", resource.plural, name, 409, detail)
            self._end(resource, namespace, name)

    def admit(self, pod: Manifest, *, namespace: str) -> Manifest:
        """Make an admitted pod visible and return it as stored; one of its name that is there stays."""
        with self._lock:
            name = text(inside(pod, "metadata", "name"))
            found = self._table("create", PODS).find(namespace, name)
            return found or self.create(PODS, pod, namespace=namespace, timeout=_TIMEOUT)

    def ensure_claims(self, pod: Manifest, labels: Mapping[str, str], *, namespace: str) -> None:
        """Create the claims that the pod names and that are not there, as the StatefulSet controller does.

        `labels` are those that the controller gives them: the group's selector.
        """
        with self._lock:
            classes = self._table("list", STORAGE_CLASSES).objects("")
            for claim in missing_claims(pod, labels, self._stateful_set_of(pod, namespace), classes):
                if self._table("create", CLAIMS).find(namespace, claim["metadata"]["name"]) is None:
                    self.create(CLAIMS, claim, namespace=namespace, timeout=_TIMEOUT)

    def _table(self, verb: str, resource: Resource) -> Table:
        table = self._tables.get(key_of(resource))
        if table is None:
            raise error_for(verb, resource.plural, "", 404, "the server could not find the requested resource")
        return table

    def _stored(self, verb: str, resource: Resource, namespace: str, name: str) -> Manifest:
        found = self._table(verb, resource).find(namespace, name)
        if found is None:
            raise error_for(verb, resource.plural, name, 404, "not found")
        return found

    def _keep(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        manifest: Manifest,
        event: EventType = EventType.MODIFIED,
    ) -> Manifest:
        kept = self._next_version(resource, manifest, event)
        self._table("update", resource).put(namespace, name, kept)
        return kept

    def _next_version(self, resource: Resource, manifest: Manifest, event: EventType) -> Manifest:
        """The object with a new version, which is told to those that watch."""
        self._version += 1
        kept = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self._version)}}
        self._history.add(self._version, resource, event, kept)
        return kept

    def _end(self, resource: Resource, namespace: str, name: str) -> None:
        stored = self._stored("delete", resource, namespace, name)
        metadata = stored["metadata"]
        if not metadata.get("finalizers"):
            self._next_version(resource, stored, EventType.DELETED)
            self._table("delete", resource).remove(namespace, name)
        elif "deletionTimestamp" not in metadata:
            deleting = {
                **metadata,
                "deletionTimestamp": timestamp(self._clock()),
                "deletionGracePeriodSeconds": 0,
            }
            self._keep(resource, namespace, name, {**stored, "metadata": deleting})

    def _stateful_set_of(self, pod: Manifest, namespace: str) -> Manifest | None:
        for owner in items(inside(pod, "metadata", "ownerReferences")):
            resource = stateful_sets_of(text(inside(owner, "apiVersion")).rpartition("/")[0])
            if resource and inside(owner, "kind") == resource.kind and key_of(resource) in self._tables:
                return self._tables[key_of(resource)].find(namespace, text(inside(owner, "name")))
        return None


def _check_known_version(wanted: str, current: int) -> None:
    if wanted and not wanted.isdigit():
        raise Refused(400, f"resourceVersion: Invalid value: {wanted[:64]!r}")
    if number_of(wanted) > current:
        raise Refused(504, f"Too large resource version: {wanted[:64]}, current: {current}")
