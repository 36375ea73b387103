"""Record what a real API server sends to a mutating webhook: `make record` renews the files of tests/reviews.

Each file is both shape and result: what the API server has put into it (defaults, service account, managed fields) is
taken off, the rest is sent as the file's user sends it, and what then arrives at the webhook is written back. Nothing
else runs beside the API server by then, so that nobody touches the pods in between.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from e2e import objects
from e2e.api import MERGE_PATCH, Api, path_of
from e2e.control_plane import ControlPlane, missing_binaries
from e2e.objects import Object
from e2e.recorder import BESIDE, RECORDED, SERVICE, SYSTEM, Recorder
from e2e.waiting import wait_until

FOLDER = Path(__file__).parent.parent / "reviews"
SPACE = "shop"
PREFIX = "tidb-ha-webhook.io/"
INJECTED = "sidecar.example.com/injected"

POD_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
CONTAINER_DEFAULTS = ("terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy")
METADATA_OF_SERVER = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "deletionTimestamp")
TOKEN_VOLUME = "kube-api-access-"


def as_sent(found: Object) -> Object:
    """The pod as its creator sends it: without what an API server adds."""
    pod: Object = json.loads(json.dumps(found))
    pod.pop("status", None)
    for key in METADATA_OF_SERVER:
        pod["metadata"].pop(key, None)
    spec = pod["spec"]
    for key, value in POD_DEFAULTS.items():
        if spec.get(key) == value:
            del spec[key]
    spec["tolerations"] = [each for each in spec.get("tolerations", []) if each.get("tolerationSeconds") != 300]
    spec["volumes"] = [each for each in spec.get("volumes", []) if not each["name"].startswith(TOKEN_VOLUME)]
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        for key in CONTAINER_DEFAULTS:
            container.pop(key, None)
        mounts = container.get("volumeMounts", [])
        container["volumeMounts"] = [each for each in mounts if not each["name"].startswith(TOKEN_VOLUME)]
    return pod


class Session:
    """Sends the shapes to one API server."""

    def __init__(self, plane: ControlPlane, api: Api, recorder: Recorder) -> None:
        self.plane, self.api, self.recorder = plane, api, recorder

    def record(self, name: str) -> bytes:
        """The review that the file's shape gives."""
        request: Object = json.loads((FOLDER / f"{name}.json").read_bytes())["request"]
        ways = {"UPDATE": self.update, "DELETE": self.delete}
        way = ways.get(request["operation"], self.create)
        if request.get("subResource"):
            way = self.create_of_a_pod
        elif name.startswith("v2-"):
            way = self.apply
        elif name.startswith("reinvocation"):
            way = self.create_beside_another
        self.recorder.bodies.clear()
        with self.user(request) as user:
            way(user, request)
        self.api.delete_all("Pod", SPACE, gracePeriodSeconds=0)
        wait_until(lambda: not self.api.list("Pod", SPACE), "the pods to be gone", 10)
        expected = 2 if name.startswith("reinvocation") else 1
        found = self.recorder.found(request)
        if len(found) != expected:
            raise SystemExit(f"{name}: {len(found)} reviews arrived instead of {expected}")
        return found[-1]

    def user(self, request: Object) -> Api:
        """A client of the review's user; the groups of service accounts, and of everybody, come by themselves."""
        info = request["userInfo"]
        headers = {"Impersonate-User": info["username"]}
        if info["username"].startswith("system:serviceaccount:kube-system:"):
            # The managed fields name a caller that says nothing else by this.
            headers["User-Agent"] = "kube-controller-manager"
        own = [g for g in info["groups"] if g != "system:authenticated" and not g.startswith("system:serviceaccounts")]
        if own:
            (headers["Impersonate-Group"],) = own
        if "uid" in info:
            headers["Impersonate-Uid"] = info["uid"]
        return Api(self.plane.url, self.plane.token, self.plane.files.ca, headers=headers)

    def create(self, user: Api, request: Object) -> None:
        """POST; with generateName for a pod without a name."""
        user.request("POST", path_of("Pod", SPACE), as_sent(request["object"]), query=options(request))

    def apply(self, user: Api, request: Object) -> None:
        """Server-side apply."""
        user.apply(as_sent(request["object"]), manager=request["options"]["fieldManager"])

    def create_of_a_pod(self, user: Api, request: Object) -> None:
        """POST to a subresource of a pod, which is that of v1-tikv."""
        self.api.create(as_sent(json.loads((FOLDER / "v1-tikv.json").read_bytes())["request"]["object"]))
        body = json.loads(json.dumps(request["object"]))
        body["metadata"] = {key: body["metadata"][key] for key in ("name", "namespace")}
        target = f"{path_of('Pod', SPACE, request['name'])}/{request['subResource']}"
        user.request("POST", target, body, query=options(request))

    def update(self, user: Api, request: Object) -> None:
        """The labels of the old object become those of the new one."""
        self.api.create(as_sent(request["oldObject"]))
        patch = {"metadata": {"labels": request["object"]["metadata"]["labels"]}}
        target, manager = path_of("Pod", SPACE, request["name"]), request["options"]["fieldManager"]
        user.request("PATCH", target, patch, query={"fieldManager": manager}, content_type=MERGE_PATCH)

    def delete(self, user: Api, request: Object) -> None:
        """DELETE with its options."""
        self.api.create(as_sent(request["oldObject"]))
        wanted = {key: value for key, value in request["options"].items() if key not in ("kind", "apiVersion")}
        user.delete("Pod", request["name"], SPACE, **wanted)

    def create_beside_another(self, user: Api, request: Object) -> None:
        """POST of a pod that we pin at the first call, and that another webhook changes between that and the second."""
        pod = as_sent(request["object"])
        after = pod["metadata"]["annotations"]
        ours = {key: value for key, value in after.items() if key != INJECTED}
        pod["metadata"]["annotations"] = {key: value for key, value in ours.items() if not key.startswith(PREFIX)}
        sidecar = pod["spec"]["containers"].pop()
        affinity = pod["spec"].pop("affinity", None)
        pin = add("/spec/affinity", affinity or pin_of_the_other_file())
        self.recorder.patches[RECORDED] = [[pin, add("/metadata/annotations", ours)]]
        changes = [add("/spec/containers/-", sidecar), add("/metadata/annotations", after)]
        if affinity is None:
            changes.append({"op": "remove", "path": pin["path"]})
        self.recorder.patches[BESIDE] = [changes]
        user.request("POST", path_of("Pod", SPACE), pod, query=options(request))


