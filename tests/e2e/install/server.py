"""One server with an account's own token, every call of which is seen, and reviews that make it use all its rights."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import urllib3

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.fault_proxy import FaultProxy
from e2e.faults import Call
from e2e.objects import Object
from e2e.processes import Child, free_port
from e2e.waiting import wait_until

V2 = "core.pingcap.com"
V2_KINDS = ("Cluster", "PDGroup", "PD", "TiKVGroup", "TiKV", "DMGroup", "DM")
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[^/]+(?:/namespaces/[^/?]+(?=/))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?"
    r"(?:\?(?P<query>.*))?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class Right(NamedTuple):
    """What RBAC allows or refuses."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


def right_of(call: Call) -> Right:
    """The right that a call needs."""
    found = _PATH.fullmatch(call.target)
    assert found is not None, call.target
    verb = _VERBS.get(call.method, "get" if found["name"] else "list")
    if verb == "list" and "watch=" in (found["query"] or ""):
        verb = "watch"
    return Right(found["group"] or "", found["resource"], verb)


def definitions() -> list[Object]:
    """The kinds of tidb-operator, v1 and v2, without any controller."""
    v2 = [objects.custom_resource_definition(V2, "v1alpha1", kind, f"{kind.lower()}s") for kind in V2_KINDS]
    v1 = [
        objects.custom_resource_definition("pingcap.com", "v1alpha1", kind, f"{kind.lower()}s")
        for kind in ("TidbCluster", "DMCluster")
    ]
    advanced = objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets")
    return [*v1, *v2, advanced]


def populate(api: Api, namespace: str, nodes: Sequence[str]) -> list[Object]:
    """Sets of each family, with claims; the pods that shall be reviewed.

    They are of an advanced set (with one claim that is free, one that is bound, one without labels), of a set
    that is not there, of a set of DM, and of each component of tidb-operator v2.
    """
    pods = []
    for kind, name, component in (("TidbCluster", "db", "tikv"), ("DMCluster", "dm", "dm-master")):
        path = f"/apis/pingcap.com/v1alpha1/namespaces/{namespace}/{kind.lower()}s"
        metadata = {"name": name, "namespace": namespace}
        cluster = {"apiVersion": "pingcap.com/v1alpha1", "kind": kind, "metadata": metadata}
        owner = api.request("POST", path, cluster)
        manifest = objects.advanced(objects.stateful_set(namespace, cluster=name, component=component))
        manifest["metadata"]["ownerReferences"] = [objects.owner_reference(owner)]
        made = api.create(manifest)
        for ordinal in range(2):
            for claim in objects.member_claims(made, ordinal):
                volume = {"volumeName": f"{nodes[0]}-{ordinal}"} if component == "tikv" and ordinal else {}
                api.create({**claim, "spec": {**claim["spec"], **volume}})
            pods.append(objects.member_pod(made, ordinal))
    plain = objects.member_claims(manifest, 0)[0]
    api.create({**plain, "metadata": {"name": "extra", "namespace": namespace}})
    pods[0]["spec"]["volumes"].append({"name": "extra", "persistentVolumeClaim": {"claimName": "extra"}})
    absent = objects.stateful_set(namespace, cluster="absent")
    pods.append(objects.member_pod(absent, 0, uid="none"))
    return pods + [_v2_pod(api, namespace, component) for component in ("pd", "tikv", "dm-master")]


def _v2_pod(api: Api, namespace: str, component: str) -> Object:
    """A pod of tidb-operator v2, whose group object is there."""
    kind = {"pd": "PD", "tikv": "TiKV", "dm-master": "DM"}[component]
    path = f"/apis/{V2}/v1alpha1/namespaces/{namespace}/{kind.lower()}groups"
    spec = {"cluster": {"name": "v2"}, "replicas": 3}
    metadata = {"name": component, "namespace": namespace}
    group = {"apiVersion": f"{V2}/v1alpha1", "kind": f"{kind}Group", "metadata": metadata, "spec": spec}
    api.request("POST", path, group)
    owner = {"apiVersion": f"{V2}/v1alpha1", "kind": kind, "name": "x", "uid": component, "controller": True}
    labels = {"managed-by": "tidb-operator", "cluster": "v2", "component": component, "group": component}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-x",
            "namespace": namespace,
            "labels": {f"pingcap.com/{key}": value for key, value in labels.items()},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [objects.container("member", cpu="1m", memory="1Mi")]},
    }


class Server:
    """The running server."""

    def __init__(self, proxy: FaultProxy, child: Child, port: int) -> None:
        self._proxy = proxy
        self.child = child
        self._url = f"http://127.0.0.1:{port}/mutate?timeout=10s"
        self._http = urllib3.PoolManager(retries=False, timeout=30.0)

    def review(self, pod: Object) -> Object:
        """The answer to the CREATE of a pod, which is no dry run."""
        request = {
            "uid": "review",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "object": pod,
            "dryRun": False,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = self._http.request("POST", self._url, json=body)
        assert answer.status == 200, answer.data
        found: Object = json.loads(answer.data)
        return found

    def used(self) -> set[Right]:
        """What it has been allowed."""
        return {right_of(call) for call in self._proxy.calls if call.status not in (None, 403)}

    def refused(self) -> set[Right]:
        """What it has been refused."""
        return {right_of(call) for call in self._proxy.calls if call.status == 403}


@contextmanager
def running_server(plane: ControlPlane, directory: Path, token: str) -> Iterator[Server]:
    """A server for the length of a `with` block; it serves, but may never become ready."""
    port, health = free_port(), free_port()
    with FaultProxy(plane.url, plane.ca) as proxy:
        kubeconfig = plane.write_kubeconfig(directory / "kubeconfig", proxy.url, token)
        flags: list[Any] = [f"--kubeconfig={kubeconfig}", f"--bind=127.0.0.1:{port}", "--drain-seconds=0"]
        command = [Path(sys.executable).parent / "tidb-ha-webhook", "serve", *flags, "--log-format=text"]
        child = Child("server", [*command, f"--health-bind=127.0.0.1:{health}"], directory / "server.log")
        http = urllib3.PoolManager(retries=False, timeout=2.0)

        def lives() -> bool:
            try:
                return http.request("GET", f"http://127.0.0.1:{health}/livez").status == 200
            except urllib3.exceptions.HTTPError:
                return False

        child.start()
        try:
            child.wait_ready(lives, 60)
            yield Server(proxy, child, port)
        finally:
            child.kill()


def wait_allowed(api: Api, user: str, rights: Sequence[Right], *, but: Right | None) -> None:
    """Wait until the API server allows a user these rights, and not the other: roles take a moment to reach it."""

    def allows(right: Right) -> bool:
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        spec = {"user": user, "resourceAttributes": attributes}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(api.request("POST", path, {**review, "spec": spec})["status"]["allowed"])

    wait_until(lambda: all(allows(each) == (each != but) for each in rights), "the role to be in force", 30)
