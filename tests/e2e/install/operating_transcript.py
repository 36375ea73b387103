"""Writes docs/operating-transcript.md: what the commands that ask say of a real cluster, and the page of metrics.

`python -m e2e.install.operating_transcript`, with the folder of tests on the path. The commands are what a user types;
the Service and the pods of the release are played as in the tests (see this package).
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from e2e import objects
from e2e.api import Api, ready_for_pods
from e2e.control_plane import ControlPlane, components, missing_binaries
from e2e.install import helm
from e2e.install.load import member
from e2e.install.release import Release, running_release
from e2e.install.transcript import NAMESPACE, Page
from e2e.namespaces import define
from e2e.objects import Object
from e2e.place import HandSet, Place, is_ready
from e2e.waiting import wait_until

SHOP, LEGACY = "shop", "legacy"
NODES = [f"node-{i}" for i in range(1, 4)]
HEALTH_PORT = 8081
PAGE = Path(__file__).resolve().parents[3] / "docs" / "operating-transcript.md"
OURS = re.compile(r"^tidb_ha_webhook_\w+(?<!_bucket)(?<!_created)(\{.*\})? ", re.MULTILINE)
HEAD = """# A transcript of the questions

Made on {day} by `PYTHONPATH=tests .venv/bin/python -m e2e.install.operating_transcript`, on the control plane of the
end-to-end tests (Kubernetes {version}): a real API server, controller manager and scheduler. The chart is installed as
it comes, with its floor and its controller. Nodes are simulated; the pods of the release run as processes of one
machine, with the chart's commands, environment and rights, so that their Service leads to another place than usual.
What was printed is unchanged but for the name of that machine. What each command is for:
[asking a cluster](operating.md).
"""


class Asked(Page):
    """The page of questions."""

    def __init__(self, plane: ControlPlane, hidden: dict[str, str]) -> None:
        super().__init__(plane, hidden)
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(plane.kubeconfig),
            "COLUMNS": "120",
        }

    def ask(self, command: str, *, code: int) -> None:
        """Run the plugin, and show what it says and its exit code, which is to be this."""
        call = [components.binary("kubectl"), "tidb-ha", *shlex.split(command)]
        done = subprocess.run(call, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise SystemExit(f"kubectl tidb-ha {command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        self.show(f"kubectl tidb-ha {command}; echo $?", f"{done.stdout}{done.stderr}{code}")

    def metrics(self, which: str, text: str) -> None:
        """Show what is ours of a page of metrics."""
        ours = "\n".join(line for line in text.splitlines() if OURS.match(line))
        self.show(
            f"curl -s http://{which}:{HEALTH_PORT}/metrics | grep ^tidb_ha_webhook | grep -v -e _bucket -e _created",
            ours,
        )


def prepare(plane: ControlPlane, api: Api) -> None:
    """Namespaces, nodes, and the kind of the sets that nobody here controls."""
    for name in (NAMESPACE, SHOP, LEGACY):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
    for each in objects.local_cluster(NODES, zones=["a", "b", "c"]):
        api.create(each)
    api.wait_for("Node", lambda nodes: all(map(ready_for_pods, nodes)))
    define(api, objects.custom_resource_definition(objects.ADVANCED_GROUP, "v1", "StatefulSet", "statefulsets"))


def no_create(*manifests: Object) -> list[Object]:
    """Nothing outside of a namespace is created later."""
    return list(manifests)


def healthy(page: Asked, place: Place) -> None:
    """Two sets that are well."""
    page.say(
        "## All is well\n\nThree members of PD and three of TiKV were created at once, on three nodes in three zones."
    )
    for component in ("pd", "tikv"):
        place.start(component=component)
    for component in ("pd", "tikv"):
        place.wait_running(3, component=component)
    page.ask("audit", code=0)
    page.ask(f"why db-pd-0 -n {SHOP}", code=0)
    page.ask("can-drain node-2", code=0)
    page.ask("can-drain node-1 --zone b", code=1)


def crowded(page: Asked, place: Place) -> None:
    """PD gets a member for which there is no place."""
    page.say("## A member waits\n\nPD was scaled from three to four; there are three nodes.")
    place.api.patch("StatefulSet", "db-pd", {"spec": {"replicas": 4}}, SHOP)
    name = "db-pd-3"
    wait_until(
        lambda: [e for e in place.api.list("Event", SHOP) if e["reason"] == "NoSafeNode" and name in e["message"]],
        "the event of the pod that waits",
        60,
    )
    wait_until(lambda: [pod for pod in place.pods(component="pd") if scheduled(pod) == "False"], "the scheduler", 60)
    page.ask(f"why {name} -n {SHOP}", code=0)
    page.ask("can-drain node-2", code=1)
    page.ask("simulate add-nodes:1", code=0)
    page.ask(f"simulate scale:{SHOP}/db-tikv=6 lose-node:node-1", code=1)


def scheduled(pod: Object) -> str:
    """What the scheduler says of a pod, "" for nothing yet."""
    conditions = pod["status"].get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == "PodScheduled"), "")


def stacked(page: Asked, place: Place) -> None:
    """Members that never passed the webhook."""
    page.say("## A breach\n\nIn another namespace three members of PD were bound by hand, two of them to one node.")
    containers = {"containers": [objects.container("pd", cpu="10m", memory="16Mi")]}
    group = HandSet(place, cluster="old", component="pd", pod_spec=containers)
    for ordinal, node in enumerate(("node-1", "node-1", "node-2")):
        place.api.create(objects.member_pod(group.set, ordinal, nodeName=node, volumes=[]))
    place.wait_for(lambda pods: len(pods) == 3 and all(map(is_ready, pods)), "old", "pd")
    page.ask("audit", code=1)
    page.ask(f"why old-pd-1 -n {LEGACY}", code=0)
    page.say("## What is wrong with the webhook itself?")
    page.ask("doctor", code=1)


def measured(page: Asked, release: Release) -> None:
    """The pages of metrics, once an audit has seen all."""
    http = urllib3.PoolManager(retries=False, timeout=5.0)

    def pages() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"controller": [], "webhook": []}
        for pod in release.kubelet.running():
            text = http.request("GET", f"http://127.0.0.1:{pod.ports[HEALTH_PORT]}/metrics").data.decode()
            found["controller" if "controller" in pod.name else "webhook"].append(text)
        return found

    def seen() -> dict[str, list[str]] | None:
        found = pages()
        leads = [text for text in found["controller"] if 'audit_findings{kind="Stacked"}' in text]
        return {**found, "controller": leads} if leads else None

    found = wait_until(seen, "an audit that has seen the breach", 90)
    page.say("## Metrics\n\nOf one replica that answers reviews (without the buckets of its histograms):")
    busiest = max(found["webhook"], key=lambda text: text.count("tidb_ha_webhook_reviews_total{"))
    page.metrics("REPLICA", busiest)
    page.say("Of the controller that leads:")
    page.metrics("CONTROLLER", found["controller"][0])


def main() -> None:
    """Write the page."""
    if problem := missing_binaries() or helm.missing():
        raise SystemExit(problem)
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane() as plane,
        Api(plane.url, plane.token, plane.files.ca) as api,
    ):
        prepare(plane, api)
        caller = helm.Helm(4, Path(folder), plane.kubeconfig)
        release = Release(plane, api, caller, NAMESPACE, Path(folder) / "pods", "tidb-ha-webhook")
        page = Asked(plane, {plane.url: "https://API-SERVER", folder: "", f"{socket.gethostname()}_": "POD_"})
        with running_release(release):
            release.install(controller={"enabled": True})
            release.kubelet.wait_ready(4)
            release.wait_called(member(SHOP))
            shop, legacy = (Place(api, name, no_create) for name in (SHOP, LEGACY))
            healthy(page, shop)
            crowded(page, shop)
            stacked(page, legacy)
            measured(page, release)
            version = api.request("GET", "/version")["gitVersion"]
        page.write(HEAD.format(day=f"{datetime.now(UTC):%Y-%m-%d}", version=version), PAGE)


if __name__ == "__main__":
    main()
