"""What drivers can still make, by where: no claim looks at all that is published for every node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.core.memo import Memo
from webhook.core.objects import Node
from webhook.core.selectors import matches_labels, size_of
from webhook.core.storage import StorageCapacity


class Space:
    """What is published, by class and by one label that its topology asks for, if it asks for any."""

    def __init__(self, published: Iterable[StorageCapacity]) -> None:
        self._by_place: dict[tuple[str, str, str], list[StorageCapacity]] = {}
        for each in published:
            labels = each.topology.match_labels if each.topology is not None else {}
            place = min(labels.items(), default=("", ""))
            self._by_place.setdefault((each.storage_class, *place), []).append(each)

    def on(self, node: Node, storage_class: str) -> Iterator[StorageCapacity]:
        """What is published of the class for the node."""
        for place in (("", ""), *node.labels.items()):
            for each in self._by_place.get((storage_class, *place), ()):
                if matches_labels(each.topology, node.labels):
                    yield each

    def terms(self, storage_class: str) -> int:
        """How much has to be compared with every node."""
        return sum(size_of(each.topology) for each in self._by_place.get((storage_class, "", ""), ()))


space_of: Final = Memo(Space)
"""What is published, by where; made once for what is the same."""
