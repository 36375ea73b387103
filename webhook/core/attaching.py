"""What else the scheduler looks at of a pod's claims: who uses them, how many volumes a node takes, and in which zone.

(Its VolumeRestrictions, for claims that one pod at a time can use; NodeVolumeLimits; VolumeZone.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from webhook.core.filtering import Filter, Victims, is_victim
from webhook.core.objects import Claim, Node, Pod, PodOnNode
from webhook.core.occupancy import Occupancy
from webhook.core.storage import CsiVolume, PersistentVolume, Volumes

IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"
WRONG_ZONE: Final = "node(s) had no available volume zone"

ONE_POD: Final = "ReadWriteOncePod"
OLD_KEYS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_KEYS: Final = (*OLD_KEYS, *OLD_KEYS.values())


def use_filter(pod: Pod, claims: Iterable[Claim], occupancy: Occupancy) -> Filter | None:
    """Keeps the pod off every node while another pod uses a claim that only one may."""
    single = {claim.name for claim in claims if ONE_POD in claim.access_modes}
    if not single:
        return None
    users = [other for other in occupancy.crowd.in_namespace(pod.namespace) if not single.isdisjoint(other.claim_names)]

    def judge(_node: Node, victims: Victims) -> str | None:
        return IN_USE if any(not is_victim(user, victims) for user in users) else None

    return Filter("VolumeRestrictions", judge, resolvable=True) if users else None


def limits_filter(claims: Sequence[Claim], volumes: Volumes, occupancy: Occupancy) -> Filter | None:
    """Keeps the pod off nodes that cannot attach its volumes besides those that are there."""
    own = [(claim, volume) for claim in claims if (volume := _csi_volume(claim, volumes))]
    if not own or not volumes.attach_limits:
        return None
    # Members on their way have as many volumes each, where it is not known which.
    coming = Counter(pod.node_name for pod in occupancy.coming if not _is_known(pod, volumes))

    def judge(node: Node, _victims: Victims) -> str | None:
        limits = volumes.attach_limits.get(node.name)
        if not limits:
            return None
        claims_used = {(pod.namespace, name) for pod in occupancy.on(node.name) for name in pod.claim_names}
        used = set(filter(None, map(volumes.claimed.get, claims_used)))
        there = used.union(volumes.attached.get(node.name, ()))
        # One that is attached and that nobody uses any more the scheduler counts twice, so it is not spared here.
        fresh = Counter(
            volume.driver
            for claim, volume in own
            if volume not in used and (claim.namespace, claim.name) not in claims_used
        )
        for driver, count in fresh.items():
            attached = sum(volume.driver == driver for volume in there) + coming[node.name] * count
            if attached + count > limits.get(driver, attached + count):
                return TOO_MANY_VOLUMES
        return None

    return Filter("NodeVolumeLimits", judge)


def zones_filter(claims: Iterable[Claim], volumes: Volumes) -> Filter | None:
    """Keeps the pod off nodes of other zones and regions than the labels of its volumes name."""
    named = [place for volume in _volumes_of(claims, volumes) for place in _places_of(volume)]
    if not named:
        return None

    def judge(node: Node, _victims: Victims) -> str | None:
        # A node that has none of these labels is taken to be in the one zone that there is.
        if not any(key in node.labels for key in ZONE_KEYS):
            return None
        for key, values in named:
            if node.labels.get(key, node.labels.get(OLD_KEYS.get(key, key))) not in values:
                return WRONG_ZONE
        return None

    return Filter("VolumeZone", judge)


def _csi_volume(claim: Claim, volumes: Volumes) -> CsiVolume | None:
    """The claim's volume as a driver knows it; one that is yet to be made is like no other."""
    volume = volumes.persistent_volumes.get(claim.volume_name)
    if volume is not None:
        return volume.csi
    storage_class = volumes.storage_classes.get(claim.storage_class)
    return CsiVolume(storage_class.provisioner) if storage_class else None


def _is_known(pod: PodOnNode, volumes: Volumes) -> bool:
    return any((pod.namespace, name) in volumes.claimed for name in pod.claim_names)


def _volumes_of(claims: Iterable[Claim], volumes: Volumes) -> list[PersistentVolume]:
    found = (volumes.persistent_volumes.get(claim.volume_name) for claim in claims)
    return [volume for volume in found if volume is not None]


def _places_of(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    """Zones and regions by the volume's labels, several of them joined by `__`; what cannot be read says nothing."""
    written = [(key, volume.labels[key].split("__")) for key in ZONE_KEYS if key in volume.labels]
    return [(key, frozenset(names)) for key, names in written if all(names)]
