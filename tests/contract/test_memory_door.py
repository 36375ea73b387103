"""The contract of a Door, kept by the embedded cluster."""

from __future__ import annotations

import pytest

from contract.door import DoorContract
from webhook.cluster.door import Door
from webhook.cluster.memory import MemoryCluster


@pytest.fixture
def door() -> Door:
    return MemoryCluster()


@pytest.fixture
def namespace() -> str:
    return "contract"


class TestMemoryDoor(DoorContract):
    pass
