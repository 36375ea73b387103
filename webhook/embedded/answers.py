"""What an API server makes of the answer to a review."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.core import keys
from webhook.core.jsonpatch import apply
from webhook.core.manifests import pod_from
from webhook.core.objects import EMPTY
from webhook.core.selectors import pinned_node
from webhook.core.shapes import inside, items, mapping, strings, text, texts
from webhook.errors import WebhookError


class AnswerError(WebhookError):
    """An answer is not the AdmissionReview v1 that the API server would accept."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A review's answer, applied. `pod` is the pod as it would be stored: with the patch, if there is one.

    `message` is that of a refusal. `operations` is the JSON Patch, `audit` the audit annotations.
    """

    allowed: bool
    pod: dict[str, Any]
    operations: list[dict[str, Any]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    message: str = ""
    audit: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def node(self) -> str:
        """The node that the pod can go to only: by its node affinity, else by its hostname; "" if any other."""
        pod = pod_from(self.pod)
        return pinned_node(pod) or pod.node_selector.get(keys.HOSTNAME, "")

    @property
    def record(self) -> dict[str, Any]:
        """The decision record that the pod carries, as JSON; {} if there is none that can be read."""
        try:
            record = json.loads(text(inside(self.pod, "metadata", "annotations", keys.DECISION)) or "{}")
        except ValueError:
            return {}
        return record if isinstance(record, dict) else {}


def admitted(pod: dict[str, Any], answer: Mapping[str, Any]) -> Admitted:
    """Apply the answer to the pod it is about. Raises AnswerError, or PatchError for a patch that does not fit."""
    response = mapping(answer.get("response"))
    if not isinstance(response.get("allowed"), bool):
        raise AnswerError("the answer has no response that allows or refuses the pod")
    operations = _operations(response)
    return Admitted(
        allowed=response["allowed"],
        pod=apply(pod, operations) if response["allowed"] else pod,
        operations=operations,
        warnings=strings(response.get("warnings")),
        message=text(inside(response, "status", "message")),
        audit=texts(response.get("auditAnnotations")),
    )


def _operations(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    patch = text(response.get("patch"))
    try:
        operations = json.loads(base64.b64decode(patch, validate=True)) if patch else []
    except (binascii.Error, ValueError) as error:
        raise AnswerError(f"the answer's patch cannot be read: {error}") from error
    return items(operations)
