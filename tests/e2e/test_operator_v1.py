"""The real tidb-operator v1 as a client: nobody stacks, and it is not disturbed."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e import objects, operator_v1
from e2e.api import Api, ApiError
from e2e.control_plane import ControlPlane
from e2e.namespaces import define
from e2e.place import Create, Place, gone, is_ready, per_node
from e2e.processes import Child
from e2e.replicas import tally
from e2e.steps import homes

pytestmark = pytest.mark.e2e

Tell = Callable[[str], None]
# What the operator also logs without a webhook: conflicts, before the first PD pod, while something is changing.
ORDINARY = ("object has been modified", "has no endpoints", "phase is not Normal", "not found", "status sync failed")


@pytest.fixture
def operator(api: Api, control_plane: ControlPlane, place: Place, tmp_path: Path) -> Iterator[Child]:
    """The operator, for the cluster `db`."""
    if problem := operator_v1.why_not():
        pytest.fail(problem, pytrace=False)
    define(api, *operator_v1.kinds())
    with operator_v1.running(control_plane, api, tmp_path, place.namespace, "db") as child:
        try:
            yield child
        finally:
            api.delete("TidbCluster", "db", place.namespace, missing_ok=True)


@contextmanager
def second_writer(place: Place) -> Iterator[Counter[str]]:
    """Somebody who changes one annotation of every claim all the time; how often, and how often it was undone."""
    stop, counts = threading.Event(), Counter[str]()
    written: dict[str, int] = {}

    def write() -> None:
        while not stop.wait(0.02):
            for claim in place.api.list("PersistentVolumeClaim", place.namespace):
                name = claim["metadata"]["name"]
                found = int(claim["metadata"].get("annotations", {}).get("example.test/second-writer", "0"))
                counts["undone"] += found < written.get(name, 0)
                written[name] = written.get(name, 0) + 1
                patch = {"metadata": {"annotations": {"example.test/second-writer": str(written[name])}}}
                try:
                    place.api.patch("PersistentVolumeClaim", name, patch, place.namespace)
                    counts["written"] += 1
                except ApiError as error:
                    if error.status != 404:
                        raise

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()


@pytest.mark.timeout(400)
def test_bootstrap_scale_out_a_deleted_pod_and_a_rolling_restart_stack_nobody_and_disturb_nothing(
    api: Api, create: Create, operator: Child, place: Place, tell: Tell
) -> None:
    create(*objects.local_cluster([f"n{i}" for i in range(6)], zones=["z0", "z1", "z2"], volumes=3))

    with second_writer(place) as counts:
        api.create(operator_v1.tidb_cluster(place.namespace, "db"))
        pd = place.wait_running(3, component="pd", timeout=120)
        assert per_node(pd) == [1, 1, 1]
        assert per_node(place.wait_running(3, timeout=120)) == [1, 1, 1]

        scaled = {"spec": {"tikv": {"replicas": 5}}}
        api.patch("TidbCluster", "db", scaled, place.namespace)
        tikv = place.wait_running(5, timeout=120)
        assert per_node(tikv) == [1] * 5
        given = tally(pd) + tally(tikv)

        # The operator has labelled everything that it labels.
        place.wait_for(
            lambda pods: all("tidb.pingcap.com/store-id" in pod["metadata"]["labels"] for pod in pods), timeout=120
        )
        before = homes(tikv)
        api.delete("Pod", "db-tikv-1", place.namespace, gracePeriodSeconds=0)
        assert homes(place.wait_running(5)) == before

    revision = {"spec": {"tikv": {"annotations": {"example.test/restarted": "yes"}}}}
    api.patch("TidbCluster", "db", revision, place.namespace)
    after = place.wait_for(
        lambda pods: (
            len(pods) == 5
            and all("example.test/restarted" in pod["metadata"]["annotations"] for pod in pods)
            and all(map(is_ready, pods))
            and not any(map(gone, pods))
        ),
        timeout=180,
    )
    assert homes(after) == before
    assert tally(after) == {"pinned": 5}

    errors = re.findall(r"^E.*", operator.log.read_text(), re.MULTILINE)
    tell(f"{dict(given)}; second writer {dict(counts)}; {len(errors)} errors in the operator's log")
    assert [line for line in errors if not any(text in line for text in ORDINARY)] == []
    claims = place.claims() + place.claims(component="pd")
    assert all("tidb.pingcap.com/pod-name" in claim["metadata"]["labels"] for claim in claims)
