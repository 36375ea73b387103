"""A simulation as text for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from webhook.operating.audit_text import cap_text, fullest
from webhook.operating.page import columns, listed, one_line
from webhook.operating.simulating.run import Stage, is_safe
from webhook.operating.simulating.world import Placed

MOST_PLACED: Final = 40
MOST_GROUPS: Final = 60


def lines_of(stages: Sequence[Stage]) -> Iterator[str]:
    """A paragraph for each stage, and the answer at the end."""
    for number, stage in enumerate(stages):
        yield f"{number}. {stage.title}"
        yield from (f"  {'ok' if each.safe else 'NO'}: {each.group} {one_line(each.text)}" for each in stage.losses)
        yield from (f"  {one_line(_placed(each))}" for each in stage.placed[:MOST_PLACED])
        if len(stage.placed) > MOST_PLACED:
            yield f"  and {len(stage.placed) - MOST_PLACED} more pods"
        yield from (f"  {line}" for line in _table(stage))
        yield ""
    yield summary(stages)


def summary(stages: Sequence[Stage]) -> str:
    """The answer in one sentence."""
    if is_safe(stages):
        return "no quorum and no data is lost in any step, and nobody waits at the end"
    said = [
        f"after '{stage.title}' {listed(stage.lost)} may have lost quorum or data"
        for stage in stages[1:] or stages
        if stage.lost
    ]
    if stages[-1].waiting:
        said.append(f"at the end {len(stages[-1].waiting)} wait: {listed([each.name for each in stages[-1].waiting])}")
    return "; ".join(said)


def as_json(stages: Sequence[Stage]) -> str:
    """The same as one JSON object."""
    return json.dumps({"safe": is_safe(stages), "stages": [_stage(stage) for stage in stages]}, indent=2)


def _placed(placed: Placed) -> str:
    where = f"to {placed.node}" if placed.node else "waits"
    return f"{placed.group.namespace}/{placed.name} {where} ({placed.outcome}{f': {placed.why}' if placed.why else ''})"


def _table(stage: Stage) -> list[str]:
    rows = [("GROUP", "RUNNING", "CAP", "FULLEST", "SURVIVES")]
    for row in stage.report.rows[:MOST_GROUPS]:
        running = f"{row.running}/{row.audited.replicas}"
        rows.append((str(row.group), running, cap_text(row.audited), fullest(row.audited), row.survives))
    rows += [(str(each.group), "?", "?", "?", each.why) for each in stage.report.unreadable]
    shown = columns([tuple(one_line(cell) for cell in row) for row in rows])
    left_out = len(stage.report.rows) - MOST_GROUPS
    return shown + ([f"and {left_out} more groups"] if left_out > 0 else [])


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "step": stage.title,
        "losses": [{"group": str(each.group), "safe": each.safe, "text": each.text} for each in stage.losses],
        "placed": [
            {
                "namespace": each.group.namespace,
                "pod": each.name,
                "node": each.node,
                "outcome": each.outcome,
                "reason": each.why,
            }
            for each in stage.placed
        ],
        "groups": [
            {
                "group": str(row.group),
                "running": row.running,
                "replicas": row.audited.replicas,
                "cap": row.audited.cap,
                "counts": dict(row.audited.counts),
                "now": row.audited.now.value,
                "survives": row.survives,
            }
            for row in stage.report.rows
        ],
        "lost": stage.lost,
    }