def pin_of_the_other_file() -> Object:
    """The pin that was there before it was taken off."""
    pod = json.loads((FOLDER / "reinvocation.json").read_bytes())["request"]["object"]
    affinity: Object = pod["spec"]["affinity"]
    return affinity


def add(path: str, value: Any) -> Object:
    """One operation of a JSON patch."""
    return {"op": "add", "path": path, "value": value}


def options(request: Object) -> dict[str, str]:
    """The call's options as its query."""
    found = {key: request["options"].get(key, "") for key in ("fieldManager", "fieldValidation")}
    dry_run = {"dryRun": "All"} if request["dryRun"] else {}
    return {key: value for key, value in found.items() if value} | dry_run


def prepare(api: Api, plane: ControlPlane, port: int) -> None:
    """The namespaces, every right for everybody, and the two webhooks, the recorded one first."""
    for name in (SYSTEM, SPACE):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
    everybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    api.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "everybody"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [everybody],
        }
    )
    api.create(objects.external_name_service(SYSTEM, SERVICE))
    pods: Object = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"]}
    pods["resources"] = ["pods", "pods/binding", "pods/eviction"]
    fields: Object = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}, "rules": [pods]}
    for name, path, again in (("a-recorded", RECORDED, "IfNeeded"), ("b-beside", BESIDE, "Never")):
        api.create(
            objects.webhook_configuration(
                name,
                service=(SYSTEM, SERVICE),
                port=port,
                ca_bundle=plane.ca.cert_pem.bytes(),
                path=path,
                failure_policy="Fail",
                reinvocationPolicy=again,
                **fields,
            )
        )


def wait_until_called(api: Api, recorder: Recorder) -> None:
    """Wait until the API server knows both webhooks."""
    pod = objects.filler_pod(SPACE, "nowhere", cpu="1", memory="1Gi")

    def called() -> bool:
        api.create(pod, dryRun="All")
        return bool(recorder.bodies[RECORDED] and recorder.bodies[BESIDE])

    wait_until(called, "the webhooks to be called", 30)


def written(body: bytes) -> bytes:
    """What goes into the file: readable, a long one as it came."""
    readable = json.dumps(json.loads(body), indent=1, ensure_ascii=False) + "\n"
    return readable.encode() if len(body) < 100_000 else body


def main(names: Sequence[str]) -> None:
    """Record the named files, all by default; nothing is written unless all succeed."""
    if problem := missing_binaries():
        raise SystemExit(problem)
    recorder, recorded = Recorder(), {}
    with (
        ControlPlane() as plane,
        Api(plane.url, plane.token, plane.files.ca) as api,
        recorder.serving(plane) as port,
    ):
        prepare(api, plane, port)
        for child in (plane.controller_manager, plane.scheduler, plane.kwok):
            child.kill()
        wait_until_called(api, recorder)
        session = Session(plane, api, recorder)
        for name in names or sorted(path.stem for path in FOLDER.glob("*.json")):
            recorded[name] = session.record(name)
            print(f"{name}: {len(recorded[name])} bytes")
    for name, body in recorded.items():
        (FOLDER / f"{name}.json").write_bytes(written(body))


if __name__ == "__main__":
    main(sys.argv[1:])
