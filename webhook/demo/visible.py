"""Each pod decided on what was visible at its time: the product's own placement code, without its lock.

The in-flight entries are switched off, and a sibling counts only once it has a node, as it did for the
extender of the incident. Nothing here names a node: whichever draws a pod draws its siblings too.
"""

from __future__ import annotations

from dataclasses import replace

from webhook.cluster.memory import MemoryCluster
from webhook.cluster.quantities import requests_of
from webhook.cluster.store import GroupStore
from webhook.core.manifests import pod_from
from webhook.core.model import Decision, Placing
from webhook.core.placement import decide
from webhook.deadline import Deadline
from webhook.demo.incident import Decided, Incident
from webhook.demo.world import group_of, objects_of, pods_by_name
from webhook.locking.attempt import snapshot_of

# Seconds; nothing waits in here.
_BUDGET = 10.0


def decide_on_what_is_visible(incident: Incident) -> dict[str, Decision]:
    """The decision for each pod by its name, in the order of the log."""
    cluster = MemoryCluster(objects_of(incident))
    decisions: dict[str, Decision] = {}
    for decided in incident.decisions:
        _bind(cluster, incident, decided, decisions)
        decisions[decided.pod] = _decide(cluster, incident, decided)
    return decisions


def _bind(cluster: MemoryCluster, incident: Incident, decided: Decided, decisions: dict[str, Decision]) -> None:
    """Give the first of the pod's siblings their nodes: as many as the log says it had in view."""
    pods = pods_by_name(incident)
    for sibling in incident.components[decided.component][: decided.siblings]:
        pod = pods[sibling]
        bound = {**pod, "spec": {**pod["spec"], "nodeName": decisions[sibling].node}, "status": {"phase": "Running"}}
        cluster.admit(bound, namespace=incident.namespace)


def _decide(cluster: MemoryCluster, incident: Incident, decided: Decided) -> Decision:
    pod = pods_by_name(incident)[decided.pod]
    group, placing = group_of(pod), Placing(pod_from(pod), requests_of(pod))
    cluster.ensure_claims(pod, dict(group.selector), namespace=incident.namespace)
    store, deadline = GroupStore(cluster), Deadline.after(_BUDGET)
    listing = store.list_claims(group, deadline)
    state = store.read_group(group, listing.claims, (placing,), deadline)
    seen = replace(state, pods=tuple(pod for pod in state.pods if pod.node_name))
    return decide(snapshot_of(group, listing, seen, live=()), placing)
