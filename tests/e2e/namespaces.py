"""Namespaces for the length of a test, and what is registered for the pods in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from e2e import chart, objects
from e2e.api import Api
from e2e.chart import SWITCH
from e2e.objects import Object
from e2e.place import Create, Place
from e2e.replicas import Webhook, probe_member, wait_until_called
from e2e.waiting import wait_until


@contextmanager
def fresh_namespace(api: Api, words: str, labels: Mapping[str, str] | None = None) -> Iterator[str]:
    """A namespace for the length of a `with` block."""
    words = re.sub(r"[^a-z0-9]+", "-", words.removeprefix("test_").lower())
    metadata = {"generateName": f"{words[:40].strip('-')}-", "labels": dict(labels or {})}
    name: str = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})["metadata"]["name"]
    # Until the controller manager has made it, every pod is refused.
    api.wait_for("ServiceAccount", bool, name, fields="metadata.name=default")
    try:
        yield name
    finally:
        api.delete("Namespace", name, missing_ok=True)
        # The namespace controller begins only after 5 s, and grants the pods their grace. The sets go first: their
        # controller would replace the pods.
        for kind in ("StatefulSet", "Pod", "PersistentVolumeClaim"):
            api.delete_all(kind, name, gracePeriodSeconds=0)
        for kind in ("Pod", "PersistentVolumeClaim"):
            api.wait_for(kind, lambda found: not found, name)


@contextmanager
def registered(
    api: Api,
    create: Create,
    webhook: Webhook,
    words: str,
    *,
    failure_policy: str = "Fail",
    floor: bool = False,
    **fields: object,
) -> Iterator[Place]:
    """A namespace whose members go to this webhook, for the length of a `with` block; with the chart's floor if asked.

    `fields` replace those of the configuration's entries.
    """
    with fresh_namespace(api, words) as name, ExitStack() as stack:
        api.patch("Namespace", name, {"metadata": {"labels": {SWITCH: name}}})
        if floor:
            # Before the webhook, whose guard looks alike.
            stack.enter_context(floored(api, webhook.service, name))
        api.create(webhook.configuration(name, failure_policy=failure_policy, **fields))
        stack.callback(api.delete, "MutatingWebhookConfiguration", name)
        wait_until_called(api, name)
        yield Place(api, name, create)


@contextmanager
def floored(api: Api, service: tuple[str, str], name: str) -> Iterator[None]:
    """The chart's floor for the namespaces whose label `SWITCH` is `name`, among them that of this name."""
    manifests = [chart.switched(manifest, name) for manifest in chart.rendered(service, *chart.FLOOR)]
    with ExitStack() as stack:
        for manifest in manifests:
            api.create(manifest)
            stack.callback(api.delete, manifest["kind"], name)
        probe = probe_member(name)
        wait_until(lambda: _guarded_in_a_dry_run(api, probe), f"the floor of {name}", 30)
        yield


def _guarded_in_a_dry_run(api: Api, pod: Object) -> bool:
    return objects.GUARD in api.create(pod, dryRun="All")["metadata"].get("annotations", {})


def define(api: Api, *definitions: Object) -> None:
    """Create (or replace) CustomResourceDefinitions and wait until their kinds are served."""
    for definition in definitions:
        # By apply: what the client-side way would keep in an annotation may be too long for one.
        api.apply(definition, manager="e2e")
    names = {definition["metadata"]["name"] for definition in definitions}

    def established(found: list[Object]) -> bool:
        served = {
            one["metadata"]["name"]
            for one in found
            for condition in one.get("status", {}).get("conditions") or []
            if (condition["type"], condition["status"]) == ("Established", "True")
        }
        return names <= served

    api.wait_for("CustomResourceDefinition", established)
