"""Nodes, and what is requested on each, read for feasibility and ranking; never for counting members."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from webhook.cluster.door import NODES, PODS, Manifest
from webhook.cluster.quantities import parse_quantity, requests_of
from webhook.cluster.reader import STALE, Reader
from webhook.core.manifests import node_from, pod_from
from webhook.core.model import NodeRoom
from webhook.core.objects import Node
from webhook.core.selectors import pinned_node
from webhook.core.shapes import inside, text

Version = tuple[str, str]
"""An object's uid and resourceVersion: as long as both are the same, so is the object."""


class UsageReader:
    """Reads nodes and rooms, and remembers what it has worked out for every version of an object.

    Safe to use from many threads: what is remembered is replaced as a whole, never changed.
    """

    def __init__(self) -> None:
        self._nodes: Mapping[Version, Node] = {}
        self._requests: Mapping[Version, Mapping[str, Decimal]] = {}

    def nodes(self, reader: Reader) -> tuple[Node, ...]:
        """All nodes, ordered by name."""
        known = self._nodes
        listing = reader.list(NODES, resource_version=STALE)
        found = {
            version: known.get(version) or node_from(manifest, parse_quantity)
            for version, manifest in ((_version(item), item) for item in listing.items)
        }
        self._nodes = found
        return tuple(sorted(found.values(), key=lambda node: node.name))

    def rooms(self, reader: Reader) -> Mapping[str, NodeRoom]:
        """What the pods on each node, or pinned or nominated to it, ask of it; finished pods ask nothing."""
        known, found = self._requests, {}
        totals: dict[str, dict[str, Decimal]] = {}
        for manifest in reader.list(PODS, resource_version=STALE).items:
            node_name = _node_of(manifest)
            if not node_name:
                continue
            version = _version(manifest)
            requests = found[version] = known.get(version) or requests_of(manifest)
            total = totals.setdefault(node_name, {})
            for name, amount in requests.items():
                total[name] = total[name] + amount if name in total else amount
        self._requests = found
        return {node_name: NodeRoom(total) for node_name, total in totals.items()}


def _node_of(manifest: Manifest) -> str:
    if inside(manifest, "status", "phase") in ("Succeeded", "Failed"):
        return ""
    bound = text(inside(manifest, "spec", "nodeName"))
    if bound:
        return bound
    pod = pod_from(manifest)
    # Admitted by us and not bound yet: it will be there in a moment.
    return pinned_node(pod) or pod.nominated_node_name


def _version(manifest: Manifest) -> Version:
    metadata = manifest["metadata"]
    return text(metadata.get("uid")), text(metadata.get("resourceVersion"))
