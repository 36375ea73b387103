"""`python -m certs try`: create a member's pod by way of the API server; it must come back pinned to a node.

The pod is a dry run: it is not stored, and the webhook writes nothing. But it needs a set that it belongs to, and a
claim that the lock could be on. Those two are made for the moment. No pod of the set can exist: it asks for a
ServiceAccount that is not there, so that the API server refuses each before anybody else is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from certs.calls import Caller
from certs.cluster import ClusterError

DECISION: Final = "tidb-ha-webhook.io/decision"
NAME: Final = "tidb-ha-webhook-trial"
"""Of the set, of the claim, and the beginning of the pod's."""

_NO_SET: Final = "00000000-0000-0000-0000-000000000000"
# An earlier trial's objects may be on their way out: so often, with so many seconds between, they are waited for.
_TRIES: Final = 20
_PAUSE: Final = 0.5
_LABELS: Final = {
    f"app.kubernetes.io/{key}": value
    for key, value in (
        ("name", "tidb-cluster"),
        ("managed-by", "tidb-operator"),
        ("component", "tikv"),
        ("instance", NAME),
    )
}


def try_out(caller: Caller, namespace: str, pause: Callable[[float], None]) -> tuple[str, bool]:
    """What came back, in words, and whether it was pinned; `pause` waits seconds. Raises `ClusterError`."""
    core, sets = f"/api/v1/namespaces/{namespace}", f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    claims = f"{core}/persistentvolumeclaims"
    _remove(caller, sets, claims)
    try:
        uid = _create(caller, "create statefulset", sets, _set(), pause)["metadata"]["uid"]
        _create(caller, "create persistentvolumeclaim", claims, _claim(uid), pause)
        pod = caller.call("create pod", "POST", f"{core}/pods", trial_pod(uid), dryRun="All")
    finally:
        _remove(caller, sets, claims)
    return _judged(pod)


def _judged(pod: dict[str, Any]) -> tuple[str, bool]:
    annotations = pod["metadata"].get("annotations") or {}
    decision = annotations.get(DECISION)
    if decision is None:
        floor = "tidb-ha-webhook.io/guard" in annotations
        what = "the floor has kept it apart" if floor else "nobody has looked at it"
        return f"a member's pod came back without a decision: {what}", False
    try:
        record = json.loads(decision)
        outcome, node = str(record.get("outcome")), str(record.get("node", ""))
    except (ValueError, AttributeError):
        return "a member's pod came back with a decision that cannot be read", False
    if outcome == "pinned" and node in _nodes_of(pod):
        return f"a member's pod came back pinned to node {node}", True
    reasons = [str(record.get("cause", "")), *map(str, record.get("reasons") or ())]
    return f"a member's pod came back {outcome}, without a pin: {'; '.join(filter(None, reasons))}", False


def _nodes_of(pod: dict[str, Any]) -> set[str]:
    """The nodes to which required node affinity pins a pod by name."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    return {name for term in terms for field in term.get("matchFields") or () for name in field.get("values") or ()}


def _create(
    caller: Caller, what: str, path: str, manifest: dict[str, Any], pause: Callable[[float], None]
) -> dict[str, Any]:
    for _ in range(_TRIES):
        try:
            return caller.call(what, "POST", path, manifest)
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            last = error
        pause(_PAUSE)
    raise last


def _remove(caller: Caller, *paths: str) -> None:
    for path in paths:
        try:
            caller.call(f"delete {path.rpartition('/')[2]}", "DELETE", f"{path}/{NAME}")
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise


def trial_pod(uid: str = _NO_SET) -> dict[str, Any]:
    """A pod as tidb-operator makes it, of the set of that uid. Fits Pod Security "restricted"."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{NAME}-0", "labels": _LABELS, "ownerReferences": [owner]},
        # Whatever the nodes are tainted with: the way is tried, not they.
        "spec": {**_pod_spec(), "tolerations": [{"operator": "Exists"}], "automountServiceAccountToken": False},
    }


def _set() -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": NAME}
    template = {"metadata": {"labels": labels}, "spec": {**_pod_spec(), "serviceAccountName": f"{NAME}-not-there"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "labels": _LABELS},
        "spec": {"replicas": 3, "serviceName": NAME, "selector": {"matchLabels": labels}, "template": template},
    }


def _claim(uid: str) -> dict[str, Any]:
    """A claim that nobody makes a volume for; it goes with its set."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": NAME, "labels": _LABELS, "ownerReferences": [owner]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Mi"}},
            # None has them: a volume without a class must not be bound for a moment's sake.
            "selector": {"matchLabels": {"tidb-ha-webhook.io/trial": "true"}},
        },
    }


def _pod_spec() -> dict[str, Any]:
    container = {
        "name": "tikv",
        "image": "example.invalid/tikv",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
