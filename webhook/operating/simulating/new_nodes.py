"""The nodes that a simulation adds, with their disks: like one of those that members run on now."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from webhook.cluster.door import NODES, PERSISTENT_VOLUMES, Manifest
from webhook.core import keys
from webhook.core.audited import ZONE
from webhook.core.shapes import inside, items, mapping, text
from webhook.errors import SettingsError
from webhook.operating.simulating.steps import AddNodes
from webhook.operating.simulating.volumes import TIMEOUT
from webhook.operating.simulating.world import World

_OF_ONE_HOST: Final = re.compile(r"node\.kubernetes\.io/.*")


def add_nodes(world: World, step: AddNodes) -> str:
    """Add the nodes of a step, and say which one they are like. Raises SettingsError where there is none."""
    nodes = world.reader.list(NODES).items
    if not nodes:
        raise SettingsError("add-nodes: there is no node that new ones could be like")
    alike = [node for node in nodes if not step.zone or inside(node, "metadata", "labels", ZONE) == step.zone]
    pattern = _pattern(world, alike or nodes)
    taken = {node["metadata"]["name"] for node in nodes}
    free = (name for number in range(1, len(taken) + step.count + 1) if (name := f"new-{number}") not in taken)
    for name, _ in zip(free, range(step.count), strict=False):
        world.cluster.create(NODES, _node_like(pattern, name, step.zone), timeout=TIMEOUT)
        for volume in _volumes_like(world, pattern, name):
            world.cluster.create(PERSISTENT_VOLUMES, volume, timeout=TIMEOUT)
    return f"like {pattern['metadata']['name']}"


def _volumes_like(world: World, pattern: Manifest, name: str) -> list[Manifest]:
    """The volumes on the disks of a new node: as many as those that only its pattern can use, and all free."""
    host = inside(pattern, "metadata", "labels", keys.HOSTNAME)
    found = []
    for volume in world.reader.list(PERSISTENT_VOLUMES).items:
        if inside(volume, "spec", "nodeAffinity") == _of_host(host):
            spec = {key: value for key, value in volume["spec"].items() if key != "claimRef"}
            metadata = {"name": f"{volume['metadata']['name']}-{name}"}
            spec["nodeAffinity"] = _of_host(name)
            found.append({"metadata": metadata, "spec": spec, "status": {"phase": "Available"}})
    return found


def _of_host(name: Any) -> Manifest:
    """The node affinity of a volume on one host's disk."""
    expression = {"key": keys.HOSTNAME, "operator": "In", "values": [name]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _pattern(world: World, nodes: Sequence[Manifest]) -> Manifest:
    """A node that takes pods, of the kind that most members run on; else of the kind of which there are most.

    A kind is what the nodes of one pool share: taints and size. A node that is tainted by itself is no kind to copy.
    """
    members = Counter(world.nodes_of_members())
    kinds: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for node in nodes:
        kinds[_kind(node)] += members[node["metadata"]["name"]]
        numbers[_kind(node)] += 1

    def rank(node: Manifest) -> tuple[bool, int, int, int]:
        kind = _kind(node)
        return _takes_pods(node), kinds[kind], -len(_own_taints(node)), numbers[kind]

    return max(nodes, key=rank)


def _kind(node: Manifest) -> str:
    return json.dumps([_own_taints(node), inside(node, "status", "allocatable")], sort_keys=True)


def _own_taints(node: Manifest) -> list[Any]:
    """Those that somebody has put there, and not what befell the host."""
    taints = items(inside(node, "spec", "taints"))
    return [taint for taint in taints if not _OF_ONE_HOST.fullmatch(text(inside(taint, "key")))]


def _takes_pods(node: Manifest) -> bool:
    ready = any(
        (inside(condition, "type"), inside(condition, "status")) == ("Ready", "True")
        for condition in items(inside(node, "status", "conditions"))
    )
    return ready and not inside(node, "spec", "unschedulable")


def _node_like(pattern: Manifest, name: str, zone: str) -> Manifest:
    node = deepcopy(pattern)
    labels = {**mapping(node["metadata"].get("labels")), keys.HOSTNAME: name} | ({ZONE: zone} if zone else {})
    node["metadata"] = {"name": name, "labels": labels}
    node["spec"] = {"taints": _own_taints(pattern)}
    node["status"] = {**mapping(node.get("status")), "conditions": [{"type": "Ready", "status": "True"}]}
    return node
