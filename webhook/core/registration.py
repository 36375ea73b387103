"""What a MutatingWebhookConfiguration says of the pods that a webhook is asked about; pure.

Rules and selectors are judged. Expressions (`matchConditions`) are the API server's alone to evaluate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.core.selector_manifests import label_selector_from
from webhook.core.selectors import matches_labels
from webhook.core.shapes import inside, integer, items, mapping, strings, text

Webhook = Mapping[str, Any]
"""One entry of `webhooks`."""


def for_pods(configuration: Mapping[str, Any]) -> Iterator[Webhook]:
    """The webhooks of a configuration that are called for creates of pods."""
    return (entry for entry in map(mapping, items(configuration.get("webhooks"))) if sees_creates_of_pods(entry))


def sees_creates_of_pods(webhook: Webhook) -> bool:
    """Whether its rules name the CREATE of pods."""
    return any(map(_names_creates_of_pods, map(mapping, items(webhook.get("rules")))))


def selects(webhook: Webhook, namespace: Mapping[str, str], pod: Mapping[str, str]) -> bool:
    """Whether its selectors match a pod, by the labels of its namespace and its own."""
    return _matches(webhook.get("namespaceSelector"), namespace) and _matches(webhook.get("objectSelector"), pod)


def service_of(webhook: Webhook) -> tuple[str, str, int] | None:
    """Namespace, name and port of its Service, None if it is called by URL."""
    service = inside(webhook, "clientConfig", "service")
    if not isinstance(service, Mapping):
        return None
    return text(service.get("namespace")), text(service.get("name")), integer(service.get("port")) or 443


def bundle_of(webhook: Webhook) -> str:
    """By whose signature the API server trusts who answers, as it is written; "" if by nobody's."""
    return text(inside(webhook, "clientConfig", "caBundle"))


def _names_creates_of_pods(rule: Mapping[str, Any]) -> bool:
    return bool(
        {"pods", "*", "*/*", "pods/*"} & set(strings(rule.get("resources")))
        and {"CREATE", "*"} & set(strings(rule.get("operations")))
        and {"", "*"} & set(strings(rule.get("apiGroups")))
        and {"v1", "*"} & set(strings(rule.get("apiVersions", ["*"])))
        # Without one the API server has "*".
        and text(rule.get("scope")) in ("", "*", "Namespaced")
    )


def _matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a selector of a webhook matches; none at all matches everything."""
    return not mapping(selector) or matches_labels(label_selector_from(selector), labels)
