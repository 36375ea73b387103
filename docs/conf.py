"""How the pages become HTML: `make docs`. The source is the whole repository, so that links are as in the files."""

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
# Pages that come with other parts of the repository.
suppress_warnings = ["toc.empty_glob"]
# Only what `make docs` cannot see: pages elsewhere.
linkcheck_timeout = 10
