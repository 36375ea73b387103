"""What the README tells people to type against their cluster does what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e import objects
from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.place import Create, Place, node_of
from e2e.readme_commands import documented, shell
from webhook.cluster import dump, kinds
from webhook.cluster.door import EVENTS, TIDB_CLUSTERS

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tidb_cluster_kind")]


def storage_objects(node: str) -> str:
    """One object of each kind that a plain set has none of, as a list for kubectl."""
    metadata = {"name": "readme"}
    source = {"persistentVolumeName": f"{node}-0"}
    items = [
        {"kind": "CSIDriver", "metadata": metadata, "spec": {}},
        {"kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": []}},
        {"kind": "CSIStorageCapacity", "metadata": metadata, "storageClassName": objects.LOCAL_STORAGE},
        {
            "kind": "VolumeAttachment",
            "metadata": metadata,
            "spec": {"attacher": "readme", "nodeName": node, "source": source},
        },
    ]
    return json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "storage.k8s.io/v1", **item} for item in items]}
    )


def test_a_dump_made_as_the_readme_says_has_all_kinds_and_can_be_planned_on(
    control_plane: ControlPlane, create: Create, place: Place, tmp_path: Path
) -> None:
    create(*objects.local_cluster(["n0", "n1", "n2"], volumes=9))
    create(objects.tidb_cluster(place.namespace, "db"))
    place.start()
    place.wait_placed(3)
    others = storage_objects("n0")
    try:
        assert control_plane.kubectl("create", "-f", "-", stdin=others).returncode == 0
        made = shell(
            control_plane,
            documented("mkdir -p dump", "kinds=", "kubectl get $kinds", "kubectl api-resources"),
            tmp_path,
        )
    finally:
        control_plane.kubectl("delete", "--wait=false", "-f", "-", stdin=others)
    assert made.returncode == 0, made.stderr

    dumped = {(found["apiVersion"].rpartition("/")[0], found["kind"]) for found in dump.load(tmp_path / "dump").objects}
    expected = {(kind.group, kind.kind) for kind in (*kinds.BUILT_IN, TIDB_CLUSTERS) if kind != EVENTS}
    assert dumped >= expected
    # Other tests' operators may have left objects of their kinds.
    assert {group.endswith("pingcap.com") for group, _ in dumped - expected} <= {True}

    planned = shell(
        control_plane, documented("kubectl get sts db-tikv"), tmp_path, **{"-n db": f"-n {place.namespace}"}
    )
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.splitlines()[-1].startswith("6 pod(s): 3 placed")


def test_what_the_readme_says_to_look_at_tells_why_a_pod_waits(
    control_plane: ControlPlane, api: Api, create: Create, place: Place, tmp_path: Path
) -> None:
    create(*objects.local_cluster(["n0", "n1"]))
    place.start()
    pods = place.wait_for(lambda pods: len(pods) == 3 and sum(bool(node_of(pod)) for pod in pods) == 2)
    waiting = next(pod["metadata"]["name"] for pod in pods if not node_of(pod))
    words = {"-n db": f"-n {place.namespace}", "db-tikv-1": waiting}

    api.wait_for("Event", lambda events: any(event["reason"] == "NoSafeNode" for event in events), place.namespace)
    events = shell(control_plane, documented("kubectl get events"), tmp_path, **words)
    assert "NoSafeNode" in events.stdout, events.stderr
    record = shell(control_plane, documented("kubectl get pod db-tikv-1"), tmp_path, **words)
    assert json.loads(record.stdout)["outcome"] == "guarded", record.stderr
    why = shell(control_plane, documented(".venv/bin/tidb-ha-webhook why"), tmp_path, **words)
    assert why.returncode == 0, why.stderr
    assert waiting in why.stdout.splitlines()[0]
