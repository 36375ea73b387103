"""Which schedulers' pods may be guarded instead of pinned."""

from __future__ import annotations

from webhook.core import keys
from webhook.core.options import is_label_key


def problem_of(name: str) -> str:
    """Why the pods of a scheduler of this name cannot be guarded instead of pinned, "" if they can."""
    if name == keys.TIDB_SCHEDULER:
        return "its pods are always left alone, since two deciders must not work on one pod; leave it out"
    if name == keys.DEFAULT_SCHEDULER:
        return (
            "its pods are the ones that are pinned, and no pod would be any more; leave it out, or set the option "
            "placement to Guard on the clusters whose pods only the guard is for"
        )
    if not is_label_key(name):
        return (
            "is no scheduler's name; give what pods have as schedulerName: at most 63 letters, digits, hyphens, dots "
            "and underscores, the first and the last a letter or digit"
        )
    return ""
