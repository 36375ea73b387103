"""`python -m certs try`: whether the API server calls the webhook for a member's pod, and gets an answer it trusts.

The pod is created as a dry run: nothing is stored, and the webhook writes nothing. Its StatefulSet does not
exist, so that the answer is the guard; what is shown is the way there and back.
"""

from __future__ import annotations

import json
from typing import Any, Final

from certs.calls import Caller

DECISION: Final = "tidb-ha-webhook.io/decision"
_NAME: Final = "tidb-ha-webhook-trial"


def try_out(caller: Caller, namespace: str) -> tuple[str, bool]:
    """What came back, in words, and whether the webhook has looked at the pod. Raises `ClusterError`."""
    pod = caller.call("create pod", "POST", f"/api/v1/namespaces/{namespace}/pods", trial_pod(), dryRun="All")
    annotations = pod["metadata"].get("annotations") or {}
    decision = annotations.get(DECISION)
    if decision is None:
        guard = (
            "the floor has kept it apart" if "tidb-ha-webhook.io/guard" in annotations else "nobody has looked at it"
        )
        return f"a member's pod came back without a decision: {guard}", False
    try:
        outcome = json.loads(decision).get("outcome")
    except (ValueError, AttributeError):
        outcome = None
    return f"a member's pod came back with a decision of the webhook ({outcome or 'unreadable'})", True


def trial_pod() -> dict[str, Any]:
    """A pod as tidb-operator makes it, of a set that does not exist. Fits Pod Security "restricted"."""
    labels = {"name": "tidb-cluster", "managed-by": "tidb-operator", "component": "tikv", "instance": _NAME}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": _NAME,
        "uid": "00000000-0000-0000-0000-000000000000",
        "controller": True,
    }
    container = {
        "name": "tikv",
        "image": "example.invalid/tikv",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{_NAME}-0",
            "labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }
