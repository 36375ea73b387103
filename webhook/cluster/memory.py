"""The embedded cluster: a `Door` over plain dicts that behaves as the API server does.

One counter makes every resourceVersion. A write that changes nothing keeps the version, a stale version is
refused even then. Objects are never changed in place, only replaced, so that what was handed out stays as it
was and a LIST of 10,000 nodes copies nothing. Unlike an API server it has no namespaces, no status
subresource (a patch may change a status), no validation beyond metadata, no grace for deleted pods, and
finalizers only where a manifest brings them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from time import time

from webhook.cluster.api_errors import Refused, error_for, require_time
from webhook.cluster.creation import created, missing_claims, timestamp, uid_of
from webhook.cluster.door import CLAIMS, PODS, STORAGE_CLASSES, Listing, Manifest, Resource
from webhook.cluster.kinds import BUILT_IN, resource_of, stateful_sets_of
from webhook.cluster.merge import patched
from webhook.cluster.table import Table, check_selectors, matches_fields, matches_labels
from webhook.core.shapes import inside, items, text
from webhook.errors import DumpError

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
        self._lock = RLock()
        self._version = 0
        self._tables = {_key(resource): Table() for resource in (*BUILT_IN, *serve)}
        self._load(tuple(objects))

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
            kept = self._keep(resource, namespace, name, result)
            if "deletionTimestamp" in kept["metadata"] and not kept["metadata"].get("finalizers"):
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
            return self._keep(resource, namespace, name, stored)

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
        table = self._tables.get(_key(resource))
        if table is None:
            raise error_for(verb, resource.plural, "", 404, "the server could not find the requested resource")
        return table

    def _stored(self, verb: str, resource: Resource, namespace: str, name: str) -> Manifest:
        found = self._table(verb, resource).find(namespace, name)
        if found is None:
            raise error_for(verb, resource.plural, name, 404, "not found")
        return found

    def _keep(self, resource: Resource, namespace: str, name: str, manifest: Manifest) -> Manifest:
        self._version += 1
        kept = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self._version)}}
        self._table("update", resource).put(namespace, name, kept)
        return kept

    def _end(self, resource: Resource, namespace: str, name: str) -> None:
        stored = self._stored("delete", resource, namespace, name)
        metadata = stored["metadata"]
        if not metadata.get("finalizers"):
            self._version += 1
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
            if resource and inside(owner, "kind") == resource.kind and _key(resource) in self._tables:
                return self._tables[_key(resource)].find(namespace, text(inside(owner, "name")))
        return None

    def _load(self, objects: tuple[Manifest, ...]) -> None:
        self._version = max((_number(found["metadata"].get("resourceVersion")) for found in objects), default=0)
        for manifest in objects:
            resource = resource_of(manifest)
            if resource is None:
                raise DumpError(f"{manifest.get('apiVersion')} {manifest.get('kind')}: not a kind that is used here")
            table = self._tables.setdefault(_key(resource), Table())
            self._put(table, resource, manifest)

    def _put(self, table: Table, resource: Resource, manifest: Manifest) -> None:
        metadata = dict(manifest["metadata"])
        name = metadata["name"]
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        if table.find(namespace, name) is not None:
            raise DumpError(f"{resource.kind} {namespace}/{name}: given twice")
        self._version += 1
        if resource.namespaced:
            metadata["namespace"] = namespace
        metadata["uid"] = metadata.get("uid") or uid_of(self._version)
        if not _number(metadata.get("resourceVersion")):
            metadata["resourceVersion"] = str(self._version)
        table.put(namespace, name, {**manifest, "metadata": metadata})


def _key(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural


def _number(version: object) -> int:
    return int(version) if isinstance(version, str) and version.isascii() and version.isdigit() else 0


def _check_known_version(wanted: str, current: int) -> None:
    if wanted and not wanted.isdigit():
        raise Refused(400, f"resourceVersion: Invalid value: {wanted[:64]!r}")
    if _number(wanted) > current:
        raise Refused(504, f"Too large resource version: {wanted[:64]}, current: {current}")
