"""Plays the provisioner of the drivers' volumes."""

from __future__ import annotations

from e2e.api import Api
from e2e.differential.constraints import NAMESPACES
from e2e.differential.storage import SELECTED_NODE
from e2e.objects import HOSTNAME, Object


def provision(api: Api) -> None:
    """Make the volumes of claims that have a node, by their driver and where their class allows it.

    One whose class does not allow its node a real provisioner makes nothing for either.
    """
    volumes = {found["metadata"]["name"] for found in api.list("PersistentVolume")}
    for claim in api.list("PersistentVolumeClaim", NAMESPACES[0]):
        metadata, spec = claim["metadata"], claim["spec"]
        node, name = metadata.get("annotations", {}).get(SELECTED_NODE), f"made-for-{metadata['uid']}"
        if not node or spec.get("volumeName") or name in volumes:
            continue
        storage_class = api.get("StorageClass", spec["storageClassName"])
        if allows(storage_class, api.get("Node", node)):
            api.create(_volume(name, claim, storage_class["provisioner"], node))


def allows(storage_class: Object, node: Object) -> bool:
    """Whether a class makes volumes for a node: one of its topologies has all of the node's labels, or it has none."""
    labels = node["metadata"]["labels"]
    topologies = storage_class.get("allowedTopologies", ())
    return not topologies or any(
        all(labels.get(each["key"]) in each["values"] for each in topology["matchLabelExpressions"])
        for topology in topologies
    )


def _volume(name: str, claim: Object, driver: str, node: str) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
            # A volume of its driver, so that it counts for a node's limit as the claim did before.
            "csi": {"driver": driver, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
