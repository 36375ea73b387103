"""AdmissionReviews as an API server sends them when a pod is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.core.review import API_VERSION, KIND
from webhook.core.shapes import inside, text

# Who creates the pods of a StatefulSet.
CREATOR: Final = "system:serviceaccount:kube-system:statefulset-controller"


def review_of(pod: Mapping[str, Any], *, namespace: str, uid: str, dry_run: bool = False) -> dict[str, Any]:
    """The review of the pod's CREATE in a namespace; `uid` is the request's, which its answer repeats."""
    request: dict[str, Any] = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": CREATOR, "groups": ["system:serviceaccounts", "system:authenticated"]},
        "object": pod,
        "oldObject": None,
        "dryRun": dry_run,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    # Absent where the name is made after admission, from generateName.
    if name := text(inside(pod, "metadata", "name")):
        request["name"] = name
    return {"apiVersion": API_VERSION, "kind": KIND, "request": request}
