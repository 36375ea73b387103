"""What a group's options stand on, apart from its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.core.objects import EMPTY


@dataclass(frozen=True, slots=True)
class OptionCarriers:
    """The annotations of the objects that own a group.

    `group_objects`, by name: v2's group objects; of a generic set its StatefulSet. `cluster`: of the TidbCluster,
    DMCluster or v2 Cluster. `by_label`: a pod says by a label which group object made it (v2).
    """

    group_objects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cluster: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    by_label: bool = False
