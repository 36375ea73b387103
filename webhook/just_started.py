"""An API server that has just started forbids everything until it has read the roles: about a second of it was seen.

Where something was allowed to this process before, a refusal is believed only once it has lasted.
"""

from __future__ import annotations

from typing import Final

MOST_FORBIDDEN: Final = 6
"""How many refusals in a row are not believed yet."""

FORBIDDEN_WAIT: Final = 0.5
"""Seconds to wait before what was forbidden is asked for again."""
