"""The volumes and classes that a round's decisions look at: only of members that need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.cluster.door import CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from webhook.cluster.reader import Reader
from webhook.core import groups
from webhook.core.manifests import claim_from, storage_class_from, volume_from
from webhook.core.model import Desired, Group
from webhook.core.objects import Claim, Node, Pod
from webhook.core.storage import PersistentVolume, StorageClass, Volumes


@dataclass(frozen=True, slots=True)
class Members:
    """Whose volumes may matter: the pods to be placed, the visible ones, the desired ones, on which nodes."""

    placing: Sequence[Pod]
    visible: Sequence[Pod]
    desired: Desired
    nodes: Sequence[Node]


def read_volumes(reader: Reader, group: Group, claims: Sequence[Claim], members: Members) -> Volumes:
    """Read own claims that the group's label does not find, then the PVs and classes of who needs them.

    PVs: of the pods to be placed; of desired members without a node or finished, which may have to return; of
    members whose Node object is gone. Classes: of the own unbound claims. What does not exist is left out.
    """
    own = _own_claims(reader, group, claims, members.placing)
    known = {claim.name: claim for claim in (*claims, *own)}
    needed = {claim.name: claim for claim in (*own, *_of_others(claims, members))}
    volume_names = {claim.volume_name for claim in needed.values() if claim.volume_name}
    class_names = {claim.storage_class for claim in own if not claim.bound and claim.storage_class}
    return Volumes(known, _read_volumes(reader, volume_names), _read_classes(reader, class_names))


def _own_claims(reader: Reader, group: Group, claims: Sequence[Claim], placing: Iterable[Pod]) -> tuple[Claim, ...]:
    listed = {claim.name: claim for claim in claims}
    names = dict.fromkeys(name for pod in placing for name in pod.claim_names)
    found = (listed.get(name) or find_claim(reader, group.namespace, name) for name in names)
    return tuple(claim for claim in found if claim is not None)


def find_claim(reader: Reader, namespace: str, name: str) -> Claim | None:
    """Read one claim, None if there is none of that name."""
    manifest = reader.find(CLAIMS, name, namespace=namespace)
    return claim_from(manifest) if manifest is not None else None


def _of_others(claims: Sequence[Claim], members: Members) -> Iterator[Claim]:
    node_names = {node.name for node in members.nodes}
    for pod in members.visible:
        if pod.finished or pod.node_name not in node_names:
            yield from groups.claims_of(pod.name, pod, claims)
    visible_names = {pod.name for pod in members.visible}
    for name in members.desired.names:
        if name not in visible_names:
            yield from groups.claims_of(name, None, claims)


def _read_volumes(reader: Reader, names: Iterable[str]) -> Mapping[str, PersistentVolume]:
    found = ((name, reader.find(PERSISTENT_VOLUMES, name)) for name in sorted(names))
    return {name: volume_from(manifest) for name, manifest in found if manifest is not None}


def _read_classes(reader: Reader, names: Iterable[str]) -> Mapping[str, StorageClass]:
    found = ((name, reader.find(STORAGE_CLASSES, name)) for name in sorted(names))
    return {name: storage_class_from(manifest) for name, manifest in found if manifest is not None}
