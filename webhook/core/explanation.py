"""Everything that a decision record on a pod says, for people; decisions need less of it (`decision_record.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.core import keys
from webhook.core.decision_record import VERSION, DecisionRecord, record_from
from webhook.core.objects import Pod
from webhook.core.shapes import integer, mapping, strings, text


@dataclass(frozen=True, slots=True)
class Explanation:
    """The counts and reasons of a record. `more_counts`, `more_reasons`: how many were cut off.

    `cap` None: no cap. What a record does not say, or says in a wrong type, is empty here.
    """

    record: DecisionRecord
    replicas: int = 0
    cap: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    more_counts: int = 0
    reasons: tuple[str, ...] = ()
    more_reasons: int = 0
    detail: str = ""
    problems: tuple[str, ...] = ()
    above_cap: bool = False
    guard_too: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """What stands on a pod. `explanation` None: no record of ours that can be trusted; `problem` says why."""

    explanation: Explanation | None = None
    problem: str = ""


NOTHING: Final = Recorded()


def recorded_on(pod: Pod) -> Recorded:
    """The record on a pod for its own name. Raises nothing, whatever is written there."""
    written = pod.annotations.get(keys.DECISION)
    if written is None:
        return NOTHING
    record = record_from(written)
    if record is None:
        return Recorded(problem=f"its annotation {keys.DECISION} {_unusable(written)}: nothing is concluded from it")
    if record.member != pod.name:
        return Recorded(
            problem=f"its annotation {keys.DECISION} is that of {record.member!r}, so it came with a copied template:"
            " nothing is concluded from it"
        )
    return Recorded(_explanation(record, mapping(json.loads(written))))


def _explanation(record: DecisionRecord, raw: Mapping[str, Any]) -> Explanation:
    counts = {domain: count for domain, count in mapping(raw.get("counts")).items() if integer(count) is not None}
    return Explanation(
        record=record,
        replicas=integer(raw.get("replicas")) or 0,
        cap=integer(raw.get("cap")),
        counts=counts,
        more_counts=integer(raw.get("moreCounts")) or 0,
        reasons=strings(raw.get("reasons")),
        more_reasons=integer(raw.get("moreReasons")) or 0,
        detail=text(raw.get("detail")),
        problems=strings(raw.get("problems")),
        above_cap=raw.get("aboveCap") is True,
        guard_too=raw.get("guardToo") is True,
    )


def _unusable(written: str) -> str:
    """Why a record cannot be read, in words."""
    try:
        version = mapping(json.loads(written)).get("v")
    except (ValueError, RecursionError):
        return "is not JSON"
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        return f"is of version {version}, newer than this program's {VERSION}"
    return "is not a decision of ours"
