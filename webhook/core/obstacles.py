"""What can be in the way on a node, by the words of its reason, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.core import attaching, binding, interpod, node_filters, ports, resources, spreading, volumes

# How `explain.py` says that a pod asks for too much.
LARGER_THAN_ANY_NODE: Final = "more than any node has"
# And that there is no node at all.
WITHOUT_NODES: Final = "there are no nodes"


@dataclass(frozen=True, slots=True)
class Remedy:
    """`short`: what is in the way and what to do, in a few words, for warnings; `advice`: what to do, a sentence."""

    short: str
    advice: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What reasons with one of these `words` in them mean. `of_rule`: it is ours, the scheduler would not mind."""

    words: tuple[str, ...]
    remedy: Remedy
    of_rule: bool = False


GENERIC: Final = Remedy(
    "no safe node; see its event, then add a node", "Add a node, or make one of those that are there possible."
)
NO_NODES: Final = Remedy("there are no nodes; add some", "Add nodes.")
TOO_LARGE: Final = Remedy(
    "it requests more than any node has; lower that", "Lower what it requests, or add a node that is large enough."
)

KEY: Final = "{key}"

# How `safety.py` says that a domain is full, and that a sibling is in the way.
FULL: Final = " already holds "
DELETE: Final = "kubectl delete pod "

# In this order where two are as frequent. "{key}" is the topology key.
OBSTACLES: Final = (
    Obstacle(
        (binding.NO_SUCH_CLASS,),
        Remedy(
            "its StorageClass is not there; see its claim",
            "Create the StorageClass that its claim names, or correct storageClassName in the claim template and "
            "delete the claim, which keeps what it has.",
        ),
    ),
    Obstacle(
        (binding.NO_CLASS,),
        Remedy(
            "its claim names no StorageClass; name one",
            "Name a storageClassName in the claim template and delete the claim, which keeps what it has, or make one "
            "StorageClass the default.",
        ),
    ),
    Obstacle(
        (binding.UNBOUND_IMMEDIATE,),
        Remedy(
            "its claim has no volume yet; describe the claim",
            "Its StorageClass binds a claim at once: see why this one has no volume (kubectl describe pvc).",
        ),
    ),
    Obstacle(
        (volumes.NO_VOLUME, "bound to non-existent persistentvolume"),
        Remedy(
            "its claim's volume is gone; restore it",
            "Restore the PersistentVolume, or delete the claim if its data is lost.",
        ),
    ),
    Obstacle(
        ("persistentvolumeclaim ",),
        Remedy(
            "its claim is missing or being deleted",
            "See to it that its claims are there and are not being deleted (kubectl get pvc).",
        ),
    ),
    Obstacle(
        ("node(s) had no label ",),
        Remedy(
            "nodes lack the label of its topology key",
            f"Give the nodes the label {KEY}, or correct the option topology-key.",
        ),
    ),
    Obstacle(
        (node_filters.NO_MATCH, node_filters.NOT_NAMED, node_filters.CONFLICT, node_filters.TOO_MANY_TERMS),
        Remedy(
            "no node matches its nodeSelector or affinity",
            "Label a node as its nodeSelector and required node affinity ask, or correct these.",
        ),
    ),
    Obstacle(
        (node_filters.UNSCHEDULABLE,),
        Remedy("the nodes are cordoned; uncordon one", "Uncordon a node."),
    ),
    Obstacle(
        (node_filters.NOT_READY,),
        Remedy("the nodes are not ready; repair one", "Repair a node that is not ready."),
    ),
    Obstacle(
        (node_filters.UNTOLERATED,),
        Remedy("taints keep it off; tolerate or remove them", "Remove a taint, or have the pod tolerate it."),
    ),
    Obstacle(
        ("Insufficient ", resources.TOO_MANY_PODS),
        Remedy("no node has room for it; add one, or make room", "Make room on a node, or add one."),
    ),
    Obstacle(
        (volumes.AFFINITY_CONFLICT,),
        Remedy(
            "its volumes allow no other node; see its event",
            "Its data is where its volumes allow it: make one of those nodes possible again.",
        ),
    ),
    Obstacle(
        (binding.NO_VOLUME_TO_BIND,),
        Remedy(
            "no volume for its claim; make one on a node",
            "Make a PersistentVolume of its StorageClass on a node, or have the class's allowedTopologies allow more.",
        ),
    ),
    Obstacle(
        (binding.NO_SPACE,),
        Remedy("no node has the storage it asks for; add some", "Free storage, or add a node that has some."),
    ),
    Obstacle(
        (volumes.TOO_MANY_TERMS, binding.TOO_MANY_TERMS),
        Remedy("node affinity of its volumes is too large", "Give its volumes, or their class, fewer terms."),
    ),
    Obstacle(
        (attaching.TOO_MANY_VOLUMES,),
        Remedy("nodes can attach no more volumes; add one", "Add a node: those there attach no more volumes."),
    ),
    Obstacle(
        (attaching.WRONG_ZONE,),
        Remedy("its volumes are in another zone; add a node", "Add a node in the zone of its volumes."),
    ),
    Obstacle(
        (attaching.IN_USE,),
        Remedy("another pod uses its claim; delete that pod", "Delete the pod that uses its ReadWriteOncePod claim."),
    ),
    Obstacle(
        (ports.NO_FREE_PORT,),
        Remedy("its host ports are taken; free one", "Free its host ports on a node, or add a node."),
    ),
    Obstacle(
        (spreading.PIN_SKEWS,),
        Remedy(
            "a spread constraint's minDomains rules out a pin",
            "Take minDomains out of its topologySpreadConstraints (we keep members apart), or set their "
            "nodeAffinityPolicy: Ignore.",
        ),
    ),
    Obstacle(
        (spreading.SKEWED, spreading.UNUSABLE, spreading.TOO_MANY),
        Remedy("its spread constraints keep it off", "Correct its topologySpreadConstraints."),
    ),
    Obstacle(
        (
            interpod.NO_AFFINITY,
            interpod.OWN_ANTI_AFFINITY,
            interpod.THEIR_ANTI_AFFINITY,
            interpod.UNUSABLE,
            interpod.TOO_MANY,
        ),
        Remedy(
            "affinity to other pods keeps it off",
            "See its required affinity and anti-affinity to other pods, and that of the pods on the nodes.",
        ),
    ),
    Obstacle(
        (FULL,),
        Remedy("every domain holds its share; add a node", f"Add a node with a new value of {KEY}."),
        of_rule=True,
    ),
    Obstacle(
        (DELETE,),
        Remedy("a sibling is in the way; see its event", "Have the pod that is in the way created anew."),
        of_rule=True,
    ),
)
