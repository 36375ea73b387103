"""The README's ways to switch the webhook off, and on again."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.install.load import DECISION, member
from e2e.install.release import Release
from e2e.objects import GUARD
from e2e.readme_commands import documented, shell
from e2e.waiting import wait_until

pytestmark = pytest.mark.e2e


def test_step_by_step_the_webhook_and_the_floor_are_taken_out_and_an_upgrade_brings_both_back(
    control_plane: ControlPlane, api: Api, release: Release, tmp_path: Path
) -> None:
    def found() -> set[str]:
        annotations = api.create(member(), dryRun="All")["metadata"].get("annotations", {})
        return {key for key in (DECISION, GUARD) if key in annotations}

    def typed(begin: str) -> None:
        done = shell(control_plane, documented(begin), tmp_path)
        assert (done.returncode, "deleted" in done.stdout) == (0, True), done.stderr

    release.wait_called(member())
    typed("kubectl delete mutatingwebhookconfiguration")
    wait_until(lambda: found() == {GUARD}, "the floor alone to work", 30)
    typed("kubectl delete mutatingadmissionpolicybinding")
    wait_until(lambda: not found(), "members to be left alone", 30)

    release.upgrade()
    release.wait_called(member())
    assert all(release.bundles())
    assert api.request(
        "GET", f"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/{release.cluster_name}"
    )
