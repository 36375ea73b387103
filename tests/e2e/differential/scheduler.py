"""What the real scheduler makes of a pod, and its reasons as it counts them."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from e2e.api import Api
from e2e.differential.constraints import NAMESPACES
from e2e.differential.provisioner import provision
from e2e.differential.stage import BY, PATIENCE
from e2e.objects import Object
from e2e.waiting import wait_until

ROOM_IS_MADE: Final = 5.0
"""Seconds after which a pod that preempts others should be bound."""

_FOR_THE_MOMENT: Final = ("waiting for ephemeral volume controller", "running PreBind plugin")


@dataclass(frozen=True)
class Verdict:
    """Where the scheduler has put a pod, or makes room for it; else why it has not. `created`: the pod as stored."""

    created: Object
    node: str = ""
    message: str = ""


def verdict_on(api: Api, pod: Object, *, provisioning: bool) -> Verdict:
    """Create the pod, wait for what the scheduler makes of it, and delete it again.

    `provisioning`: volumes are made meanwhile where the scheduler wants them.
    """
    name, namespace = pod["metadata"]["name"], NAMESPACES[0]
    created = api.create(pod)
    began = time.monotonic()

    def verdict() -> Verdict | None:
        if provisioning and pod["spec"].get("volumes"):
            provision(api)
        found = api.find("Pod", name, namespace)
        if found is None:
            # What plays the kubelet deletes by name: it has taken this pod for the last one that was on a node.
            api.create(_again(created))
        elif found["status"].get("nominatedNodeName") and time.monotonic() - began > ROOM_IS_MADE:
            # For terms with a namespaceSelector the scheduler does not see that its victim is gone (for 5 minutes).
            api.delete("Pod", name, namespace, gracePeriodSeconds=0, missing_ok=True)
        return found and _verdict(created, found)

    try:
        return wait_until(verdict, f"the scheduler to look at {name}", PATIENCE, longest=0.01)
    finally:
        api.delete("Pod", name, namespace, gracePeriodSeconds=0, missing_ok=True)
        api.wait_for("Pod", lambda found: not found, namespace, fields=f"metadata.name={name}")


def _again(stored: Object) -> Object:
    """The pod as it was decided, for the scheduler alone."""
    metadata = stored["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "annotations", "ownerReferences") if key in metadata}
    labels = {key: value for key, value in metadata["labels"].items() if key != BY}
    # Of the labels that these name the API server has made requirements already, and refuses it a second time.
    spread = [
        {key: value for key, value in each.items() if key != "matchLabelKeys"}
        for each in stored["spec"].get("topologySpreadConstraints", ())
    ]
    spec = {**stored["spec"], "topologySpreadConstraints": spread}
    return {**stored, "metadata": {**kept, "labels": labels}, "spec": spec, "status": {}}


def _verdict(created: Object, pod: Object) -> Verdict | None:
    if node := pod["spec"].get("nodeName"):
        return Verdict(created, node)
    for condition in pod["status"].get("conditions", ()):
        message = condition.get("message", "")
        says_no = (condition["type"], condition["status"]) == ("PodScheduled", "False")
        # With the very answer that says that it preempts others; then the pod is bound in a moment.
        if says_no and not pod["status"].get("nominatedNodeName") and not any(p in message for p in _FOR_THE_MOMENT):
            return Verdict(created, message=message)
    return None


def reasons_in(message: str) -> Counter[str]:
    """How many nodes each reason is given for; 1 for one that is the pod's, and so given for all."""
    told = message.partition("nodes are available: ")[2].split(" no new claims to deallocate")[0]
    told = told.split(" preemption:")[0].strip()
    if not re.match(r"\d+ ", told):
        return Counter({told.partition(". ")[0].rstrip("."): 1})
    counted: Counter[str] = Counter()
    for part in re.split(r", (?=\d+ )", told):
        number, _, reason = part.partition(" ")
        counted[reason.rstrip(".")] += int(number)
    return counted
