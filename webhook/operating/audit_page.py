"""An audit as a page: one file, no script, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from webhook.operating.audit_text import cap_text, fullest
from webhook.operating.auditing import Report
from webhook.operating.picture import Mark, sheets_of


def page_of(report: Report, source: str) -> str:
    """The page as HTML. `source` says which cluster it is of."""
    environment = Environment(
        loader=PackageLoader("webhook", "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    when = datetime.fromtimestamp(report.now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if report.now else ""
    return environment.get_template("audit.html").render(
        report=report,
        source=source,
        when=when,
        sheets=sheets_of(report),
        drawn=_drawn,
        cap_text=cap_text,
        fullest=fullest,
    )


def _drawn(marks: Iterable[Mark]) -> Markup:
    """The marks, each with its name for whoever points at it, and for whoever has the page read aloud."""
    pattern = Markup('<span class="mark {}{}" role="img" aria-label="{}" title="{}"></span>')
    guarded = {True: " guarded", False: ""}
    drawn = (pattern.format(mark.kind, guarded[mark.guarded], mark.title, mark.title) for mark in marks)
    return Markup("").join(drawn)
