"""The contract of a Door, kept by a real API server behind the official client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract.door import DoorContract

from e2e.control_plane import ControlPlane
from webhook.cluster import credentials
from webhook.cluster.api import ApiDoor

pytestmark = pytest.mark.e2e


@pytest.fixture
def door(control_plane: ControlPlane) -> Iterator[ApiDoor]:
    api_door = ApiDoor(credentials.from_kubeconfig(str(control_plane.kubeconfig)))
    yield api_door
    api_door.close()


class TestApiDoor(DoorContract):
    pass
