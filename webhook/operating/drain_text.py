"""The verdict on losing nodes, as text for people, or as JSON for programs."""

from __future__ import annotations

import json

from webhook.operating.draining import Verdict
from webhook.operating.page import columns, one_line


def as_text(verdict: Verdict) -> str:
    """The answer in the first line, then a line for each group that has a member there."""
    rows = [(("ok" if loss.safe else "NO"), str(loss.group), loss.text) for loss in verdict.losses]
    rows += [("NO", str(each.group), f"cannot be judged: {each.why}") for each in verdict.unjudged]
    lines = [verdict.summary, *(f"  {line}" for line in (columns(rows) if rows else ()))]
    if verdict.untouched:
        lines.append(f"  {verdict.untouched} group(s) have nothing there")
    if verdict.advice:
        lines.append(verdict.advice)
    return "\n".join(map(one_line, lines))


def as_json(verdict: Verdict) -> str:
    """The answer as one JSON object."""
    return json.dumps(
        {
            "safe": verdict.safe,
            "nodes": verdict.nodes,
            "summary": verdict.summary,
            "groups": [
                {
                    "group": str(loss.group),
                    "safe": loss.safe,
                    "members": loss.loss.members,
                    "notRunning": loss.loss.resting,
                    "survival": loss.loss.survival.value,
                    "isolatedBy": loss.loss.isolated_by,
                    "text": loss.text,
                }
                for loss in verdict.losses
            ],
            "notJudged": [{"group": str(each.group), "why": each.why} for each in verdict.unjudged],
            "alone": verdict.alone,
            "brokenAlready": verdict.broken,
        },
        indent=2,
    )
