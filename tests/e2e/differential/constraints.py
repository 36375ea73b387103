"""Random parts of a pod: what it asks for, tolerates, and wants of nodes and of other pods."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from e2e.objects import HOSTNAME, ZONE, Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU = "vendor.example/gpu"
NAMESPACES = ("apps", "more")
"""Where pods are: their labels differ (`team`)."""

TAINTS: list[Object] = [
    {"key": key, "value": value, "effect": effect}
    for key in ("k1", "k2")
    for value in ("", "v")
    for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")
]
_LABEL_VALUES = {ZONE: ["z0", "z1", "z2"], "disk": ["ssd", "hdd"], "cores": ["2", "4", "8"], "absent": ["x"]}


def labels(random: Random) -> dict[str, str]:
    """The labels that selectors are made for."""
    found = {"app": random.choice(["web", "db"])}
    if random.random() < 0.5:
        found["tier"] = random.choice(["web", "front"])
    if random.random() < 0.3:
        found["rev"] = "1"
    return found


def requirement(random: Random, nodes: Sequence[str]) -> Object:
    """A requirement on a node's labels."""
    key = random.choice([HOSTNAME, ZONE, "disk", "cores", "absent"])
    operator = random.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        number = str(random.choice([2, 4, 8]))
        return {"key": key if random.random() < 0.3 else "cores", "operator": operator, "values": [number]}
    values = _LABEL_VALUES.get(key) or list(nodes)
    return {"key": key, "operator": operator, "values": random.sample(values, random.randint(1, min(2, len(values))))}


def node_selector(random: Random, nodes: Sequence[str], fields: float = 0.2) -> Object:
    """A NodeSelector of one or two terms; `fields`: how often one is by the node's name too."""
    terms = []
    for _ in range(random.randint(1, 2)):
        term: Object = {}
        if random.random() < 0.85:
            term["matchExpressions"] = [requirement(random, nodes) for _ in range(random.randint(1, 2))]
        if random.random() < fields:
            names = {"key": "metadata.name", "operator": random.choice(["In", "NotIn"])}
            term["matchFields"] = [{**names, "values": [random.choice(nodes)]}]
        terms.append(term)
    return {"nodeSelectorTerms": terms}


def label_selector(random: Random) -> Object:
    """A LabelSelector, which may be empty."""
    found: Object = {}
    if random.random() < 0.7:
        found["matchLabels"] = {"app": random.choice(["web", "db"])}
    if random.random() < 0.4:
        operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        expression: Object = {"key": random.choice(["app", "tier"]), "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = random.sample(["web", "db", "front"], random.randint(1, 2))
        found["matchExpressions"] = [expression]
    return found


def affinity_term(random: Random) -> Object:
    """A required term of podAffinity or podAntiAffinity."""
    selector = label_selector(random)
    found: Object = {"topologyKey": random.choice([HOSTNAME, ZONE, ZONE, "disk"]), "labelSelector": selector}
    if random.random() < 0.3:
        found["namespaces"] = random.sample(NAMESPACES, random.randint(1, 2))
    if random.random() < 0.3:
        found["namespaceSelector"] = random.choice([{}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "b"}}])
    if random.random() < 0.2 and not _names(selector, "tier"):
        found["matchLabelKeys"] = ["tier"]
    if random.random() < 0.1:
        found["mismatchLabelKeys"] = ["rev"]
    return found


def spread_constraints(random: Random) -> list[Object]:
    """Topology spread constraints, most of them hard; no two alike, which the API server would refuse."""
    found: dict[tuple[str, str], Object] = {}
    for _ in range(random.randint(1, 2)):
        one = _spread_constraint(random)
        found.setdefault((one["topologyKey"], one["whenUnsatisfiable"]), one)
    return list(found.values())


