"""Checks of how the API server is told of us: configuration, failure policy and floor, selectors, other mutators."""

from __future__ import annotations

import json
from collections.abc import Iterator

from webhook.cluster.door import Manifest
from webhook.core import keys
from webhook.core.explanation import recorded_on
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.core.outcomes import Outcome
from webhook.core.registration import selects
from webhook.core.repeated import own_placement
from webhook.core.shapes import inside, integer, text
from webhook.errors import NotFound
from webhook.operating.doctor.lines import Line, fail, ok, skip, warn
from webhook.operating.doctor.patient import BINDINGS, POLICIES, Patient
from webhook.operating.page import listed


def configuration(patient: Patient) -> Iterator[Line]:
    """Whether the API server asks us at all, and for how long it waits."""
    about = "configuration"
    if patient.connection.on_dump:
        yield skip(about, "a dump holds no configuration of webhooks")
        return
    own = patient.own_entries
    if not own:
        yield fail(
            about,
            "no MutatingWebhookConfiguration has a webhook of ours for pods: nobody is placed",
            "helm upgrade --install of the chart charts/tidb-ha-webhook makes it, also where the release is there",
        )
        return
    names = sorted({entry.configuration for entry in own})
    if len(names) > 1:
        yield warn(about, f"{listed(names)} are all ours: each pod is decided on twice", "uninstall all but one")
    else:
        yield ok(about, f"{names[0]} has {listed([entry.name for entry in own])}")
    for entry in own:
        seconds = integer(entry.webhook.get("timeoutSeconds"))
        if seconds is not None and seconds < 3:
            yield warn(
                about,
                f"{entry.name} has {seconds} s to answer: too little for a round and its margin",
                "set webhook.timeoutSeconds to 10",
            )


def floor(patient: Patient) -> Iterator[Line]:
    """What happens to members while no replica answers."""
    about = "while we are away"
    if patient.connection.on_dump:
        yield skip(about, "a dump holds no policies")
        return
    ignoring = [entry.name for entry in patient.own_entries if entry.webhook.get("failurePolicy") == "Ignore"]
    try:
        policies = {text(inside(found, "metadata", "name")) for found in patient.list(POLICIES) if _is_floor(found)}
        bound = policies & {text(inside(found, "spec", "policyName")) for found in patient.list(BINDINGS)}
    except NotFound:
        policies, bound = set(), set()
    if bound:
        yield ok(about, f"the floor ({listed(sorted(bound))}) keeps members apart")
    elif policies:
        yield fail(
            about,
            f"the floor ({listed(sorted(policies))}) has no MutatingAdmissionPolicyBinding: it does nothing",
            "install the chart again",
        )
    elif ignoring:
        yield fail(
            about,
            f"failurePolicy of {listed(ignoring)} is Ignore and there is no floor: members are placed unguarded",
            "set webhook.failurePolicy to Fail, or floor.enabled to true on Kubernetes 1.36 or later",
        )
    elif not patient.own_entries:
        yield fail(
            about,
            "nobody keeps members apart: the API server does not ask us, and there is no floor",
            "bring the configuration back with helm upgrade --install of the chart, then look at "
            "tidb-ha-webhook audit: what was created meanwhile may be stacked",
        )
    else:
        yield ok(about, "members are not created until we answer (failurePolicy Fail); there is no floor")


def selectors(patient: Patient) -> Iterator[Line]:
    """Whether members are among the pods that we are asked about, as far as labels decide it."""
    about = "selectors"
    if patient.connection.on_dump or not patient.own_entries:
        yield skip(about, "there is no configuration to look at")
        return
    labels = patient.namespace_labels
    missed = [
        str(found.group)
        for found in patient.fleet.groups
        if not any(
            selects(entry.webhook, labels.get(found.group.namespace, {}), pod.labels)
            for pod in found.snapshot.pods[:1]
            for entry in patient.own_entries
        )
        and found.snapshot.pods
    ]
    if missed:
        yield fail(
            about,
            f"namespaceSelector or objectSelector leave out {listed(missed)}: nobody places their pods",
            "take the namespaces out of webhook.excludedNamespaces and webhook.namespaceMatchExpressions",
        )
    else:
        yield ok(about, f"the pods of all {len(patient.fleet.groups)} groups are among those that we are asked about")


def mutators(patient: Patient) -> Iterator[Line]:
    """Who else changes pods, and whether anybody takes off what we put in."""
    about = "other mutators"
    robbed = [
        f"{found.group.namespace}/{pod.name}"
        for found in patient.fleet.groups
        for pod in found.snapshot.pods
        if _was_robbed(pod, found.group)
    ]
    if robbed:
        yield fail(
            about,
            f"somebody has taken the pin off {listed(robbed)}",
            "find the webhook or controller that replaces spec.affinity, and keep it off these pods",
        )
    if patient.connection.on_dump:
        yield skip(about, "a dump holds no configuration of webhooks")
        return
    others = sorted(
        {
            entry.configuration
            for entry in patient.entries
            if entry.sees_creates_of_pods and entry not in patient.own_entries
        }
    )
    touching = sorted(_policies_that_touch_affinity(patient))
    if touching:
        yield warn(
            about,
            f"{listed(touching)} may change the affinity of pods",
            "see that it leaves members alone: what it replaces is lost, and asked for again only once",
        )
    seen = f"{listed(others)} see pods too" if others else "no other webhook sees pods"
    if not robbed:
        yield ok(about, f"{seen}; no member has lost its pin")


def _was_robbed(pod: Pod, group: Group) -> bool:
    """Whether a decision of ours pinned the pod, and the pin is not there."""
    explanation = recorded_on(pod).explanation
    pinned = explanation is not None and explanation.record.outcome in (Outcome.PINNED, Outcome.RETURNED)
    return pinned and own_placement(pod, group) is None


def _policies_that_touch_affinity(patient: Patient) -> Iterator[str]:
    try:
        policies = patient.list(POLICIES)
    except NotFound:
        return
    for found in policies:
        if "affinity" in json.dumps(inside(found, "spec", "mutations")).lower() and not _is_floor(found):
            yield text(inside(found, "metadata", "name"))


def _is_floor(policy: Manifest) -> bool:
    """Whether a policy puts our guard in: whatever it is called, it sets that annotation."""
    return keys.GUARD in json.dumps(inside(policy, "spec", "mutations")).replace("~1", "/")
