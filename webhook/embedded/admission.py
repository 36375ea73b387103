"""Admission on the embedded cluster, where nobody else makes claims or stores pods."""

from __future__ import annotations

import logging
from typing import Any

from webhook.admission import Reviewer
from webhook.cluster.memory import MemoryCluster
from webhook.cluster.store import GroupStore
from webhook.core.manifests import pod_from
from webhook.core.review import Review, parse_review
from webhook.core.shapes import mapping
from webhook.deadline import Deadline
from webhook.embedded.answers import admitted
from webhook.errors import ApiError

logger = logging.getLogger(__name__)


class EmbeddedAdmission:
    """Answers reviews as `admission` does, and lets a sequence of creates behave as on a cluster.

    Before the decision a member's missing claims are made, as its StatefulSet's controller would have; after
    it an allowed pod is visible to the decisions that follow. A dry run changes nothing.
    """

    def __init__(self, admission: Reviewer, cluster: MemoryCluster) -> None:
        self._admission = admission
        self._cluster = cluster
        self._store = GroupStore(cluster)

    def review(self, body: bytes, deadline: Deadline) -> dict[str, Any]:
        """See `Admission.review`."""
        review = parse_review(body)
        creates = review.operation == "CREATE" and not review.sub_resource and not review.dry_run
        if not creates:
            return self._admission.review(body, deadline)
        self._make_claims(review, deadline)
        answer = self._admission.review(body, deadline)
        self._store_pod(review, answer)
        return answer

    def _make_claims(self, review: Review, deadline: Deadline) -> None:
        pod = pod_from(review.pod_manifest, namespace=review.namespace)
        group = self._store.recognise(pod, deadline).group
        if group is not None:
            self._cluster.ensure_claims(review.pod_manifest, dict(group.selector), namespace=review.namespace)

    def _store_pod(self, review: Review, answer: dict[str, Any]) -> None:
        outcome = admitted(review.pod_manifest, answer)
        if not outcome.allowed:
            return
        # The request's namespace is the pod's, whatever a hand-made review says inside.
        metadata = {**mapping(outcome.pod.get("metadata")), "namespace": review.namespace}
        try:
            self._cluster.admit({**outcome.pod, "metadata": metadata}, namespace=review.namespace)
        except ApiError as error:
            # Such as a pod without any name: an API server would refuse it too, after the admission.
            logger.warning("allowed, but cannot be created: %s", error)
