"""What CSI drivers' volumes are where, looked up for those nodes and claims only that a decision asks about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from webhook.cluster import trimming
from webhook.cluster.shelves import find_volume
from webhook.cluster.surroundings import Stock
from webhook.cluster.trimming import Key
from webhook.core.objects import Claim
from webhook.core.storage import CsiVolume

Value = TypeVar("Value")


class ByName(Mapping[str, Value]):
    """What has no namespace, by name alone."""

    def __init__(self, found: Mapping[Key, Value]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Value:
        return self._found["", name]

    def __iter__(self) -> Iterator[str]:
        return (name for _, name in self._found)

    def __len__(self) -> int:
        return len(self._found)


class AttachedVolumes(Mapping[str, frozenset[CsiVolume]]):
    """Attached volumes by node."""

    def __init__(self, stock: Stock) -> None:
        self._volumes = stock.volumes()
        self._attached = stock.attached()

    def __getitem__(self, node_name: str) -> frozenset[CsiVolume]:
        found = (find_volume(self._volumes, name) for name in self._attached[node_name])
        return frozenset(volume.csi for volume in found if volume is not None and volume.csi is not None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._attached)

    def __len__(self) -> int:
        return len(self._attached)


class ClaimedVolumes(Mapping[tuple[str, str], CsiVolume]):
    """The volumes that claims have or will be made, by namespace and name of the claim."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._volumes = stock.volumes()
        self._claimed = stock.of(trimming.CLAIMED)

    def __getitem__(self, key: Key) -> CsiVolume:
        found = self._claimed[key]
        csi = self._existing(found.volume_name) if found.claim is None else self._to_be_made(key, found.claim)
        if csi is None:
            raise KeyError(key)
        return csi

    def _existing(self, volume_name: str) -> CsiVolume | None:
        volume = find_volume(self._volumes, volume_name)
        return volume.csi if volume is not None else None

    def _to_be_made(self, key: Key, claim: Claim) -> CsiVolume | None:
        """The volume that a claim's class will make: like no other, as for the scheduler."""
        storage_class = self._stock.of(trimming.CLASS).get(("", claim.storage_class))
        return CsiVolume(storage_class.provisioner, "/".join(key)) if storage_class else None

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self._claimed if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
