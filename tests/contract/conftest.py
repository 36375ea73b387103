"""The contract is in a module of its own, whose asserts pytest would otherwise leave as they are."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("contract.door")
