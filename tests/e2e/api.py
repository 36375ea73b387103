"""A thin client of the API server: JSON in, JSON out, nothing cached, nothing retried."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import urllib3

from e2e.kinds import below, path_of, path_of_manifest
from e2e.objects import Object
from e2e.waiting import wait_until

Objects = list[Object]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


LONGEST_PAUSE = 0.4
"""Seconds between two looks at a list: each costs the API server more than what is looked for."""


class ApiError(Exception):
    """An answer of 400 or more; `status` is its code, `body` the Status object (or whatever else came)."""

    def __init__(self, method: str, path: str, status: int, body: Object) -> None:
        super().__init__(f"{method} {path}: {status} {body.get('message', body)}")
        self.status = status
        self.body = body


class Api:
    """One user's view of one server, which may be the fault proxy."""

    def __init__(
        self, url: str, token: str, ca: Path, *, timeout: float = 30.0, headers: Mapping[str, str] | None = None
    ) -> None:
        self.url = url
        self._http = urllib3.PoolManager(
            ca_certs=str(ca),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json", **(headers or {})},
            timeout=timeout,
            retries=False,
            maxsize=20,
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the kept connections."""
        self._http.clear()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """One call, whatever it is."""
        target = f"{path}?{urlencode(query)}" if query else path
        answer = self._http.request(
            method,
            self.url + target,
            body=None if body is None else json.dumps(body),
            headers={**self._http.headers, "Content-Type": content_type},
        )
        try:
            decoded: Object = json.loads(answer.data)
        except ValueError:
            decoded = {"message": answer.data.decode(errors="replace")}
        if answer.status >= 400:
            raise ApiError(method, target, answer.status, decoded)
        return decoded

    def create(self, manifest: Object, **query: str) -> Object:
        """POST, with e.g. `dryRun="All"`."""
        return self.request("POST", path_of_manifest(manifest, with_name=False), manifest, query=query)

    def apply(self, manifest: Object, *, manager: str, force: bool = True, **query: str) -> Object:
        """Server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower(), **query}
        return self.request("PATCH", path_of_manifest(manifest), manifest, query=query, content_type=APPLY_PATCH)

    def replace(self, manifest: Object, *, subresource: str = "", **query: str) -> Object:
        """PUT; refused with 409 when the manifest's resourceVersion is not the newest."""
        return self.request("PUT", path_of_manifest(manifest) + below(subresource), manifest, query=query)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """GET one object; 404 is an ApiError."""
        return self.request("GET", path_of(kind, namespace, name))

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """GET one object, or None where there is none."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> Objects:
        """The objects of a kind, of all namespaces if none is given; `labels` and `fields` are selectors."""
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in selectors.items() if value}
        items: Objects = self.request("GET", path_of(kind, namespace), query=query)["items"]
        return items

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        namespace: str | None = None,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        **query: str,
    ) -> Object:
        """PATCH, a merge patch unless said otherwise."""
        target = path_of(kind, namespace, name) + below(subresource)
        return self.request("PATCH", target, patch, query=query, content_type=content_type)

    def delete(
        self, kind: str, name: str, namespace: str | None = None, *, missing_ok: bool = False, **options: Any
    ) -> None:
        """DELETE with DeleteOptions, e.g. `gracePeriodSeconds=0` or `propagationPolicy="Orphan"`."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            self.request("DELETE", path_of(kind, namespace, name), body)
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise

    def delete_all(self, kind: str, namespace: str | None = None, *, labels: str = "", **options: Any) -> None:
        """DELETE of a whole list."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        self.request("DELETE", path_of(kind, namespace), body, query={"labelSelector": labels} if labels else None)

    def wait_for(
        self,
        kind: str,
        predicate: Callable[[Objects], bool],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        timeout: float = 60.0,
    ) -> Objects:
        """List until the predicate holds for the list, which is returned; a server in trouble counts as "not yet"."""
        seen: Objects = []

        def probe() -> bool:
            try:
                seen[:] = self.list(kind, namespace, labels=labels, fields=fields)
            except urllib3.exceptions.HTTPError:
                return False
            except ApiError as error:
                if error.status < 500 and error.status != 429:
                    raise
                return False
            return predicate(seen)

        try:
            what = f"{kind} {labels}{fields} in {namespace or 'the cluster'}"
            wait_until(probe, what, timeout, longest=LONGEST_PAUSE)
        except TimeoutError as error:
            raise TimeoutError("\n  ".join([f"{error}; last seen:", *map(summary, seen)])) from None
        return seen


def summary(found: Object) -> str:
    """An object in one line, for messages."""
    status = found.get("status", {})
    conditions = [f"{c['type']}={c['status']} {c.get('message', '')}" for c in status.get("conditions", [])]
    facts = [status.get("phase"), found.get("spec", {}).get("nodeName"), *conditions]
    return " ".join([found["metadata"]["name"], *(str(fact).strip() for fact in facts if fact)])


def running(count: int) -> Callable[[Objects], bool]:
    """A predicate for `wait_for`: exactly this many pods, and all of them Running."""
    return lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running"] * count


def ready_for_pods(node: Object) -> bool:
    """Whether a node is Ready and has lost the not-ready taint that every new node is born with."""
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in taints


def ready_for_claims(volume: Object) -> bool:
    """Whether the controller manager has seen a new volume: before, nobody binds it or counts it as room."""
    return volume.get("status", {}).get("phase", "Pending") != "Pending"


def wait_until_usable(api: Api, made: Iterable[Object]) -> None:
    """Wait until the nodes among these objects take pods, and the volumes claims."""
    for kind, usable in (("Node", ready_for_pods), ("PersistentVolume", ready_for_claims)):
        if names := {found["metadata"]["name"] for found in made if found["kind"] == kind}:
            api.wait_for(kind, partial(_all_of, names, usable))


def _all_of(names: set[str], usable: Callable[[Object], bool], found: list[Object]) -> bool:
    return all(usable(one) for one in found if one["metadata"]["name"] in names)
