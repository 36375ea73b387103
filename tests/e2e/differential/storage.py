"""Random storage: classes, volumes that exist, what drivers can still make, how many a node takes, and claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from e2e.differential.constraints import NAMESPACES, node_selector
from e2e.objects import HOSTNAME, ZONE, Object

DRIVER, COUNTED = "made.example", "counted.example"
"""CSI drivers; the second publishes how much it can still make where."""

STORAGE = "storage.k8s.io/v1"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
KEPT = "e2e.test/kept"
"""The finalizer of claims that are being deleted as soon as they are there."""

_KINDS = (
    *("local", "made", "bound", "csi") * 8,
    *("selected", "counted") * 4,
    # The webhook waits for these, a second or two: they may be what they should be in a moment.
    *("immediate", "missing", "ending"),
)


@dataclass(frozen=True)
class Shelf:
    """Storage by itself, and one pool of claims for each probe."""

    objects: list[Object] = field(default_factory=list)
    claims: list[list[str]] = field(default_factory=list)


class _Maker:
    def __init__(self, random: Random, tag: str, nodes: Sequence[str]) -> None:
        self.random = random
        self.tag = tag
        self.nodes = nodes
        self.shelf = Shelf()
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{self.tag}-{kind}{self.count}"

    def add(self, api_version: str, kind: str, name: str, namespace: str = "", **fields: object) -> Object:
        metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
        found: Object = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        self.shelf.objects.append(found)
        return found


def shelf_of(random: Random, tag: str, nodes: Sequence[str], probes: int) -> Shelf:
    """Storage of a world; `tag` makes its names its own."""
    maker = _Maker(random, tag, nodes)
    classes = _classes(maker)
    _capacities(maker, classes["counted"])
    for name in nodes:
        if random.random() < 0.6:
            driver = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
            count = {"allocatable": {"count": random.randint(0, 3)}}
            maker.add(STORAGE, "CSINode", name, spec={"drivers": [{**driver, **count}]})
    for _ in range(random.randint(0, 6)):
        storage_class = random.choice([classes["local"], classes["local"], classes["made"]])
        volume = _volume(maker, maker.name("pv"), storage_class)
        if random.random() < 0.15:
            # One that is kept for a claim of ours would be bound at once if it fitted.
            volume["spec"]["claimRef"] = {"namespace": NAMESPACES[0], "name": random.choice([f"{tag}-p0-0", "other"])}
            volume["spec"]["capacity"] = {"storage": "1Gi"}
    for probe in range(probes):
        names = [f"{tag}-p{probe}-{number}" for number in range(random.randint(1, 3))]
        for name in names:
            _claim(maker, name, random.choice(_KINDS), classes)
        maker.shelf.claims.append(names)
    return maker.shelf


def _classes(maker: _Maker) -> dict[str, str]:
    found = {}
    for kind, provisioner, binding in (
        ("local", NO_PROVISIONER, "WaitForFirstConsumer"),
        ("made", DRIVER, "WaitForFirstConsumer"),
        ("counted", COUNTED, "WaitForFirstConsumer"),
        ("immediate", DRIVER, "Immediate"),
    ):
        topologies: Object = {}
        if provisioner != NO_PROVISIONER and maker.random.random() < 0.5:
            values = ["z0", "z1", *maker.nodes[:2]]
            term = {"key": maker.random.choice([ZONE, HOSTNAME]), "values": values}
            topologies = {"allowedTopologies": [{"matchLabelExpressions": [term]}]}
        found[kind] = maker.name(kind)
        maker.add(
            STORAGE, "StorageClass", found[kind], provisioner=provisioner, volumeBindingMode=binding, **topologies
        )
    return found


def _capacities(maker: _Maker, storage_class: str) -> None:
    random = maker.random
    for _ in range(random.randint(0, 4)):
        topology = random.choice([{"matchLabels": {ZONE: "z0"}}, {"matchLabels": {HOSTNAME: maker.nodes[0]}}, {}])
        amounts: Object = {"capacity": random.choice(["5Gi", "20Gi"])}
        if random.random() < 0.3:
            amounts["maximumVolumeSize"] = random.choice(["1Gi", "10Gi"])
        fields = {"storageClassName": storage_class, "nodeTopology": topology, **amounts}
        maker.add(STORAGE, "CSIStorageCapacity", maker.name("cap"), NAMESPACES[0], **fields)


def _volume(maker: _Maker, name: str, storage_class: str, *, kept_for: str = "", driver: str = "") -> Object:
    random = maker.random
    modes = [["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOncePod"], ["ReadWriteOnce"]]
    spec: Object = {
        "capacity": {"storage": random.choice(["5Gi", "10Gi", "20Gi"])},
        "accessModes": random.choice(modes),
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": storage_class,
    }
    spec |= {"csi": {"driver": driver, "volumeHandle": name}} if driver else {"hostPath": {"path": "/x"}}
    if random.random() < 0.1 and storage_class:
        spec["volumeMode"] = "Block"
    if random.random() < 0.8:
        # The API server refuses a volume that is for nodes by their fields.
        spec["nodeAffinity"] = {"required": node_selector(random, maker.nodes, fields=0)}
        for term in spec["nodeAffinity"]["required"]["nodeSelectorTerms"]:
            term.setdefault("matchExpressions", [{"key": HOSTNAME, "operator": "Exists"}])
    if kept_for:
        spec["claimRef"] = {"namespace": NAMESPACES[0], "name": kept_for}
    found = maker.add("v1", "PersistentVolume", name, spec=spec)
    zone = {ZONE: random.choice(["z0", "z1__z2"])} if random.random() < 0.25 else {}
    found["metadata"]["labels"] = zone | ({"disk": "nvme"} if random.random() < 0.4 else {})
    return found


def _claim(maker: _Maker, name: str, kind: str, classes: dict[str, str]) -> None:
    random = maker.random
    if kind == "missing" and random.random() < 0.5:
        return
    spec: Object = {
        "accessModes": [random.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])],
        "resources": {"requests": {"storage": random.choice(["5Gi", "10Gi"])}},
        "storageClassName": classes.get({"selected": "made", "missing": "local", "ending": "made"}.get(kind, kind), ""),
    }
    if kind == "local" and random.random() < 0.3:
        spec["selector"] = {"matchLabels": {"disk": "nvme"}}
    if kind in ("bound", "csi"):
        volume = _volume(maker, maker.name("bound"), "", kept_for=name, driver=DRIVER if kind == "csi" else "")
        volume["spec"] |= {"capacity": {"storage": "20Gi"}, "accessModes": spec["accessModes"]}
        spec["volumeName"] = volume["metadata"]["name"]
    found = maker.add("v1", "PersistentVolumeClaim", name, NAMESPACES[0], spec=spec)
    if kind == "ending":
        found["metadata"]["finalizers"] = [KEPT]
    if kind == "selected":
        found["metadata"]["annotations"] = {SELECTED_NODE: random.choice(maker.nodes)}
