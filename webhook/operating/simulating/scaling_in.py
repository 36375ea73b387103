"""What a smaller number of members does to a group, if they leave one at a time and hand over what they hold.

So the owners do it. PD members give up their vote one after another; a store hands over its copies, for which others
must be left: with fewer stores than copies there is nowhere to hand them to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.core.audited import GroupAudit, Loss, Survival
from webhook.operating.auditing import Report
from webhook.operating.draining import GroupLoss

ORDERLY: Final = "taken to leave one at a time, each when what it holds is with others"


def shrunk(before: Report, after: Report) -> Iterator[tuple[GroupAudit, int]]:
    """The groups that have fewer members than before, and how many these are; 0 for one that is gone."""
    left = {row.group: row.audited.replicas for row in after.rows}
    for row in before.rows:
        if left.get(row.group, 0) < row.audited.replicas:
            yield row.audited, left.get(row.group, 0)


def too_few(audited: GroupAudit, left: int) -> Iterator[GroupLoss]:
    """The loss, if so many cannot hold what the group holds."""
    if left >= (audited.copies or 1):
        return
    if not left:
        text = f"is scaled in to nobody: its {'data is' if audited.copies else 'quorum and data are'} lost"
    else:
        text = f"is scaled in to {left}: {audited.copies} copies of its data are not kept by so few stores"
    yield GroupLoss(audited.group, Loss((), Survival.BREAKS), text, safe=False)