def tolerations(random: Random) -> list[Object]:
    """Up to three tolerations."""
    found = []
    for _ in range(random.randint(0, 3)):
        toleration: Object = {}
        if random.random() < 0.8:
            toleration["key"] = random.choice(["k1", "k2", "node.kubernetes.io/unschedulable"])
        toleration["operator"] = "Exists" if "key" not in toleration or random.random() < 0.6 else "Equal"
        if toleration["operator"] == "Equal":
            toleration["value"] = random.choice(["", "v"])
        if random.random() < 0.5:
            toleration["effect"] = random.choice(["NoSchedule", "NoExecute"])
        found.append(toleration)
    return found


def containers(random: Random, *, ports: float, cpu: Sequence[str]) -> Object:
    """The containers of a pod, and all that says how much it asks for. `ports`: how often one has a host port."""
    found: Object = {"containers": [_container(random, "c0", ports, cpu)]}
    if random.random() < 0.4:
        found["containers"].append(_container(random, "c1", 0, cpu))
    if random.random() < 0.3:
        found["initContainers"] = [_init_container(random, f"i{i}", cpu) for i in range(random.randint(1, 2))]
    if random.random() < 0.1:
        _ask_as_a_whole(found)
    if random.random() < 0.1:
        found["hostNetwork"] = True
        _name_host_ports(found)
    return found


def _ask_as_a_whole(spec: Object) -> None:
    """Requests of the pod itself; they must not be less than those of its containers."""
    spec["resources"] = {"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container["resources"] = {}


def _names(selector: Object, key: str) -> bool:
    return any(expression["key"] == key for expression in selector.get("matchExpressions", ()))


def _spread_constraint(random: Random) -> Object:
    found: Object = {
        "topologyKey": random.choice([HOSTNAME, ZONE, "disk"]),
        "maxSkew": random.choice([1, 1, 2]),
        "whenUnsatisfiable": random.choice(["DoNotSchedule"] * 3 + ["ScheduleAnyway"]),
        "labelSelector": label_selector(random),
    }
    if random.random() < 0.3 and found["whenUnsatisfiable"] == "DoNotSchedule":
        found["minDomains"] = random.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if random.random() < 0.3:
            found[policy] = random.choice(["Honor", "Ignore"])
    if random.random() < 0.2 and not _names(found["labelSelector"], "tier"):
        found["matchLabelKeys"] = ["tier"]
    return found


def _container(random: Random, name: str, ports: float, cpu: Sequence[str]) -> Object:
    asked = {}
    if random.random() < 0.8:
        asked["cpu"] = random.choice(cpu)
    if random.random() < 0.5:
        asked["memory"] = random.choice(["128Mi", "1Gi", "3Gi"])
    if random.random() < 0.1:
        asked["ephemeral-storage"] = random.choice(["1Gi", "6Gi"])
    if random.random() < 0.15:
        asked[GPU] = "1"
    limits = {key: value for key, value in asked.items() if key == GPU}
    if random.random() < 0.1:
        # A limit without a request is one.
        limits["cpu"] = asked.pop("cpu", "200m")
    return {
        "name": name,
        "image": "example.invalid/x",
        "resources": {"requests": asked, "limits": limits},
        "ports": _ports(random, ports),
    }


def _init_container(random: Random, name: str, cpu: Sequence[str]) -> Object:
    found = _container(random, name, 0, cpu)
    return {**found, "restartPolicy": "Always"} if random.random() < 0.5 else found


def _ports(random: Random, chance: float) -> list[Object]:
    if random.random() > chance:
        return []
    protocol = random.choice(["TCP", "TCP", "UDP"])
    port: Object = {"containerPort": 80, "hostPort": random.choice([8001, 8002]), "protocol": protocol}
    if random.random() < 0.4:
        port["hostIP"] = random.choice(["0.0.0.0", "10.0.0.1", "10.0.0.2"])
    return [port]


def _name_host_ports(spec: Object) -> None:
    """In the node's network a container's port is the node's."""
    for container in spec["containers"]:
        for port in container["ports"]:
            port["containerPort"] = port["hostPort"]
