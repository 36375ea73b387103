"""How the pages become HTML: `make docs`. The source is the whole repository, so that links are as in the files."""

from pathlib import Path

project = "tidb-ha-webhook"
author = "the authors of tidb-ha-webhook"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "charts/tidb-ha-webhook/*.md"]
exclude_patterns = [".*", "build", "tests", "webhook", "certs", "*.egg-info"]
html_theme = "furo"
html_title = "tidb-ha-webhook"
# The anchors and fences that GitHub has too, so that the pages can be read there.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# Only what `make docs` cannot see: pages elsewhere.
linkcheck_timeout = 10


def setup(app):
    """Let a pattern in the table of contents match no page yet."""
    app.connect("source-read", _without_empty_patterns)


def _without_empty_patterns(app, docname, source):
    if docname != root_doc:
        return
    folder = Path(app.srcdir, "docs")
    lines = source[0].split("\n")
    source[0] = "\n".join(line for line in lines if not line.endswith("*") or any(folder.glob(f"{line}.md")))
