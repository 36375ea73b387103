"""Annotations that look like ours and are not read: misspelt, of another component, or on the wrong object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from webhook.core import keys
from webhook.core.groups import MEMBER_CLASSES
from webhook.core.model import MemberClass

OF_PODS: Final = (keys.SKIP, keys.PLACEMENT, keys.WHEN_UNPLACEABLE)
"""Options that a pod may have for itself."""

OF_GROUPS: Final = (keys.TOPOLOGY_KEY, keys.COPIES, keys.MIN_DOMAINS)
"""Options that all members of a group must have alike."""

_COMPONENTS: Final = ("", *(f"{name}." for name in (*MEMBER_CLASSES, *MemberClass)))
_KNOWN: Final = tuple(f"{component}{option}" for component in _COMPONENTS for option in (*OF_PODS, *OF_GROUPS))
_RECORDS: Final = (keys.LOCK, keys.ASSIGNED_NODE, keys.DECISION, keys.GUARD)
_SHOWN: Final = 60


def strange_keys(annotations: Mapping[str, str], where: str) -> Iterator[str]:
    """A sentence for each annotation of ours that is not read on this object; `where` is what to call it."""
    for key in sorted(annotations):
        if not key.startswith(keys.PREFIX) or key in _RECORDS or key.startswith(keys.ENTRY_PREFIX):
            continue
        name = key.removeprefix(keys.PREFIX)
        if name not in _KNOWN:
            near = get_close_matches(name, _KNOWN, n=1)
            meant = f"is {near[0]} meant?" if near else f"the options are {', '.join((*OF_PODS, *OF_GROUPS))}"
            yield f"annotation {keys.PREFIX}{name[:_SHOWN]} of the {where} is no option: {meant}"
        elif where == "pod" and name.endswith(OF_GROUPS):
            yield f"annotation {key} of the pod is not read there: it belongs on the object that owns its group"
