"""The whole demo, from the facts to the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console

from webhook.demo.incident import read_incident
from webhook.demo.keep import keep
from webhook.demo.replay import Serve, real_webhook, replay
from webhook.demo.report import Report
from webhook.demo.safety import hazards
from webhook.demo.visible import decide_on_what_is_visible

LEAST_WIDTH: Final = 64


def run(
    emptiest: str | None = None,
    folder: Path | None = None,
    *,
    program: str = "tidb-ha-webhook",
    serve: Serve = real_webhook,
    console: Console | None = None,
) -> int:
    """Show the demo; the exit code: 0 only if the pods are HA-safe by what the webhook answered.

    `emptiest` is the node to make the emptiest, `folder` where to leave the files, `program` what to type to
    run this program, `serve` what answers. Raises WebhookError for a wrong node or folder, or if the server
    cannot be started or asked.
    """
    incident = read_incident()
    if emptiest:
        incident = incident.with_emptiest(emptiest)
    if folder:
        keep(incident, folder)
    report = Report(console or _console(), incident, program)
    report.incident()
    decisions = decide_on_what_is_visible(incident)
    visible = {pod: decision.node for pod, decision in decisions.items()}
    report.without(decisions, hazards(visible, incident.components, incident.nodes))
    placed = replay(incident, serve)
    found = hazards({each.pod: each.answer.node for each in placed}, incident.components, incident.nodes)
    report.with_webhook(placed, found)
    # Of the pods that were asked for together the one that had the most to take into account.
    together = placed[-len(incident.together()[-1]) :]
    report.record(max(together, key=lambda each: len(each.answer.record.get("counts", ()))))
    report.what_next(folder)
    return 1 if found else 0


def _console() -> Console:
    """Standard output, at least so wide that no name of a table is broken: what is narrower wraps by itself."""
    console = Console(highlight=False)
    return console if console.width >= LEAST_WIDTH else Console(highlight=False, width=LEAST_WIDTH)
