"""Writes docs/install-transcript.md: an install, a test, a change of the CA under load, an uninstall, as they go.

`python -m e2e.install.transcript`, with the folder of tests on the path. The commands are what a user types; the
Service and the pods are played as in the tests (see this package).
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from e2e import objects
from e2e.api import Api, ready_for_pods, running
from e2e.control_plane import ControlPlane, missing_binaries
from e2e.install import helm
from e2e.install.load import member, steady_load
from e2e.install.release import Release, running_release
from e2e.waiting import wait_until

NAMESPACE, CLUSTER = "tidb-admin", "db"
NODES = [f"node-{i}" for i in range(4)]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "install-transcript.md"
LABELS = "app.kubernetes.io/component=tikv"
HEAD = """# A transcript

Made on {day} by `PYTHONPATH=tests .venv/bin/python -m e2e.install.transcript`, on the control plane of the
end-to-end tests (Kubernetes {version}, {helm}): a real API server, controller manager and scheduler. Nodes are
simulated, and the pods of the release run as processes of one machine, with the chart's commands, environment and
rights. `VALUES` is what that needs: a nodeSelector, ports, failure policy `Fail` without a floor so that every failed
call shows, no controller, and shorter times (`settleSeconds: 3`, `intervalSeconds: 0.5`, `cleanup.quietSeconds: 4`).
What was printed is unchanged.
"""


class Page:
    """The page, written as it goes; `hidden`: texts of this machine that are replaced."""

    def __init__(self, plane: ControlPlane, hidden: dict[str, str]) -> None:
        self._plane = plane
        self._hidden = hidden
        self._parts: list[str] = []

    def say(self, text: str) -> None:
        """A paragraph."""
        self._parts.append(text)

    def show(self, command: str, output: str) -> None:
        """A command and what it printed."""
        for text, shown in self._hidden.items():
            output = output.replace(text, shown)
        self._parts.append(f"```console\n$ {command}\n{output.rstrip()}\n```")

    def kubectl(self, command: str) -> None:
        """Run kubectl, and show it."""
        done = self._plane.kubectl(*shlex.split(command))
        self.show(f"kubectl {command}", done.stdout + done.stderr)

    def certs(self, command: str, release: Release) -> None:
        """Run `python -m certs`, and show it as it is called in the pod."""
        target = ["--namespace", NAMESPACE, "--service", release.service]
        call = [sys.executable, "-m", "certs", command, *target, "--kubeconfig", str(self._plane.kubeconfig)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        shown = f"python -m certs {command} --in-cluster --namespace {NAMESPACE} --service {release.service}"
        self.show(shown, done.stdout + done.stderr)

    def write(self, head: str, path: Path = PAGE) -> None:
        """Write the page."""
        path.write_text("\n\n".join([head.strip(), *self._parts]) + "\n")


def install(page: Page, release: Release) -> None:
    """Install, look, test."""
    page.say("## Install")
    said = release.install(webhook={"failurePolicy": "Fail"}, floor={"enabled": False})
    chart = "charts/tidb-ha-webhook"
    page.show(f"helm install {release.name} {chart} -n {NAMESPACE} -f VALUES", said)
    release.kubelet.wait_ready(2)
    page.kubectl(f"get pods,pdb,lease -n {NAMESPACE}")
    page.certs("status", release)
    page.say("## helm test")
    said = release.helm.run("test", release.name, "-n", NAMESPACE, "--timeout=60s")
    page.show(f"helm test {release.name} -n {NAMESPACE}", said)
    page.show(f"kubectl logs -n {NAMESPACE} {release.name}-test", "".join(release.kubelet.finished.values()))


def place(page: Page, api: Api) -> None:
    """A set of three stores, all at once."""
    page.say("## A set of three TiKV stores, created at once")
    api.create(objects.stateful_set(CLUSTER))
    api.wait_for("Pod", running(3), CLUSTER, labels=LABELS)
    assigned = ".metadata.annotations.tidb-ha-webhook\\.io/assigned-node"
    # Quoted: else the backslash would be taken away, as a shell does it.
    page.kubectl(f"get pods -n {CLUSTER} -o custom-columns='NAME:.metadata.name,NODE:.spec.nodeName,PIN:{assigned}'")


def rotate(page: Page, api: Api, release: Release) -> None:
    """A new CA under 20 creates a second."""
    page.say("## A change of the CA, under 20 creates a second")
    with steady_load(api, member()) as tally:
        wait_until(lambda: tally.calls > 100, "the load to run", 60)
        before = release.bundles()
        page.certs("rotate", release)

        def used() -> bool:
            secret = api.get("Secret", f"{release.name}-certificates", NAMESPACE)["data"]
            return release.bundles() != before and "next-ca.crt" not in secret

        wait_until(used, "the new CA to be in use", 90)
        seen = tally.calls
        wait_until(lambda: tally.calls > seen + 300, "some more calls", 60)
    page.certs("status", release)
    page.say(f'Meanwhile: {tally}. ("Decided" by the webhook; each create is a dry run of a member\'s pod.)')


def uninstall(page: Page, api: Api, release: Release) -> None:
    """Uninstall, and what is left."""
    page.say("## Uninstall")
    page.show(f"helm uninstall {release.name} -n {NAMESPACE}", release.uninstall())
    release.kubelet.wait_ready(0)
    kinds = "all,secret,lease,role,rolebinding,serviceaccount,configmap,pdb"
    page.kubectl(f"get {kinds} -n {NAMESPACE}")
    policies = "mutatingwebhookconfiguration,mutatingadmissionpolicy,validatingadmissionpolicy"
    page.kubectl(
        f"get {policies},clusterrole,clusterrolebinding,flowschema -l app.kubernetes.io/part-of=tidb-ha-webhook"
    )
    api.delete("Pod", "db-tikv-0", CLUSTER)
    api.wait_for("Pod", running(3), CLUSTER, labels=LABELS)
    page.say("Members can be created as before; the set has got its deleted pod back:")
    page.kubectl(f"get pods -n {CLUSTER}")


def main() -> None:
    """Write the page."""
    if problem := missing_binaries() or helm.missing():
        raise SystemExit(problem)
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane() as plane,
        Api(plane.url, plane.token, plane.files.ca) as api,
    ):
        for name in (NAMESPACE, CLUSTER):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
        for each in objects.local_cluster(NODES):
            api.create(each)
        api.wait_for("Node", lambda nodes: all(map(ready_for_pods, nodes)))
        caller = helm.Helm(4, Path(folder), plane.kubeconfig)
        release = Release(plane, api, caller, NAMESPACE, Path(folder) / "pods", "tidb-ha-webhook")
        page = Page(plane, {plane.url: "https://API-SERVER", folder: ""})
        with running_release(release):
            install(page, release)
            place(page, api)
            rotate(page, api, release)
            uninstall(page, api, release)
        version = api.request("GET", "/version")["gitVersion"]
        said = caller.run("version", "--short").split("+")[0].strip()
        page.write(HEAD.format(day=f"{datetime.now(UTC):%Y-%m-%d}", version=version, helm=f"Helm {said}"))


if __name__ == "__main__":
    main()
