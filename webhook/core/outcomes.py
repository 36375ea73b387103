"""What a pod gets, and why it gets no pin."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """What the pod gets."""

    PINNED = "pinned"
    RETURNED = "returned"
    RETURNED_WAITING = "returned-waiting"
    GUARDED = "guarded"
    DENIED = "denied"
    ADMITTED = "admitted"
    UNTOUCHED = "untouched"
    UNCHANGED = "unchanged"


class Cause(StrEnum):
    """Why there is no pin; the label of metrics, the reason of events."""

    NONE = ""
    NO_SAFE_NODE = "NoSafeNode"
    UNKNOWN_DOMAIN = "UnknownDomain"
    NO_LOCK_CLAIM = "NoLockClaim"
    BUDGET_USED_UP = "BudgetUsedUp"
    BUSY = "Busy"
    API_TROUBLE = "ApiTrouble"
    API_FORBIDDEN = "ApiForbidden"
    NEWER_FORMAT = "NewerFormat"
    GUARD_OPTION = "GuardOption"
    OTHER_SCHEDULER = "OtherScheduler"
    TIDB_SCHEDULER = "TidbScheduler"
    REQUESTER_FIELDS = "RequesterFields"
    SET_OF_ONE = "SetOfOne"
    SKIP_OPTION = "SkipOption"
    NOT_A_MEMBER = "NotAMember"
    UNUSABLE_SELECTOR = "UnusableSelector"
    INTERNAL = "Internal"


PINNING: Final = frozenset({Outcome.PINNED, Outcome.RETURNED})
"""Outcomes with a pin to a node."""

UNREADABLE: Final = frozenset(
    {
        Cause.API_TROUBLE,
        Cause.API_FORBIDDEN,
        Cause.BUDGET_USED_UP,
        Cause.BUSY,
        Cause.NEWER_FORMAT,
        Cause.INTERNAL,
    }
)
"""Causes that say nothing of the pod: what its decision rests on could not be read."""
