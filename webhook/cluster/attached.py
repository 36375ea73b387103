"""What CSI drivers' volumes are where, looked up for those nodes and claims only that a decision asks about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from webhook.cluster import trimming
from webhook.cluster.shelves import find_volume
from webhook.cluster.surroundings import Stock
from webhook.cluster.trimming import Key
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
    """The volumes that claims have, by namespace and name of the claim."""

    def __init__(self, stock: Stock) -> None:
        self._volumes = stock.volumes()
        self._claimed = stock.of(trimming.CLAIMED)

    def __getitem__(self, key: Key) -> CsiVolume:
        volume = find_volume(self._volumes, self._claimed[key].volume_name)
        if volume is None or volume.csi is None:
            raise KeyError(key)
        return volume.csi

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self._claimed if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
