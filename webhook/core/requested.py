"""The pod to be placed as its requester made it: what is ours in it is decided anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from webhook.core.affinity import free_fields_of, without_ours
from webhook.core.manifests import pod_from
from webhook.core.model import Group, Placing


def as_requested(
    manifest: dict[str, Any],
    group: Group,
    requests_of: Callable[[Mapping[str, Any]], Mapping[str, Decimal]],
    *,
    namespace: str = "",
) -> Placing:
    """What is decided on for a pod of the group by its manifest.

    `requests_of` gives what a manifest asks of a node, in base units. `namespace`: a review's, "" for the manifest's.
    """
    theirs = without_ours(manifest, group)
    return Placing(pod_from(theirs, namespace=namespace), requests_of(theirs), free_fields_of(theirs, group))
