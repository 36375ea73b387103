"""PD's location-labels, by which it keeps the copies of a piece of data apart, as its configuration file has them.

The file is only where PD starts from: what was set by pd-ctl later is in PD's own store, and not known here.
"""

from __future__ import annotations

import tomllib

from webhook.core.shapes import inside, mapping, strings


def location_labels(config: object) -> tuple[str, ...] | None:
    """The labels in a PD configuration, as the text of its file or as an object; None where it says nothing of them."""
    if isinstance(config, str):
        try:
            config = tomllib.loads(config)
        except (tomllib.TOMLDecodeError, RecursionError):
            return None
    found = inside(mapping(config), "replication", "location-labels")
    if isinstance(found, str):
        return tuple(label for label in (part.strip() for part in found.split(",")) if label)
    return strings(found) if isinstance(found, list) else None
