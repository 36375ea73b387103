"""Pod manifests, decisions, and the scheduler's view of them, for the tests of what is patched."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch

from webhook.core import keys
from webhook.core.affinity import PatchResult, patch_for
from webhook.core.model import Decision, Family, Group, MemberClass
from webhook.core.outcomes import Cause, Outcome

Manifest = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

V1 = Group(
    namespace="prod",
    cluster="db",
    component="tikv",
    family=Family.OPERATOR_V1,
    member_class=MemberClass.REPLICATED,
    selector=(
        ("app.kubernetes.io/component", "tikv"),
        ("app.kubernetes.io/instance", "db"),
        ("app.kubernetes.io/managed-by", "tidb-operator"),
        ("app.kubernetes.io/name", "tidb-cluster"),
    ),
)
V2 = Group(
    namespace="prod",
    cluster="db",
    component="tikv",
    family=Family.OPERATOR_V2,
    member_class=MemberClass.REPLICATED,
    selector=(
        ("pingcap.com/cluster", "db"),
        ("pingcap.com/component", "tikv"),
        ("pingcap.com/managed-by", "tidb-operator"),
    ),
)


def a_pod(*, annotations: Any = None, affinity: Any = None, node_selector: Any = None, **spec: Any) -> Manifest:
    """A pod as a review holds it; parts that are None are left out."""
    metadata: Manifest = {"name": "db-tikv-0", "namespace": "prod", "labels": {"a/b": "c"}, "managedFields": []}
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "tikv", "image": "tikv:v8"}], "schedulerName": "default-scheduler", **spec},
        "status": {},
    }
    if annotations is not None:
        metadata["annotations"] = annotations
    if affinity is not None:
        pod["spec"]["affinity"] = affinity
    if node_selector is not None:
        pod["spec"]["nodeSelector"] = node_selector
    return pod


def node_terms(*terms: Any) -> Manifest:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def anti_terms(*terms: Any) -> Manifest:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def in_zone(*zones: str) -> Manifest:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}


def pinned_to(node: str) -> Manifest:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def exists(key: str = HOSTNAME) -> Manifest:
    return {"key": key, "operator": "Exists"}


def guard(group: Group = V1, key: str = HOSTNAME) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(group.selector)}}


def a_pin(node: str = "n1", **fields: Any) -> Decision:
    given = {
        "outcome": Outcome.PINNED,
        "node": node,
        "domain": node,
        "replicas": 3,
        "cap": 1,
        "hostname": f"host-{node}",
    }
    return Decision(**(given | fields))


def a_guard(cause: Cause = Cause.NO_SAFE_NODE, **fields: Any) -> Decision:
    return Decision(Outcome.GUARDED, cause, **fields)


UNTOUCHED = Decision(Outcome.UNTOUCHED, Cause.SET_OF_ONE)
WAITING = Decision(Outcome.RETURNED_WAITING, domain="n1")


def patched(pod: Manifest, decision: Decision, group: Group = V1, token: str | None = "t0k3n") -> Manifest:
    """The pod after its patch, as a strict RFC 6902 library applies it."""
    return strictly_applied(pod, patch_for(pod, group, decision, token))


def strictly_applied(pod: Manifest, result: PatchResult) -> Manifest:
    applied: Manifest = jsonpatch.JsonPatch(result.operations).apply(json.loads(json.dumps(pod)))
    assert applied == result.patched
    return applied


def annotations_of(pod: Manifest) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}


def required_node_terms(pod: Manifest) -> list[Any] | None:
    """The required terms, None where there is no required node affinity."""
    node_affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity")) or {}
    required = node_affinity.get(REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or []


def required_anti_terms(pod: Manifest) -> list[Any]:
    affinity = pod["spec"].get("affinity") or {}
    return (affinity.get("podAntiAffinity") or {}).get(REQUIRED) or []


def with_floor(pod: Manifest, group: Group = V1) -> Manifest:
    """The pod as the floor policy hands it on: the guard by hostname, where its requester left room for it."""
    pod = json.loads(json.dumps(pod))
    reapplied = group.family is Family.OPERATOR_V2
    if guard(group) in required_anti_terms(pod) or (reapplied and required_anti_terms(pod)):
        return pod
    affinity = _made(pod["spec"], "affinity", {})
    anti = _made(affinity, "podAntiAffinity", {})
    _made(anti, REQUIRED, []).append(guard(group))
    _made(pod["metadata"], "annotations", {})[keys.GUARD] = HOSTNAME
    terms = required_node_terms(pod)
    if terms is None:
        _made(affinity, "nodeAffinity", {})[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": [exists()]}]}
    elif not reapplied:
        for term in terms:
            if term and (term.get("matchExpressions") or term.get("matchFields")):
                _made(term, "matchExpressions", []).append(exists())
    return pod


def _made(parent: Manifest, key: str, empty: Any) -> Any:
    if not parent.get(key):
        parent[key] = empty
    return parent[key]


def allowed(pod: Manifest, nodes: dict[str, dict[str, str]]) -> set[str]:
    """The nodes (name to labels) that the default scheduler's NodeAffinity filter lets the pod onto."""
    terms = required_node_terms(pod)
    selector = pod["spec"].get("nodeSelector") or {}
    return {
        name
        for name, labels in nodes.items()
        if selector.items() <= labels.items() and (terms is None or any(_matches(t, name, labels) for t in terms))
    }


def _matches(term: Any, name: str, labels: dict[str, str]) -> bool:
    expressions = (term or {}).get("matchExpressions") or []
    fields = (term or {}).get("matchFields") or []
    if not expressions and not fields:
        return False
    by_field = {"metadata.name": name}
    return all(_holds(raw, labels) for raw in expressions) and all(_holds(raw, by_field) for raw in fields)


def _holds(requirement: Manifest, values: dict[str, str]) -> bool:
    value, wanted = values.get(requirement["key"]), requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            raise AssertionError(requirement)
