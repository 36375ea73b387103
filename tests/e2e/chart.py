"""What the chart installs beside its processes: their rights, which pods are theirs, the floor. Rendered by Helm."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.install.helm import CHART, Helm, missing
from e2e.objects import Object
from e2e.waiting import wait_until

SWITCH = "e2e.test/webhook"
"""The label of a namespace that says which webhook its pods go to."""

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
FLOOR = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")

# A cluster without it has nowhere to send the pods; who signed is said by the tests.
_VALUES = {"floor": {"enabled": True}, "certificates": {"mode": "existingSecret", "existingSecret": {"name": "unused"}}}


def rendered(service: tuple[str, str], *kinds: str) -> list[Object]:
    """The chart's objects of some kinds, for a release whose Service has this namespace and name."""
    return [copy.deepcopy(found) for found in _rendered(*service) if found["kind"] in kinds]


@functools.cache
def _rendered(namespace: str, name: str) -> tuple[Object, ...]:
    if problem := missing():
        raise FileNotFoundError(problem)
    with TemporaryDirectory() as home:
        values = {"fullnameOverride": name, **_VALUES}
        text = Helm(4, Path(home)).run("template", name, CHART, "-n", namespace, values=values)
    return tuple(each for each in yaml.safe_load_all(text) if each and not _is_hook(each))


def _is_hook(manifest: Object) -> bool:
    return "helm.sh/hook" in (manifest["metadata"].get("annotations") or {})


def switched(manifest: Object, name: str) -> Object:
    """The same configuration or policy under another name, for the namespaces whose label `SWITCH` is that name."""
    manifest = copy.deepcopy(manifest)
    manifest["metadata"]["name"] = name
    asked = {"key": SWITCH, "operator": "In", "values": [name]}
    spec = manifest.get("spec", {})
    parts = [*manifest.get("webhooks", []), *filter(None, [spec.get("matchConstraints")])]
    for part in parts:
        part["namespaceSelector"]["matchExpressions"].append(asked)
    if "policyName" in spec:
        spec["policyName"] = name
    return manifest


def granted(plane: ControlPlane, service: tuple[str, str]) -> str:
    """A token, good for a day, of the chart's ServiceAccount with the chart's rights and no others."""
    namespace, name = service
    with Api(plane.url, plane.token, plane.files.ca) as api:
        for manifest in rendered(service, *RIGHTS):
            api.apply(manifest, manager="e2e")
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        spec = {"expirationSeconds": 24 * 3600}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        token: str = api.request("POST", path, request)["status"]["token"]
    with Api(plane.url, token, plane.files.ca) as account:
        wait_until(lambda: _may_list_nodes(account), "the chart's rights to be known to the API server", 30)
    return token


def _may_list_nodes(account: Api) -> bool:
    try:
        account.list("Node")
    except ApiError as error:
        if error.status not in (401, 403):
            raise
        return False
    return True
